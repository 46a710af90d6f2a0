//! What a leader knows of one member's log.

use std::collections::VecDeque;

use super::Index;

/// How a member is fed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Feeding {
    /// Where the logs agree is not known: one `Append` at a time, the next one on its answer or the next
    /// heartbeat.
    Probe {
        /// One is on its way.
        waiting: bool,
    },
    /// The logs agree: many `Append`s at once. The last index of each unanswered one.
    Replicate { inflight: VecDeque<Index> },
    /// What the member needs is no longer in the log: it is sent the snapshot, piece by piece.
    Snapshot {
        /// The snapshot's index; another one begins anew.
        index: Index,
        /// The piece on its way begins here.
        offset: u64,
    },
}

/// What a leader knows of one member's log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// Both logs agree up to here, durably. Never goes back within a term.
    pub(super) matched: Index,
    /// The next entry to send.
    pub(super) next: Index,
    pub(super) feeding: Feeding,
    /// Heard since the last quorum check.
    pub(super) active: bool,
    /// The newest read round this member answered.
    pub(super) round: u64,
}

impl Progress {
    /// A member of which nothing is known, tried from `next`.
    pub(super) fn new(next: Index) -> Self {
        Self {
            matched: 0,
            next,
            feeding: Feeding::Probe { waiting: false },
            active: false,
            round: 0,
        }
    }

    /// Falls back to asking where the logs agree.
    pub(super) fn probe(&mut self, next: Index) {
        self.next = next.max(self.matched + 1);
        self.feeding = Feeding::Probe { waiting: false };
    }
}
