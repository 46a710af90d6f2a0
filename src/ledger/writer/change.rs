//! Replacing bookies in the record of an open ledger. The record comes first: only when metadata names
//! the new ensemble are entries confirmed under it.

use std::time::Duration;

use super::machine::ChangeOutcome;
use crate::domain::{BookieId, EntryId, LedgerId};
use crate::ledger::records::{Records, Swap};
use crate::ledger::{Fragment, LedgerRecord, LedgerState};
use crate::runtime::Clock;
use crate::{in_state, invariant, mutant, reached};

/// Pause between attempts while metadata cannot be asked.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads, edits and puts the record until the outcome is certain. Older fragments are always taken from
/// the store: repair may have changed them. Runs until certain; the writer's add time-out bounds its use.
pub(super) async fn change_ensemble(
    records: &Records,
    clock: &Clock,
    ledger: LedgerId,
    start: EntryId,
    replacements: &[(BookieId, BookieId)],
    is_abandoned: impl Fn() -> bool,
) -> ChangeOutcome {
    let _state = in_state!("ledger: an ensemble changes");
    let mut stale = None;
    while !is_abandoned() {
        let found = match records.load(ledger).await {
            Ok(Some(found)) if found.record.state == LedgerState::Open => found,
            Ok(_) => return ChangeOutcome::Deposed,
            Err(_) => {
                clock.sleep(PAUSE).await;
                continue;
            }
        };
        let mut record = found.record;
        if mutant!("L10") {
            record = stale.get_or_insert(record).clone();
        }
        match edit(&mut record, start, replacements) {
            // None of those to go is there any more: an earlier attempt, whose answer was lost, was made.
            Edit::Nothing(ensemble) => return ChangeOutcome::Done(ensemble),
            Edit::Made(ensemble) => match records.swap(&record, found.version).await {
                Ok(Swap::Done(_)) => return ChangeOutcome::Done(ensemble),
                Ok(Swap::ReadAgain) => reached!("ledger writer: ensemble change read again"),
                Err(_) => {}
            },
        }
        clock.sleep(PAUSE).await;
    }
    ChangeOutcome::NotDone
}

enum Edit {
    Nothing(Vec<BookieId>),
    Made(Vec<BookieId>),
}

fn edit(record: &mut LedgerRecord, start: EntryId, replacements: &[(BookieId, BookieId)]) -> Edit {
    let Some(last) = record.fragments.last_mut() else { return Edit::Nothing(Vec::new()) };
    invariant!(
        start >= last.first_entry,
        "ledger {}: ensemble change at {start} before the last fragment at {}",
        record.ledger,
        last.first_entry
    );
    let mut ensemble = last.ensemble.clone();
    let mut is_changed = false;
    for (from, to) in replacements {
        if ensemble.contains(to) {
            continue;
        }
        if let Some(place) = ensemble.iter_mut().find(|bookie| *bookie == from) {
            *place = *to;
            is_changed = true;
        }
    }
    if !is_changed {
        return Edit::Nothing(ensemble);
    }
    if start == last.first_entry {
        last.ensemble.clone_from(&ensemble);
    } else {
        record.fragments.push(Fragment { first_entry: start, ensemble: ensemble.clone() });
    }
    Edit::Made(ensemble)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CreatorToken;
    use crate::ledger::Quorum;

    #[test]
    fn a_change_replaces_an_empty_fragment_and_adds_after_a_used_one() {
        let ids = |list: &[u64]| list.iter().copied().map(BookieId).collect::<Vec<_>>();
        let mut record = LedgerRecord {
            format: 1,
            ledger: LedgerId(1),
            creator: CreatorToken(1),
            quorum: Quorum::new(3, 3, 2).unwrap(),
            state: LedgerState::Open,
            fragments: vec![Fragment { first_entry: EntryId(0), ensemble: ids(&[1, 2, 3]) }],
            purpose: String::new(),
        };
        assert!(matches!(
            edit(&mut record, EntryId(0), &[(BookieId(2), BookieId(4))]),
            Edit::Made(_)
        ));
        assert_eq!(record.fragments.len(), 1);
        assert!(matches!(
            edit(&mut record, EntryId(7), &[(BookieId(1), BookieId(5))]),
            Edit::Made(_)
        ));
        assert_eq!(record.fragments[1].ensemble, ids(&[5, 4, 3]));
        assert_eq!(record.fragments[0].ensemble, ids(&[1, 4, 3]));
        assert!(matches!(
            edit(&mut record, EntryId(7), &[(BookieId(1), BookieId(5))]),
            Edit::Nothing(_)
        ));
    }
}
