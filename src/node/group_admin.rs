//! Answers the admin front end about the metadata group, out of this node's member.

use async_trait::async_trait;

use crate::frontend::admin::{GroupAdmin, GroupRefusal, GroupView, MemberRow};
use crate::metadata::consensus::{MemberId, Membership};
use crate::metadata::{MemberStatus, MetadataError, ReplicatedMetadata};

/// See the module.
pub(super) struct OwnGroup(pub(super) ReplicatedMetadata);

impl OwnGroup {
    /// What the leader knows; a refusal if another member leads.
    fn leading(&self) -> Result<MemberStatus, GroupRefusal> {
        let status = self.0.status();
        match status.leader {
            Some(leader) if leader == status.id => Ok(status),
            other => Err(GroupRefusal::NotLeader(other.map(|member| member.0))),
        }
    }

    async fn change(&self, membership: Membership) -> Result<(), GroupRefusal> {
        match self.0.change_members(membership).await {
            Err(MetadataError::NotLeader { .. }) => {
                Err(GroupRefusal::NotLeader(self.0.status().leader.map(|member| member.0)))
            }
            other => Ok(other?),
        }
    }
}

#[async_trait]
impl GroupAdmin for OwnGroup {
    fn group(&self) -> GroupView {
        let status = self.0.status();
        let membership = &status.membership;
        let row = |member: MemberId| {
            let role = match () {
                () if membership.voters.contains(&member) => "voter",
                () if membership.learners.contains(&member) => "learner",
                () => "leaving",
            };
            let address = membership.addresses.get(&member).cloned();
            MemberRow { member: member.0, address, role, leads: status.leader == Some(member) }
        };
        GroupView {
            own: status.id.0,
            term: status.term,
            committed: status.commit,
            last: status.last,
            members: membership.members().into_iter().map(row).collect(),
        }
    }

    async fn transfer_leadership(&self, to: u64) -> Result<(), GroupRefusal> {
        let status = self.leading()?;
        if !status.membership.voters.contains(&MemberId(to)) {
            return Err(GroupRefusal::Senseless(format!("member {to} is no voter")));
        }
        self.0.transfer_leadership(MemberId(to)).await;
        Ok(())
    }

    async fn add(&self, member: u64, address: &str, is_learner: bool) -> Result<(), GroupRefusal> {
        let mut membership = self.leading()?.membership;
        let member = MemberId(member);
        if membership.voters.contains(&member) {
            return Err(GroupRefusal::Senseless(format!("member {member} is a voter already")));
        }
        membership.addresses.insert(member, address.to_owned());
        if is_learner {
            membership.learners.insert(member);
        } else {
            membership.learners.remove(&member);
            membership.voters.insert(member);
        }
        self.change(membership).await
    }

    async fn remove(&self, member: u64) -> Result<(), GroupRefusal> {
        let mut membership = self.leading()?.membership;
        let member = MemberId(member);
        if !membership.members().contains(&member) {
            return Err(GroupRefusal::Senseless(format!("there is no member {member}")));
        }
        if membership.voters.len() == 1 && membership.voters.contains(&member) {
            return Err(GroupRefusal::Senseless("it is the last voter".to_owned()));
        }
        membership.voters.remove(&member);
        membership.learners.remove(&member);
        membership.addresses.remove(&member);
        self.change(membership).await
    }
}
