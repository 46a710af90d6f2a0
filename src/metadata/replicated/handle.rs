//! The handle of a member: the contract for users in the same process. Only the leader answers; any other
//! member says who leads.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

use super::ReplicatedConfig;
use super::driver::{Beginning, Driver, Request};
use super::service::{ConsensusService, MemberServer};
use super::shared::{MemberStatus, Shared, Visible};
use super::storage::Storage;
use crate::metadata::consensus::{Machine, MemberId, Membership, Restored};
use crate::metadata::store::{Command, Done, check_key, check_list};
use crate::metadata::{
    Expect, MetadataClient, MetadataError, MetadataStartError, Revision, SessionId, Versioned,
    WatchStream,
};
use crate::runtime::{MailboxSender, Runtime, Shutdown, mailbox};

/// A running member of a metadata group. Cheap to clone; stops when told to, or with its node.
#[derive(Clone)]
pub struct ReplicatedMetadata {
    id: MemberId,
    shared: Arc<Shared>,
    requests: MailboxSender<Request>,
    room: Arc<Semaphore>,
    queue_bytes: usize,
    stop: Shutdown,
}

impl ReplicatedMetadata {
    /// Recovers the folder's state and starts to take part. The caller holds the lock on the data folder,
    /// and serves [`ReplicatedMetadata::service`].
    pub async fn start(
        runtime: Runtime,
        config: ReplicatedConfig,
    ) -> Result<Self, MetadataStartError> {
        let founding = if config.founders.voters.is_empty() {
            Restored::default()
        } else {
            Restored::founding(config.founders.clone())
        };
        let opened = Storage::open(&runtime, &config.directory, founding).await?;
        let machine = Machine::restore(config.id, config.settings, opened.restored);
        let status = MemberStatus {
            id: config.id,
            role: machine.role(),
            term: machine.term(),
            leader: None,
            commit: machine.commit(),
            last: machine.log().last_index(),
            membership: machine.log().membership().clone(),
        };
        let shared = Arc::new(Shared::new(opened.store, status));
        let (requests, inbox) = mailbox(config.queue_length.max(1));
        let stop = Shutdown::new();
        // One permit is one byte; tokio's semaphores hold fewer than 2^32 of them.
        let queue_bytes = config.queue_bytes.clamp(1, u32::MAX as usize >> 3);
        let id = config.id;
        let beginning = Beginning {
            machine,
            storage: opened.storage,
            inbox,
            requests: requests.clone(),
            stop: stop.signal(),
        };
        let driver = Driver::new(runtime.clone(), config, Arc::clone(&shared), beginning);
        runtime.tasks.spawn("metadata member", driver.run());
        let room = Arc::new(Semaphore::new(queue_bytes));
        Ok(Self { id, shared, requests, room, queue_bytes, stop })
    }

    /// The service that takes the other members' messages.
    pub fn service(&self) -> MemberServer {
        ConsensusService::server(self.id, self.requests.clone())
    }

    /// What this member knows of its group.
    pub fn status(&self) -> MemberStatus {
        self.shared.status().clone()
    }

    /// Gives the group other voters and learners; done once the change has entered the log's committed part
    /// (a joint membership is left soon after).
    pub async fn change_members(&self, membership: Membership) -> Result<(), MetadataError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Request::Members { membership, answer }, answered).await
    }

    /// Hands leadership over, if this member leads; nothing happens if it does not work out.
    pub async fn transfer_leadership(&self, to: MemberId) {
        // A stopped member leads nobody.
        let _ = self.requests.send(Request::Transfer { to }).await;
    }

    /// Completes when the disk failed and the member takes part no longer; gives the reason. Never completes
    /// otherwise.
    pub async fn poisoned(&self) -> String {
        let ended = self.shared.wait_until_ended().await;
        if !ended.poisoned {
            std::future::pending::<()>().await;
        }
        ended.reason
    }

    /// Stops taking part; what was under way is of unknown outcome.
    pub async fn stop(&self) {
        self.stop.trigger();
        self.shared.wait_until_ended().await;
    }

    /// Bytes of the whole applied state, for tools and tests that compare states.
    pub fn snapshot(&self) -> Bytes {
        self.shared.visible().store.to_snapshot()
    }

    fn unavailable(&self) -> MetadataError {
        let reason = self.shared.ended().map_or_else(|| "stopped".to_owned(), |ended| ended.reason);
        MetadataError::Unavailable(reason)
    }

    async fn ask(
        &self,
        request: Request,
        answered: oneshot::Receiver<Result<(), MetadataError>>,
    ) -> Result<(), MetadataError> {
        if self.requests.send(request).await.is_err() {
            return Err(self.unavailable());
        }
        answered.await.unwrap_or_else(|_| Err(self.unavailable()))
    }

    /// Returns once this member has proven that it leads and has applied everything acknowledged before.
    async fn prove(&self) -> Result<(), MetadataError> {
        let (answer, answered) = oneshot::channel();
        self.ask(Request::Read { answer }, answered).await
    }

    async fn change(&self, command: Command) -> Result<Done, MetadataError> {
        command.check()?;
        let cost = u32::try_from(command.cost().min(self.queue_bytes)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).acquire_many_owned(cost).await else {
            return Err(self.unavailable());
        };
        let (answer, answered) = oneshot::channel();
        if self.requests.send(Request::Change { command, answer, room }).await.is_err() {
            return Err(self.unavailable());
        }
        answered.await.unwrap_or_else(|_| {
            Err(MetadataError::OutcomeUnknown("the member stopped before it answered".to_owned()))
        })
    }
}

#[async_trait]
impl MetadataClient for ReplicatedMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        check_key(key)?;
        self.prove().await?;
        Ok(self.shared.visible().store.get(key))
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        check_list(prefix, limit)?;
        self.prove().await?;
        Ok(self.shared.visible().store.list(prefix, after, limit))
    }

    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        match self.change(Command::Put { key: key.to_owned(), value, expect, session }).await? {
            Done::Written(version) => Ok(version),
            other => Err(unexpected(other)),
        }
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        self.change(Command::Delete { key: key.to_owned(), expect }).await.map(|_| ())
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        match self.change(Command::NextNumber { key: key.to_owned() }).await? {
            Done::Number(number) => Ok(number),
            other => Err(unexpected(other)),
        }
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        self.prove().await?;
        let mut visible = self.shared.visible();
        let Visible { store, watches } = &mut *visible;
        Ok(Box::new(watches.open(prefix, store)?))
    }

    async fn open_session(&self, time_to_live: Duration) -> Result<SessionId, MetadataError> {
        let time_to_live_ms = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
        match self.change(Command::OpenSession { time_to_live_ms }).await? {
            Done::Opened(session) => Ok(session),
            other => Err(unexpected(other)),
        }
    }

    async fn keep_alive(&self, session: SessionId) -> Result<(), MetadataError> {
        self.change(Command::KeepAlive { session }).await.map(|_| ())
    }

    async fn close_session(&self, session: SessionId) -> Result<(), MetadataError> {
        self.change(Command::CloseSession { session }).await.map(|_| ())
    }
}

fn unexpected(done: Done) -> MetadataError {
    MetadataError::OutcomeUnknown(format!("the store answered {done:?} to another question"))
}
