//! A port for whoever holds the members of a group against each other.

use std::sync::Arc;

use crate::metadata::consensus::{Entry, Machine, MemberId, SnapshotMark};

/// Told what a member does, in the order in which it does it. Called by the member's own task: it must not
/// wait.
pub trait MemberObserver: Send + Sync {
    /// The member leads its term from now on.
    fn leads(&self, machine: &Machine);
    /// The member applied a committed entry.
    fn applied(&self, machine: &Machine, entry: &Entry);
    /// The member took another's state in place of its own.
    fn installed(&self, member: MemberId, mark: &SnapshotMark);
}

/// An observer, or none.
#[derive(Clone, Default)]
pub struct Observer(pub Option<Arc<dyn MemberObserver>>);

impl Observer {
    pub(super) fn tell(&self, what: impl FnOnce(&dyn MemberObserver)) {
        if let Some(observer) = &self.0 {
            what(&**observer);
        }
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.0.is_some() { "Observer" } else { "none" })
    }
}
