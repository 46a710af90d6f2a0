//! Whether the node serves, for `/health/ready`.

use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::bookie::Bookie;
use crate::frontend::admin::Health;

/// The node's opinion of itself.
pub(super) struct NodeHealth {
    /// Why it does not serve, if it does not.
    reason: Mutex<Option<String>>,
    bookie: OnceLock<Bookie>,
}

impl NodeHealth {
    pub(super) fn new() -> Self {
        Self { reason: Mutex::new(Some("starting".to_owned())), bookie: OnceLock::new() }
    }

    /// Its bookie's health is the node's from now on.
    pub(super) fn watch(&self, bookie: &Bookie) {
        // A node has one bookie, told once.
        let _ = self.bookie.set(bookie.clone());
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
        match self.bookie.get().and_then(|bookie| bookie.stats().poisoned) {
            Some(reason) => Err(format!("the journal is poisoned: {reason}")),
            None => Ok(()),
        }
    }
}
