//! The handle of a member: the contract for users in the same process. Only the leader answers; any other
//! member says who leads.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

use super::ReplicatedConfig;
use super::driver::{Beginning, Driver, Request};
use super::introduction::Introduction;
use super::service::{ConsensusService, MemberServer};
use super::shared::{MemberStatus, Shared, Visible};
use super::storage::Storage;
use crate::metadata::consensus::{Machine, MemberId, Restored, Role};
use crate::metadata::store::{Command, Done, Store};
use crate::metadata::store_watch::StoreWatch;
use crate::metadata::{MetadataError, MetadataStartError, MetadataStore, Revision};
use crate::mutant;
use crate::runtime::{Clock, MailboxSender, Runtime, Shutdown, mailbox};

/// A running member of a metadata group. Cheap to clone; stops when told to, or with its node.
#[derive(Clone)]
pub struct ReplicatedMetadata {
    id: MemberId,
    pub(super) shared: Arc<Shared>,
    pub(super) requests: MailboxSender<Request>,
    pub(super) clock: Clock,
    introduction: Introduction,
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
        // First: what is promised from here on is promised by this incarnation.
        let introduction = Introduction::open(&runtime, &config).await?;
        let opened = Storage::open(&runtime, &config.directory, founding).await?;
        let machine = Machine::restore(config.id, config.settings, opened.restored);
        config.observer.tell(|observer| observer.restored(&machine));
        let status = MemberStatus {
            id: config.id,
            role: machine.role(),
            term: machine.term(),
            leader: None,
            commit: machine.commit(),
            last: machine.log().last_index(),
            membership: machine.log().membership().clone(),
            matched: BTreeMap::new(),
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
            introduction: introduction.clone(),
            stop: stop.signal(),
        };
        let driver = Driver::new(runtime.clone(), config, Arc::clone(&shared), beginning);
        runtime.tasks.spawn("metadata member", driver.run());
        let room = Arc::new(Semaphore::new(queue_bytes));
        let clock = runtime.clock.clone();
        Ok(Self { id, shared, requests, clock, introduction, room, queue_bytes, stop })
    }

    /// The service that takes the other members' messages.
    pub fn service(&self) -> MemberServer {
        ConsensusService::server(self.id, self.requests.clone(), self.introduction.clone())
    }

    /// What this member knows of its group.
    pub fn status(&self) -> MemberStatus {
        self.shared.status().clone()
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

    pub(super) fn unavailable(&self) -> MetadataError {
        let reason = self.shared.ended().map_or_else(|| "stopped".to_owned(), |ended| ended.reason);
        MetadataError::Unavailable(reason)
    }

    pub(super) async fn ask(
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
    pub(super) async fn prove(&self) -> Result<(), MetadataError> {
        if mutant!("M-stale-read") && self.status().role == Role::Leader {
            return Ok(());
        }
        let (answer, answered) = oneshot::channel();
        self.ask(Request::Read { answer }, answered).await
    }
}

#[async_trait]
impl MetadataStore for ReplicatedMetadata {
    async fn catch_up(&self) -> Result<(), MetadataError> {
        self.prove().await
    }

    fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.shared.visible().store)
    }

    async fn watch_after(
        &self,
        prefix: &str,
        after: Option<Revision>,
    ) -> Result<StoreWatch, MetadataError> {
        self.prove().await?;
        let mut visible = self.shared.visible();
        let Visible { store, watches } = &mut *visible;
        StoreWatch::begin(watches, store, prefix, after)
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
