//! What there is to do for one ledger: a pure function of its record, what was seen, and how its bookies
//! stand. Only fragments that can grow no more are moved between bookies.

use super::{Flaw, FlawKind, Standing};
use crate::domain::{BookieId, EntryId};
use crate::ledger::{Fragment, LedgerRecord, LedgerState};
use crate::mutant;

/// What to do about one place in an ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAction {
    /// The bookie is lost or leaving: give its place to another, after that one holds everything.
    Replace,
    /// The bookie stays: write the copies it lacks, or holds damaged, again.
    Refill,
}

/// One place in one fragment's ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairTask {
    /// The fragment, by its first entry.
    pub fragment: EntryId,
    /// The place in its ensemble.
    pub position: usize,
    /// Who is there.
    pub bookie: BookieId,
    /// What to do.
    pub action: RepairAction,
    /// The last entry to copy; below `fragment` if there is none.
    pub last: EntryId,
}

/// All there is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairPlan {
    /// Places to repair, in order.
    pub tasks: Vec<RepairTask>,
    /// The last fragment still may grow and names a lost or leaving bookie: it must be fenced first.
    pub has_open_tail: bool,
    /// A bookie with missing or damaged copies does not answer now.
    pub is_waiting: bool,
}

impl RepairPlan {
    /// Nothing is left to do.
    pub fn is_clean(&self) -> bool {
        self.tasks.is_empty() && !self.has_open_tail && !self.is_waiting
    }
}

/// How far a fragment's entries are known to be confirmed.
pub(super) struct Extent<'a> {
    pub(super) fragment: &'a Fragment,
    /// The last of them; below the fragment's first if there is none.
    pub(super) last: EntryId,
    /// Entries may still be confirmed under this ensemble.
    pub(super) can_grow: bool,
}

/// The extents of all fragments; `confirmed` as for [`plan`].
pub(super) fn extents(
    record: &LedgerRecord,
    confirmed: EntryId,
) -> impl Iterator<Item = Extent<'_>> {
    record.fragments.iter().enumerate().map(move |(index, fragment)| {
        let next = record.fragments.get(index + 1);
        // What precedes a later fragment was confirmed before that one was begun.
        let (last, can_grow) = match (next, record.state) {
            (Some(next), LedgerState::Closed { last_entry, .. }) => {
                (next.first_entry.previous().min(last_entry), false)
            }
            (Some(next), _) => (next.first_entry.previous(), false),
            (None, LedgerState::Closed { last_entry, .. }) => (last_entry, false),
            (None, LedgerState::Open | LedgerState::InRecovery) => (confirmed, !mutant!("R-tail")),
        };
        Extent { fragment, last, can_grow }
    })
}

/// Makes the plan. `confirmed` is the highest entry of a ledger that is not closed of which it is certain
/// that it was confirmed: up to it an open tail's copies may be completed in place (every entry there is
/// described by this fragment for ever), but nothing of an open tail is moved.
pub fn plan(
    record: &LedgerRecord,
    flaws: &[Flaw],
    standing: impl Fn(BookieId) -> Standing,
    confirmed: EntryId,
) -> RepairPlan {
    let mut plan = RepairPlan::default();
    for Extent { fragment, last, can_grow } in extents(record, confirmed) {
        for (position, bookie) in fragment.ensemble.iter().copied().enumerate() {
            let seen = flaws.iter().filter(|flaw| flaw.bookie == bookie);
            let (mut leaves, mut lacks) = (false, false);
            for flaw in seen {
                match flaw.kind {
                    FlawKind::Lost | FlawKind::Draining => leaves = true,
                    FlawKind::Absent | FlawKind::Corrupt => lacks = true,
                }
            }
            let task = |action| RepairTask {
                fragment: fragment.first_entry,
                position,
                bookie,
                action,
                last,
            };
            match standing(bookie) {
                // It came back, or was told to stay.
                Standing::Serving if !lacks => {}
                Standing::Serving if last < fragment.first_entry => {}
                Standing::Serving => plan.tasks.push(task(RepairAction::Refill)),
                Standing::Missing if !leaves => plan.is_waiting |= lacks,
                Standing::Draining if !leaves && !lacks => {}
                Standing::Missing | Standing::Draining if can_grow => plan.has_open_tail = true,
                Standing::Missing | Standing::Draining => {
                    plan.tasks.push(task(RepairAction::Replace));
                }
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{CreatorToken, LedgerId};
    use crate::ledger::Quorum;

    fn record(state: LedgerState) -> LedgerRecord {
        let fragment = |first, ids: [u64; 3]| Fragment {
            first_entry: EntryId(first),
            ensemble: ids.into_iter().map(BookieId).collect(),
        };
        LedgerRecord {
            format: 1,
            ledger: LedgerId(7),
            creator: CreatorToken(1),
            quorum: Quorum { ensemble: 3, write: 3, ack: 2 },
            state,
            fragments: vec![fragment(0, [1, 2, 3]), fragment(10, [1, 4, 3])],
            purpose: "test".to_owned(),
        }
    }

    fn lost(bookie: u64) -> Flaw {
        Flaw { bookie: BookieId(bookie), kind: FlawKind::Lost }
    }

    fn missing(bookie: u64) -> impl Fn(BookieId) -> Standing {
        move |id| if id.0 == bookie { Standing::Missing } else { Standing::Serving }
    }

    #[test]
    fn an_open_tail_is_never_moved() {
        let open = record(LedgerState::Open);
        let made = plan(&open, &[lost(1)], missing(1), EntryId(12));
        assert_eq!(made.tasks.len(), 1);
        assert_eq!((made.tasks[0].fragment, made.tasks[0].last), (EntryId(0), EntryId(9)));
        assert!(made.has_open_tail);
        let tail_is_well = plan(&open, &[lost(2)], missing(2), EntryId(12));
        assert!(!tail_is_well.has_open_tail && tail_is_well.tasks.len() == 1);
        let in_recovery = record(LedgerState::InRecovery);
        assert!(plan(&in_recovery, &[lost(4)], missing(4), EntryId(12)).has_open_tail);
    }

    #[test]
    fn a_closed_ledger_is_moved_up_to_its_end() {
        let closed = record(LedgerState::Closed { last_entry: EntryId(11), length: 1 });
        let made = plan(&closed, &[lost(3)], missing(3), EntryId::NONE);
        let lasts: Vec<_> = made.tasks.iter().map(|task| task.last).collect();
        assert_eq!(lasts, [EntryId(9), EntryId(11)]);
        assert!(made.tasks.iter().all(|task| task.action == RepairAction::Replace));
        // Not in the record any more, or back again: nothing to do.
        assert!(plan(&closed, &[lost(9)], missing(9), EntryId::NONE).is_clean());
        assert!(plan(&closed, &[lost(3)], missing(9), EntryId::NONE).is_clean());
    }

    #[test]
    fn damaged_copies_are_completed_where_they_are() {
        let closed = record(LedgerState::Closed { last_entry: EntryId(11), length: 1 });
        let corrupt = [Flaw { bookie: BookieId(4), kind: FlawKind::Corrupt }];
        let made = plan(&closed, &corrupt, missing(9), EntryId::NONE);
        assert_eq!(made.tasks.len(), 1);
        assert_eq!(made.tasks[0].action, RepairAction::Refill);
        assert!(plan(&closed, &corrupt, missing(4), EntryId::NONE).is_waiting);
    }
}
