//! How many writes, appends and reads this node serves at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;
use crate::reached;

/// Room for calls that last.
#[derive(Clone)]
pub(super) struct Sessions {
    room: Arc<Semaphore>,
    most: usize,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, 1 << 20);
        Self { room: Arc::new(Semaphore::new(most)), most }
    }

    /// One more, until the permit is dropped.
    pub(super) fn enter(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.room).try_acquire_owned().map_err(|_| {
            reached!("grpc: too many sessions");
            Refusal::limit(format!("{} writes, appends and reads are served", self.most))
        })
    }
}
