//! Who belongs to the metadata group, asked for and changed from outside, for operators and tools. Each command is
//! a row of steps that are safe to ask for again: the loss of a leader half way changes nothing but the time
//! it takes.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tonic::Status;

use super::{RemoteMetadata, RemoteMetadataConfig};
use crate::metadata::MetadataError;
use crate::metadata::wire::check_failure;
use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::members_client::MembersClient;
use crate::rpc::{Channel, MESSAGE_BYTES_MAX};
use crate::runtime::Runtime;

/// A command that is not done after this is given up; what it has begun stays begun.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two steps.
const PAUSE: Duration = Duration::from_millis(200);

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Its id.
    pub id: u64,
    /// `host:port` of its node-to-node port.
    pub address: String,
    /// It counts for quorums; otherwise it is a learner, or on its way out.
    pub votes: bool,
    /// It is on its way out.
    pub leaves: bool,
    /// It leads.
    pub leads: bool,
    /// Its log is known to agree with the leader's up to here.
    pub matched: u64,
}

/// The group, as its leader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataGroup {
    /// Its members, by id.
    pub members: Vec<GroupMember>,
    /// The leader's term.
    pub term: u64,
    /// Everything up to here is committed.
    pub commit: u64,
}

/// Asks for the members of the metadata group and changes them. Cheap to clone.
#[derive(Clone)]
pub struct MembershipAdmin(RemoteMetadata, Runtime);

type Members = MembersClient<Channel>;
type Answered<T> = BoxFuture<'static, Result<T, Status>>;

fn members(channel: Channel) -> Members {
    MembersClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

impl MembershipAdmin {
    /// An admin of the group with members at these addresses (`host:port`); one that answers is enough.
    pub fn new(runtime: Runtime, addresses: &[String], config: RemoteMetadataConfig) -> Self {
        Self(RemoteMetadata::new(runtime.clone(), addresses, config), runtime)
    }

    /// The members.
    pub async fn members(&self) -> Result<MetadataGroup, MetadataError> {
        let call = |channel| -> Answered<wire::ListMembersAnswer> {
            let mut client = members(channel);
            let request = wire::ListMembersRequest {};
            Box::pin(async move { Ok(client.list_members(request).await?.into_inner()) })
        };
        let answer = self.0.ask_again(call).await?;
        check_failure(answer.failure)?;
        let member = |info: wire::MemberInfo| GroupMember {
            id: info.id,
            address: info.address,
            votes: info.votes,
            leaves: info.leaves,
            leads: info.leads,
            matched: info.matched,
        };
        let members = answer.members.into_iter().map(member).collect();
        Ok(MetadataGroup { members, term: answer.term, commit: answer.commit })
    }

    /// Makes the node at this address a member that votes: it is sent the log first, and counts once it has
    /// caught up. The id must never have been used; the node is told it too, and no founders.
    pub async fn add_member(&self, id: u64, address: &str) -> Result<(), MetadataError> {
        self.until_done(|channel| {
            let mut client = members(channel);
            let request = wire::AddMemberRequest { id, address: address.to_owned() };
            Box::pin(async move { Ok(client.add_member(request).await?.into_inner()) })
        })
        .await
    }

    /// Takes a member out of the group. Its node may be stopped afterwards; its id is never used again.
    pub async fn remove_member(&self, id: u64) -> Result<(), MetadataError> {
        self.until_done(|channel| {
            let mut client = members(channel);
            let request = wire::MemberRequest { id };
            Box::pin(async move { Ok(client.remove_member(request).await?.into_inner()) })
        })
        .await
    }

    /// Makes this member the leader.
    pub async fn transfer_leader(&self, id: u64) -> Result<(), MetadataError> {
        self.until_done(|channel| {
            let mut client = members(channel);
            let request = wire::MemberRequest { id };
            Box::pin(async move { Ok(client.transfer_leader(request).await?.into_inner()) })
        })
        .await
    }

    async fn until_done(
        &self,
        step: impl Fn(Channel) -> Answered<wire::ChangeAnswer>,
    ) -> Result<(), MetadataError> {
        let clock = &self.1.clock;
        let until = clock.now() + PATIENCE;
        loop {
            let answer = self.0.ask_again(&step).await?;
            check_failure(answer.failure)?;
            if answer.number == 0 {
                return Ok(());
            }
            if clock.now() >= until {
                let reason = format!("not done after {PATIENCE:?}; ask again to go on with it");
                return Err(MetadataError::OutcomeUnknown(reason));
            }
            clock.sleep(PAUSE).await;
        }
    }
}
