//! Lying in wait on a node: wakes the fault plan at a moment that it would hardly ever hit by drawing times,
//! such as the middle of a sync.

use super::lock;
use super::node::{NodeState, SimNode};
use super::world::{Shared, World};

/// What a fault may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A sync of a file or folder has begun: what it covers is not durable yet.
    SyncBegun,
    /// A sync has succeeded: whoever waited for it has not been told yet.
    SyncDone,
}

/// Waiting for the n-th occasion of a kind.
pub(super) struct Ambush {
    occasion: Occasion,
    left: u64,
}

impl NodeState {
    /// Something happened that a fault may wait for.
    pub(super) fn occasion(&self, shared: &Shared, occasion: Occasion) {
        let mut ambush = lock(&self.ambush);
        if let Some(ambush) = ambush.as_mut()
            && ambush.occasion == occasion
            && ambush.left > 0
        {
            ambush.left -= 1;
            if ambush.left == 0 {
                shared.sprung.notify_one();
            }
        }
    }
}

impl SimNode {
    /// Waits for the `nth` occasion from now on, counted from 1; in place of what was waited for before.
    pub fn lie_in_wait(&self, occasion: Occasion, nth: u64) {
        *lock(&self.state.ambush) = Some(Ambush { occasion, left: nth.max(1) });
    }

    /// True, once, when the occasion has come. No time passes between the occasion and a plan that waits
    /// for [`World::sprung`].
    pub fn has_sprung(&self) -> bool {
        lock(&self.state.ambush).take_if(|ambush| ambush.left == 0).is_some()
    }

    /// Waits no longer.
    pub fn leave_ambush(&self) {
        *lock(&self.state.ambush) = None;
    }
}

impl World {
    /// Completes when an occasion waited for on some node comes, or has come since the last time.
    pub async fn sprung(&self) {
        self.0.sprung.notified().await;
    }
}
