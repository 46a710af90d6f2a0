//! The handle of a single-node store: what its users in the same process hold.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, oneshot};

use super::writer::{Request, Writer};
use super::{SingleNodeConfig, recovery};
use crate::metadata::MetadataStartError;
use crate::metadata::durable::remove_logs;
use crate::metadata::store::{Command, Done, Store, Watches};
use crate::metadata::store_watch::StoreWatch;
use crate::metadata::{MetadataError, MetadataStore, Revision};
use crate::runtime::{MailboxSender, Runtime, Shutdown, mailbox};

/// What readers see: durable changes only.
pub(super) struct Visible {
    pub(super) store: Store,
    pub(super) watches: Watches,
}

/// Between handles and the writer.
pub(super) struct Shared {
    visible: Mutex<Visible>,
    ended: Mutex<Option<Ended>>,
    ended_changed: Notify,
}

/// Why no more changes are taken.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) reason: String,
    pub(super) poisoned: bool,
}

/// A running store. Cheap to clone; stops when told to, or with its node.
#[derive(Clone)]
pub struct SingleNodeMetadata {
    shared: Arc<Shared>,
    requests: MailboxSender<Request>,
    room: Arc<Semaphore>,
    queue_bytes: usize,
    stop: Shutdown,
}

impl Shared {
    pub(super) fn visible(&self) -> MutexGuard<'_, Visible> {
        self.visible.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn end(&self, ended: Ended) {
        let mut state = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if state.is_none() {
            *state = Some(ended);
        }
        drop(state);
        self.ended_changed.notify_waiters();
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    async fn wait_until_ended(&self) -> Ended {
        loop {
            let changed = self.ended_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(ended) = self.ended() {
                return ended;
            }
            changed.await;
        }
    }
}

impl SingleNodeMetadata {
    /// Recovers the folder's state (an empty one begins an empty store) and starts the writer. The
    /// caller holds the lock on the data folder.
    pub async fn start(
        runtime: Runtime,
        config: SingleNodeConfig,
    ) -> Result<Self, MetadataStartError> {
        let recovered = recovery::recover(&runtime, &config.directory).await?;
        let shared = Arc::new(Shared {
            visible: Mutex::new(Visible {
                watches: Watches::behind(recovered.store.revision()),
                store: recovered.store,
            }),
            ended: Mutex::new(None),
            ended_changed: Notify::new(),
        });
        let (requests, inbox) = mailbox(config.queue_length.max(1));
        let stop = Shutdown::new();
        // One permit is one byte; tokio's semaphores hold fewer than 2^32 of them.
        let queue_bytes = config.queue_bytes.clamp(1, u32::MAX as usize >> 3);
        remove_logs(&runtime.disk, &config.directory, recovered.old_logs).await?;
        let writer = Writer::new(
            runtime.clone(),
            config,
            Arc::clone(&shared),
            inbox,
            recovered.log,
            stop.signal(),
        );
        runtime.tasks.spawn("metadata writer", writer.run());
        Ok(Self {
            shared,
            requests,
            room: Arc::new(Semaphore::new(queue_bytes)),
            queue_bytes,
            stop,
        })
    }

    /// Completes when the disk failed and the store takes no more changes; gives the reason. Never
    /// completes otherwise.
    pub async fn poisoned(&self) -> String {
        let ended = self.shared.wait_until_ended().await;
        if !ended.poisoned {
            std::future::pending::<()>().await;
        }
        ended.reason
    }

    /// Stops: changes already being written are finished and answered, those behind them and all later
    /// calls answer `Unavailable`; watches end.
    pub async fn stop(&self) {
        self.stop.trigger();
        self.shared.wait_until_ended().await;
    }

    /// Bytes of the whole durable state, for tools and tests that compare states.
    pub fn snapshot(&self) -> Bytes {
        self.shared.visible().store.to_snapshot()
    }

    fn unavailable(&self) -> MetadataError {
        let reason = self.shared.ended().map_or_else(|| "stopped".to_owned(), |ended| ended.reason);
        MetadataError::Unavailable(reason)
    }
}

#[async_trait]
impl MetadataStore for SingleNodeMetadata {
    async fn catch_up(&self) -> Result<(), MetadataError> {
        match self.shared.ended() {
            Some(ended) if !ended.poisoned => Err(MetadataError::Unavailable(ended.reason)),
            _ => Ok(()),
        }
    }

    fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.shared.visible().store)
    }

    async fn watch_after(
        &self,
        prefix: &str,
        after: Option<Revision>,
    ) -> Result<StoreWatch, MetadataError> {
        self.catch_up().await?;
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
        if self.requests.send(Request { command, answer, room }).await.is_err() {
            return Err(self.unavailable());
        }
        // Without an answer the writer was cut off in the middle of its work.
        answered.await.unwrap_or_else(|_| {
            Err(MetadataError::OutcomeUnknown("the store stopped before it answered".to_owned()))
        })
    }
}
