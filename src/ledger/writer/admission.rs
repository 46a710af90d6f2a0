//! The window between the caller of `append` and the writer's task: gives ids, bounds what is pending.

use std::sync::{Mutex, MutexGuard};

use crate::domain::EntryId;

/// The numbers both sides share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The next id to give.
    pub(super) next: EntryId,
    /// The highest committed entry.
    pub(super) confirmed: EntryId,
    /// Payload bytes up to and including it.
    pub(super) confirmed_length: u64,
    /// Payload bytes given ids and not committed.
    pub(super) pending_bytes: usize,
    /// Takes nothing any more.
    pub(super) ended: bool,
}

impl Window {
    /// Entries given ids and not committed.
    pub(super) fn pending_entries(&self) -> usize {
        usize::try_from(self.next.0 - 1 - self.confirmed.0).unwrap_or(0)
    }

    /// True if `entries` of `bytes` more fit. Something larger than the whole window fits when nothing
    /// is pending: refusing it would be for ever.
    pub(super) fn has_room(
        &self,
        entries: usize,
        bytes: usize,
        entries_max: usize,
        bytes_max: usize,
    ) -> bool {
        let pending = self.pending_entries();
        pending == 0
            || (pending + entries <= entries_max && self.pending_bytes + bytes <= bytes_max)
    }
}

/// [`Window`] behind its lock; held for a few instructions, never across an await.
pub(super) struct Admission(Mutex<Window>);

impl Admission {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Window {
            next: EntryId::FIRST,
            confirmed: EntryId::NONE,
            confirmed_length: 0,
            pending_bytes: 0,
            ended: false,
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Window> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_bounded_but_never_refuses_for_ever() {
        let admission = Admission::new();
        let mut window = admission.lock();
        assert!(window.has_room(100, 100, 2, 10));
        window.next = EntryId(2);
        window.pending_bytes = 4;
        assert!(!window.has_room(1, 1, 2, 10));
        window.confirmed = EntryId(0);
        assert!(window.has_room(1, 6, 2, 10));
        assert!(!window.has_room(1, 7, 2, 10));
    }
}
