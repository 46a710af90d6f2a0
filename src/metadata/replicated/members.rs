//! Who belongs to the group: asked for and changed step by step, each step safe to ask for again, so that an
//! operator's command survives the loss of its leader half way.

use std::time::Duration;

use tokio::sync::oneshot;
use tonic::{Request as Call, Response, Status};

use super::driver::Request;
use super::handle::ReplicatedMetadata;
use super::shared::MemberStatus;
use crate::metadata::MetadataError;
use crate::metadata::consensus::{MemberId, Membership, Role};
use crate::metadata::wire::error_to_wire;
use crate::reached;
use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::members_server;

/// Most members a group may have, learners included.
const MEMBERS_MAX: usize = 15;
/// Longest address of a member, bytes.
const ADDRESS_BYTES_MAX: usize = 255;

/// Longest wait for another member to lead before a stop.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks at that.
const HAND_OVER_LOOK: Duration = Duration::from_millis(20);

/// What a step towards another membership gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberStep {
    /// It is as asked for, and committed.
    Done,
    /// Ask again.
    UnderWay,
}

impl ReplicatedMetadata {
    /// Gives the group other voters and learners; done once the change has entered the log's committed part
    /// (a joint membership is left soon after).
    pub async fn change_members(&self, membership: Membership) -> Result<(), MetadataError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Request::Members { base: None, membership, answer }, answered).await
    }

    /// Hands leadership over, if this member leads; nothing happens if it does not work out.
    pub async fn transfer_leadership(&self, to: MemberId) {
        // A stopped member leads nobody.
        let _ = self.requests.send(Request::Transfer { to }).await;
    }

    /// The next step until this member votes: a learner first, a voter once it has caught up.
    pub async fn add_member(
        &self,
        member: MemberId,
        address: &str,
    ) -> Result<MemberStep, MetadataError> {
        let Some(membership) = self.settled()? else { return Ok(MemberStep::UnderWay) };
        if member.0 == 0 || address.len() > ADDRESS_BYTES_MAX || !address.contains(':') {
            let reason = format!("member {member} at {address:?}: an id above 0 and host:port");
            return Err(MetadataError::Refused(reason));
        }
        let is_new = membership.addresses.get(&member).is_none_or(|known| known != address);
        if membership.voters.contains(&member) && !is_new {
            return Ok(MemberStep::Done);
        }
        let base = membership;
        let mut wanted = base.clone();
        wanted.addresses.insert(member, address.to_owned());
        if wanted.learners.contains(&member) && !is_new {
            wanted.learners.remove(&member);
            wanted.voters.insert(member);
        } else if !wanted.voters.contains(&member) {
            wanted.learners.insert(member);
        }
        if wanted.members().len() > MEMBERS_MAX {
            let reason = format!("a group has at most {MEMBERS_MAX} members");
            return Err(MetadataError::Refused(reason));
        }
        self.step(base, wanted).await
    }

    /// The next step until this member is gone.
    pub async fn remove_member(&self, member: MemberId) -> Result<MemberStep, MetadataError> {
        let Some(base) = self.settled()? else { return Ok(MemberStep::UnderWay) };
        let mut wanted = base.clone();
        if !wanted.members().contains(&member) {
            return Ok(MemberStep::Done);
        }
        wanted.voters.remove(&member);
        wanted.learners.remove(&member);
        wanted.addresses.remove(&member);
        if wanted.voters.is_empty() {
            let reason = format!("member {member} is the only one that votes");
            return Err(MetadataError::Refused(reason));
        }
        self.step(base, wanted).await
    }

    /// The next step until this member leads.
    pub async fn transfer_leader(&self, member: MemberId) -> Result<MemberStep, MetadataError> {
        let status = self.leading_status()?;
        // First of all: the leader that was removed leads for a moment still.
        if !status.membership.voters.contains(&member) {
            return Err(MetadataError::Refused(format!("member {member} does not vote")));
        }
        if status.id == member {
            return Ok(MemberStep::Done);
        }
        self.transfer_leadership(member).await;
        Ok(MemberStep::UnderWay)
    }

    /// Before this member stops: if it leads, another one should, or everybody waits for an election time-out.
    pub async fn hand_over(&self) {
        let status = self.status();
        if status.role != Role::Leader {
            return;
        }
        let others = status.membership.voters.iter().filter(|member| **member != status.id);
        let Some(to) = others.max_by_key(|member| status.matched.get(member)) else { return };
        self.transfer_leadership(*to).await;
        let until = self.clock.now() + HAND_OVER_PATIENCE;
        while self.status().role == Role::Leader && self.clock.now() < until {
            self.clock.sleep(HAND_OVER_LOOK).await;
        }
    }

    /// What this member knows, if it leads.
    fn leading_status(&self) -> Result<MemberStatus, MetadataError> {
        if self.shared.ended().is_some() {
            return Err(self.unavailable());
        }
        let status = self.status();
        if status.role == Role::Leader {
            return Ok(status);
        }
        let leader = status.leader.filter(|leader| *leader != status.id);
        let leader = leader.and_then(|leader| status.membership.addresses.get(&leader).cloned());
        Err(MetadataError::NotLeader { leader })
    }

    /// The membership a change may begin from; `None` while one is under way.
    fn settled(&self) -> Result<Option<Membership>, MetadataError> {
        let membership = self.leading_status()?.membership;
        Ok((!membership.is_joint()).then_some(membership))
    }

    /// Two operators at once must not undo each other's change without knowing it.
    async fn step(
        &self,
        base: Membership,
        membership: Membership,
    ) -> Result<MemberStep, MetadataError> {
        let (answer, answered) = oneshot::channel();
        let request = Request::Members { base: Some(base), membership, answer };
        match self.ask(request, answered).await {
            // A member that is behind, a change under way, or one whose leader is gone: the next step begins
            // from what is there then.
            Ok(()) | Err(MetadataError::Unavailable(_) | MetadataError::OutcomeUnknown(_)) => {
                Ok(MemberStep::UnderWay)
            }
            Err(error) => Err(error),
        }
    }

    /// The group as its leader knows it.
    async fn members(&self) -> Result<wire::ListMembersAnswer, MetadataError> {
        // Who is no longer the leader must not tell old news.
        self.prove().await?;
        let status = self.leading_status()?;
        let membership = &status.membership;
        let info = |member: MemberId| wire::MemberInfo {
            id: member.0,
            address: membership.addresses.get(&member).cloned().unwrap_or_default(),
            votes: membership.voters.contains(&member),
            leaves: !membership.voters.contains(&member) && !membership.learners.contains(&member),
            leads: member == status.id,
            matched: match status.matched.get(&member) {
                _ if member == status.id => status.last,
                matched => matched.copied().unwrap_or(0),
            },
        };
        Ok(wire::ListMembersAnswer {
            members: membership.members().into_iter().map(info).collect(),
            term: status.term,
            commit: status.commit,
            failure: None,
        })
    }
}

/// Answers the members' service. A node that keeps metadata alone refuses: it has no group.
pub struct MembersService(Option<ReplicatedMetadata>);

/// The generated service around [`MembersService`].
pub type MembersServer = members_server::MembersServer<MembersService>;

impl MembersService {
    /// The service for `rpc::Routes`; without a member, of a node that keeps metadata alone.
    pub fn server(member: Option<ReplicatedMetadata>) -> MembersServer {
        members_server::MembersServer::new(Self(member))
    }

    fn member(&self) -> Result<&ReplicatedMetadata, MetadataError> {
        let reason = "this node keeps metadata alone, there is no group";
        self.0.as_ref().ok_or_else(|| MetadataError::Refused(reason.to_owned()))
    }
}

fn answer(
    result: Result<MemberStep, MetadataError>,
) -> Result<Response<wire::ChangeAnswer>, Status> {
    Ok(Response::new(match result {
        Ok(step) => {
            let number = u64::from(step == MemberStep::UnderWay);
            wire::ChangeAnswer { number, failure: None }
        }
        Err(error) => wire::ChangeAnswer { number: 0, failure: Some(error_to_wire(error)) },
    }))
}

#[tonic::async_trait]
impl members_server::Members for MembersService {
    async fn list_members(
        &self,
        _call: Call<wire::ListMembersRequest>,
    ) -> Result<Response<wire::ListMembersAnswer>, Status> {
        let members = match self.member() {
            Ok(member) => member.members().await,
            Err(error) => Err(error),
        };
        Ok(Response::new(members.unwrap_or_else(|error| wire::ListMembersAnswer {
            failure: Some(error_to_wire(error)),
            ..Default::default()
        })))
    }

    async fn add_member(
        &self,
        call: Call<wire::AddMemberRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let wire::AddMemberRequest { id, address } = call.into_inner();
        answer(match self.member() {
            Ok(member) => member.add_member(MemberId(id), &address).await,
            Err(error) => Err(error),
        })
    }

    async fn remove_member(
        &self,
        call: Call<wire::MemberRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        let id = call.into_inner().id;
        answer(match self.member() {
            Ok(member) => member.remove_member(MemberId(id)).await,
            Err(error) => Err(error),
        })
    }

    async fn transfer_leader(
        &self,
        call: Call<wire::MemberRequest>,
    ) -> Result<Response<wire::ChangeAnswer>, Status> {
        reached!("metadata: an operator moved leadership");
        let id = call.into_inner().id;
        answer(match self.member() {
            Ok(member) => member.transfer_leader(MemberId(id)).await,
            Err(error) => Err(error),
        })
    }
}
