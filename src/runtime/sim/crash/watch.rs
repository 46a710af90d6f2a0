//! Watching a node for moments at which its power may go, and starting it with what one of them left.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{CrashPoint, Surviving};
use crate::runtime::sim::lock;
use crate::runtime::sim::node::{NodeState, SimNode};
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::Shared;

/// What happens at a [`CrashPoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashOccasion {
    /// A sync has begun: what it covers is not durable yet.
    SyncBegun,
    /// A sync has succeeded, and whoever waits for it does not know yet.
    SyncDone,
    /// Whoever watches asked.
    Asked,
}

/// Takes the points; called in the midst of an operation, so it must not use the node.
pub(in crate::runtime::sim) type CrashWatch = Arc<dyn Fn(CrashPoint) + Send + Sync>;

impl NodeState {
    /// Tells whoever watches of a moment; `path` is what is synced.
    pub(in crate::runtime::sim) fn crash_point(
        &self,
        shared: &Shared,
        occasion: CrashOccasion,
        path: &Path,
    ) {
        let Some(watch) = lock(&self.crash_watch).clone() else { return };
        let disk = lock(&self.disk).fork();
        let indexes = lock(&self.indexes).fork();
        let at = Duration::from_nanos(shared.now());
        watch(CrashPoint::new((occasion, path.to_owned()), at, disk, indexes));
    }
}

impl SimNode {
    /// Gives every [`CrashPoint`] of the node from now on to `takes`, in the midst of the operation: it must
    /// not use the node. Nothing else changes: the run is the same as without.
    pub fn watch_crash_points(&self, takes: impl Fn(CrashPoint) + Send + Sync + 'static) {
        *lock(&self.state.crash_watch) = Some(Arc::new(takes));
    }

    /// Watches no longer.
    pub fn watch_no_crash_points(&self) {
        *lock(&self.state.crash_watch) = None;
    }

    /// This moment, given to whoever watches under a path of the caller's.
    pub fn ask_crash_point(&self, path: &Path) {
        self.state.crash_point(&self.shared, CrashOccasion::Asked, path);
    }

    /// Puts what a power loss left in place of the disk and the indexes of a node that is down. False, and
    /// nothing done, if it runs.
    pub fn mount(&self, surviving: &Surviving) -> bool {
        if self.is_running() {
            return false;
        }
        lock(&self.state.disk).mount(&surviving.disk);
        lock(&self.state.indexes).mount(&surviving.indexes);
        self.shared.event(EventKind::DiskFault, [u64::from(self.id()), 0, 4]);
        true
    }
}
