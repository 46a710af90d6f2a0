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
    fencing_to_read(quorum, 2)
}

/// The same, reading so many entries at once.
fn fencing_to_read(quorum: (u32, u32, u32), batch: u32) -> RecoveryMachine {
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
    let mut recovery = RecoveryMachine::new(record, batch, Duration::from_secs(10)).unwrap();
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

/// A recovery of 3/3/2 that has found these entries, and has sent them to bookies 1 to 3.
fn writing_back(found: i64) -> RecoveryMachine {
    let mut recovery = fencing((3, 3, 2));
    recovery.fence_answered(0, Ok(FENCED));
    recovery.fence_answered(1, Ok(FENCED));
    recovery.settle(NOW);
    recovery.read_answered(0, EntryId(0), Ok(entries(0..found)), NOW);
    assert_eq!(sent(&recovery.settle(NOW)), [1, 2, 3].map(|bookie| (bookie, 0..found)));
    recovery
}

/// Whom which entries are sent to.
fn sent(effects: &[RecoveryEffect]) -> Vec<(u64, std::ops::Range<i64>)> {
    let add = |effect: &RecoveryEffect| match effect {
        RecoveryEffect::Add { bookie, entries } => {
            Some((bookie.0, entries.first()?.entry.0..entries.last()?.entry.0 + 1))
        }
        _ => None,
    };
    effects.iter().filter_map(add).collect()
}

fn answer(
    recovery: &mut RecoveryMachine,
    bookie: u64,
    ids: std::ops::Range<i64>,
    result: Result<(), AddError>,
    now: Instant,
) {
    let entries = ids.map(EntryId).collect();
    let answer = AddAnswer { bookie: BookieId(bookie), ledger: LEDGER, entries, result };
    recovery.add_answered(answer, now);
}

fn ends(effects: &[RecoveryEffect]) -> Option<&RecoveryEffect> {
    let is_end = |effect: &&RecoveryEffect| {
        matches!(effect, RecoveryEffect::Close(_) | RecoveryEffect::Fail(_))
    };
    effects.iter().find(is_end)
}

fn poisoned() -> Result<(), AddError> {
    Err(AddError::Poisoned("test".to_owned()))
}

/// The record will name the bookie that took the place; that one has nothing yet.
#[test]
fn what_a_replaced_bookie_took_counts_no_more() {
    let mut recovery = writing_back(2);
    answer(&mut recovery, 1, 0..1, Ok(()), NOW);
    answer(&mut recovery, 1, 1..2, poisoned(), NOW);
    recovery.settle(NOW);
    recovery.replace(&[(0, BookieId(4))]);
    assert_eq!(sent(&recovery.settle(NOW)), [(4, 0..2)]);
    for position in 0..2 {
        recovery.read_answered(position, EntryId(2), Err(ReadError::Absent), NOW);
    }
    answer(&mut recovery, 3, 0..2, Ok(()), NOW);
    answer(&mut recovery, 2, 1..2, Ok(()), NOW);
    let later = NOW + Duration::from_secs(1);
    assert!(ends(&recovery.settle(later)).is_none(), "of the first entry there is one copy");
    answer(&mut recovery, 4, 0..1, Ok(()), later);
    recovery.settle(later);
    let effects = recovery.settle(later + Duration::from_secs(1));
    let Some(RecoveryEffect::Close(end)) = ends(&effects) else { panic!("{effects:?}") };
    assert_eq!((end.last_entry, end.length), (EntryId(1), 2));
    let whole = Fragment { first_entry: EntryId(0), ensemble: [4, 2, 3].map(BookieId).to_vec() };
    assert_eq!(end.tail, [whole]);
}

/// What is on an ack quorum stays where it was written; only what follows is elsewhere.
#[test]
fn a_replacement_begins_behind_what_is_secured() {
    let mut recovery = writing_back(2);
    answer(&mut recovery, 1, 0..1, Ok(()), NOW);
    answer(&mut recovery, 2, 0..2, Ok(()), NOW);
    answer(&mut recovery, 3, 0..2, poisoned(), NOW);
    recovery.settle(NOW);
    recovery.replace(&[(2, BookieId(4))]);
    assert_eq!(sent(&recovery.settle(NOW)), [(4, 1..2)]);
    answer(&mut recovery, 4, 1..2, Ok(()), NOW);
    for position in 0..2 {
        recovery.read_answered(position, EntryId(2), Err(ReadError::Absent), NOW);
    }
    recovery.settle(NOW);
    let effects = recovery.settle(NOW + Duration::from_secs(1));
    let Some(RecoveryEffect::Close(end)) = ends(&effects) else { panic!("{effects:?}") };
    let fragment = |first: i64, ensemble: [u64; 3]| Fragment {
        first_entry: EntryId(first),
        ensemble: ensemble.map(BookieId).to_vec(),
    };
    assert_eq!(end.tail, [fragment(0, [1, 2, 3]), fragment(1, [1, 2, 4])]);
}

#[test]
fn an_entry_that_a_bookie_did_not_take_is_sent_again() {
    let mut recovery = writing_back(2);
    answer(&mut recovery, 3, 0..1, Ok(()), NOW);
    answer(&mut recovery, 3, 1..2, Err(AddError::Overloaded), NOW);
    assert_eq!(sent(&recovery.settle(NOW)), []);
    assert_eq!(sent(&recovery.settle(NOW + Duration::from_millis(10))), [(3, 1..2)]);
}

/// Bookies that will never take anything are not waited for; others may come back.
#[test]
fn a_write_back_without_hope_ends_at_once() {
    let fail = |error: AddError, bookies: &[u64]| {
        let mut recovery = writing_back(1);
        for bookie in bookies {
            answer(&mut recovery, *bookie, 0..1, Err(error.clone()), NOW);
        }
        recovery.settle(NOW);
        recovery.replace(&[]);
        recovery
    };
    let is_over = |recovery: &mut RecoveryMachine, after| {
        matches!(ends(&recovery.settle(NOW + after)), Some(RecoveryEffect::Fail(_)))
    };
    let (soon, limit) = (Duration::from_millis(1), Duration::from_secs(10));
    let firm = AddError::Poisoned("test".to_owned());
    assert!(is_over(&mut fail(firm.clone(), &[1, 2]), soon));
    for mut hopeful in [fail(firm, &[1]), fail(AddError::Overloaded, &[1, 2])] {
        assert!(!is_over(&mut hopeful, soon));
        assert!(!is_over(&mut hopeful, limit - soon));
        assert!(is_over(&mut hopeful, limit));
    }
}

/// What a bookie took before it failed for good is not lost.
#[test]
fn a_copy_on_a_bookie_that_failed_later_leaves_hope() {
    let mut recovery = fencing((4, 3, 2));
    for position in 0..3 {
        recovery.fence_answered(position, Ok(FENCED));
    }
    recovery.read_answered(0, EntryId(0), Ok(entries(0..1)), NOW);
    recovery.settle(NOW);
    recovery.read_answered(1, EntryId(1), Ok(entries(1..2)), NOW);
    recovery.settle(NOW);
    answer(&mut recovery, 1, 0..1, poisoned(), NOW);
    answer(&mut recovery, 2, 0..1, Ok(()), NOW);
    answer(&mut recovery, 2, 1..2, poisoned(), NOW);
    recovery.settle(NOW);
    recovery.replace(&[]);
    let effects = recovery.settle(NOW + Duration::from_secs(1));
    assert!(ends(&effects).is_none(), "two of each write set can still have it: {effects:?}");
}

/// A ledger may have more to recover than is held, and a bookie that is silent must not hold it all up.
#[test]
fn recovery_reads_on_as_far_as_it_may_hold() {
    const BATCH: i64 = 1024;
    let begin = || {
        let mut recovery = fencing_to_read((3, 3, 2), BATCH as u32);
        recovery.fence_answered(0, Ok(FENCED));
        recovery.fence_answered(1, Ok(FENCED));
        assert_eq!(asked(&recovery.settle(NOW)).len(), 3);
        recovery
    };
    let find = |recovery: &mut RecoveryMachine, round: i64| {
        let run = entries(round * BATCH..(round + 1) * BATCH);
        recovery.read_answered(0, EntryId(round * BATCH), Ok(run), NOW);
    };
    for takers in [&[1, 2, 3][..], &[1, 3]] {
        let mut recovery = begin();
        for round in 0..4 {
            find(&mut recovery, round);
            let mut effects = recovery.settle(NOW);
            for bookie in takers {
                let ids = round * BATCH..(round + 1) * BATCH;
                answer(&mut recovery, *bookie, ids, Ok(()), NOW);
            }
            effects.extend(recovery.settle(NOW));
            assert_eq!(asked(&effects).len(), 3, "round {round}, taken by {takers:?}");
        }
    }
    let mut recovery = begin();
    find(&mut recovery, 0);
    assert_eq!(asked(&recovery.settle(NOW)).len(), 3);
    find(&mut recovery, 1);
    assert_eq!(asked(&recovery.settle(NOW)), [], "nobody has taken any of 2048");
}

/// Nothing is found beyond what was told: the length stands in the last entry, wherever that one is.
#[test]
fn the_length_of_what_was_known_is_read() {
    let mut recovery = fencing((3, 3, 2));
    let known = LastAddConfirmed { last_add_confirmed: EntryId(1), ..FENCED };
    recovery.fence_answered(0, Ok(known));
    recovery.fence_answered(1, Ok(FENCED));
    recovery.settle(NOW);
    for position in 0..2 {
        recovery.read_answered(position, EntryId(2), Err(ReadError::Absent), NOW);
    }
    let effects = recovery.settle(NOW);
    assert_eq!(asked(&effects).len(), 3);
    let is_measuring = |effect: &RecoveryEffect| match effect {
        RecoveryEffect::Read { request, .. } => {
            (request.first, request.entries_max, request.fence) == (EntryId(1), 1, false)
        }
        _ => false,
    };
    assert!(effects.iter().all(is_measuring), "{effects:?}");
    recovery.read_answered(2, EntryId(1), Ok(entries(1..2)), NOW);
    let effects = recovery.settle(NOW);
    let Some(RecoveryEffect::Close(end)) = ends(&effects) else { panic!("{effects:?}") };
    assert_eq!((end.last_entry, end.length), (EntryId(1), 2));
}
