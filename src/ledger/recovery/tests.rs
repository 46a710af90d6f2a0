//! One recovery, answer by answer.

use std::time::Duration;

use bytes::Bytes;

use super::machine::{RecoveryEffect, RecoveryMachine};
use crate::domain::{
    AddAnswer, AddError, BookieId, CreatorToken, Entry, EntryId, Instant, LastAddConfirmed,
    LedgerId, ReadError,
};
use crate::ledger::{Fragment, LedgerRecord, LedgerState, Quorum};

const LEDGER: LedgerId = LedgerId(1);
const NOW: Instant = Instant(1);

const FENCED: LastAddConfirmed =
    LastAddConfirmed { last_add_confirmed: EntryId::NONE, last_entry: EntryId::NONE, fenced: true };

/// A recovery that waits for the answers to its fences.
fn fencing(quorum: (u32, u32, u32)) -> RecoveryMachine {
    let record = LedgerRecord {
        format: 1,
        ledger: LEDGER,
        creator: CreatorToken(1),
        quorum: Quorum::new(quorum.0, quorum.1, quorum.2).unwrap(),
        state: LedgerState::InRecovery,
        fragments: vec![Fragment {
            first_entry: EntryId::FIRST,
            ensemble: (1..=u64::from(quorum.0)).map(BookieId).collect(),
        }],
        purpose: String::new(),
    };
    let mut recovery = RecoveryMachine::new(record, 2, Duration::from_secs(10)).unwrap();
    assert_eq!(recovery.settle(NOW).len(), quorum.0 as usize);
    recovery
}

fn entries(range: std::ops::Range<i64>) -> Vec<Entry> {
    let payload = Bytes::from_static(b"x");
    range
        .map(|id| {
            let length = u64::try_from(id).unwrap() + 1;
            Entry::seal(LEDGER, EntryId(id), EntryId::NONE, length, payload.clone())
        })
        .collect()
}

/// Which bookies the next entry is read from.
fn asked(effects: &[RecoveryEffect]) -> Vec<BookieId> {
    let bookie = |effect: &RecoveryEffect| match effect {
        RecoveryEffect::Read { bookie, .. } => Some(*bookie),
        _ => None,
    };
    let mut bookies: Vec<BookieId> = effects.iter().filter_map(bookie).collect();
    bookies.sort_unstable();
    bookies
}

/// Two bookies answer reads but take nothing any more, and are replaced for what is written back. Their
/// replacements never saw what the writer wrote: their "absent" would be counted as the end.
#[test]
fn reads_follow_the_ensemble_that_was_written_to() {
    let ensemble: Vec<BookieId> = (1..=3).map(BookieId).collect();
    let mut recovery = fencing((3, 3, 2));
    recovery.fence_answered(0, Ok(FENCED));
    recovery.fence_answered(1, Ok(FENCED));
    assert_eq!(asked(&recovery.settle(NOW)), ensemble);
    recovery.read_answered(0, EntryId(0), Ok(entries(0..2)), NOW);
    assert_eq!(asked(&recovery.settle(NOW)), ensemble);
    for bookie in [1, 2].map(BookieId) {
        let entries = vec![EntryId(0), EntryId(1)];
        let result = Err(AddError::Poisoned("test".to_owned()));
        recovery.add_answered(AddAnswer { bookie, ledger: LEDGER, entries, result }, NOW);
    }
    let effects = recovery.settle(NOW);
    let wanted = |effect: &RecoveryEffect| match effect {
        RecoveryEffect::FindReplacements(failed) => failed == &[0, 1],
        _ => false,
    };
    assert!(effects.iter().any(wanted), "{effects:?}");
    recovery.replace(&[(0, BookieId(4)), (1, BookieId(5))]);
    assert_eq!(recovery.ensemble(), [4, 5, 3].map(BookieId));
    recovery.read_answered(0, EntryId(2), Ok(entries(2..4)), NOW);
    assert_eq!(asked(&recovery.settle(NOW)), ensemble);
}

/// Each entry is on two neighbours of four. Of every two neighbours one must have answered, and it matters which
/// two of the four did, not in which order.
#[test]
fn a_fence_counts_for_who_answered() {
    let fence = |answers: [(usize, bool); 4]| {
        let mut recovery = fencing((4, 2, 2));
        for (position, is_fenced) in answers {
            let silent = || ReadError::Unreachable("test".to_owned());
            recovery.fence_answered(position, is_fenced.then_some(FENCED).ok_or_else(silent));
        }
        recovery.settle(NOW)
    };
    let opposite = fence([(1, true), (3, true), (0, false), (2, false)]);
    assert_eq!(asked(&opposite), [1, 2].map(BookieId), "{opposite:?}");
    let neighbours = fence([(0, false), (2, true), (1, false), (3, true)]);
    assert!(matches!(neighbours[..], [RecoveryEffect::Fail(_)]), "{neighbours:?}");
}
