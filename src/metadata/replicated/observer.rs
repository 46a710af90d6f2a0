//! A port for whoever holds the members of a group against each other.

use std::sync::Arc;

use crate::metadata::consensus::{
    Entry, HardState, Machine, MemberId, Message, SnapshotMark, Write,
};

/// Told what a member does, in the order in which it does it. Called by the member's own task: it must not
/// wait.
pub trait MemberObserver: Send + Sync {
    /// The member leads its term from now on.
    fn leads(&self, machine: &Machine);
    /// The member applied a committed entry.
    fn applied(&self, machine: &Machine, entry: &Entry);
    /// The member took another's state in place of its own.
    fn installed(&self, member: MemberId, mark: &SnapshotMark);

    /// The member begins with what it found on its disk.
    fn restored(&self, _machine: &Machine) {}
    /// The member is going to write this.
    fn writes(&self, _member: MemberId, _write: &Write) {}
    /// The member is going to take another's state in place of its own, with this term, vote and log behind it.
    fn installs(
        &self,
        _member: MemberId,
        _mark: &SnapshotMark,
        _hard_state: HardState,
        _entries: &[Entry],
    ) {
    }
    /// The member tells another something.
    fn says(&self, _member: MemberId, _to: MemberId, _message: &Message) {}
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
