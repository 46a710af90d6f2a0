//! Whether the node serves, for `/health/ready`.

use std::sync::{Mutex, MutexGuard};

use crate::bookie::Bookie;
use crate::frontend::admin::Health;

/// The node's opinion of itself.
pub(super) struct NodeHealth {
    /// Why it does not serve, if it does not.
    reason: Mutex<Option<String>>,
    bookie: Option<Bookie>,
}

impl NodeHealth {
    pub(super) fn new(bookie: Option<Bookie>) -> Self {
        Self { reason: Mutex::new(Some("starting".to_owned())), bookie }
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn ready_now(&self) {
        *self.reason() = None;
    }

    pub(super) fn not_ready(&self, reason: &str) {
        *self.reason() = Some(reason.to_owned());
    }
}

impl Health for NodeHealth {
    fn ready(&self) -> Result<(), String> {
        if let Some(reason) = self.reason().clone() {
            return Err(reason);
        }
        match self.bookie.as_ref().and_then(|bookie| bookie.stats().poisoned) {
            Some(reason) => Err(format!("the journal is poisoned: {reason}")),
            None => Ok(()),
        }
    }
}
