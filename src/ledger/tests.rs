//! Whole lives of ledgers over bookies in memory.

use std::time::Duration;

use bytes::Bytes;

use super::testing::{Cluster, Mode, Recorder, in_one_thread, in_runtime};
use super::{
    AppendRefused, CloseError, ClosedLedger, CreateError, LedgerReadError, LedgerRecord,
    LedgerState, LedgerWriter, Quorum, RecoveryError, WriterEnd,
};
use crate::domain::{BookieId, EntryId, LedgerId, ReadError};
use crate::metadata::{Expect, MetadataClient};
use crate::runtime::real;

fn payloads(range: std::ops::Range<i64>) -> Vec<Bytes> {
    range.map(|id| Bytes::from(format!("entry {id}"))).collect()
}

fn quorum(ensemble: u32, write: u32, ack: u32) -> Quorum {
    Quorum::new(ensemble, write, ack).unwrap()
}

async fn ensemble(cluster: &Cluster, ledger: LedgerId) -> Vec<BookieId> {
    let record = cluster.client.record(ledger).await.unwrap().unwrap();
    record.fragments.last().unwrap().ensemble.clone()
}

/// Creates a ledger and appends `count` entries, confirmed.
async fn written(cluster: &Cluster, quorum: Quorum, count: i64) -> LedgerWriter {
    let recorder = Recorder::new();
    let writer = cluster.client.create(quorum, "test", recorder.clone()).await.unwrap();
    writer.append(payloads(0..count)).unwrap();
    recorder.confirmed_at(count - 1).await;
    writer
}

/// Reads a ledger to its end and compares every payload.
async fn check_all(cluster: &Cluster, ledger: LedgerId, count: i64) {
    let reader = cluster.client.open(ledger).await.unwrap();
    let mut next = EntryId::FIRST;
    while next.0 < count {
        let run = reader.read(next, 7, u32::MAX, EntryId::NONE).await.unwrap();
        for entry in run {
            assert_eq!(entry.entry, next);
            assert_eq!(entry.payload, payloads(next.0..next.0 + 1)[0]);
            next = next.next();
        }
    }
    assert_eq!(
        reader.read(next, 1, 1, EntryId::NONE).await,
        Err(LedgerReadError::BeyondEnd { asked: next, last_confirmed: next.previous() })
    );
}

#[test]
fn a_ledger_is_written_closed_and_read() {
    for (shape, bookies) in [((1, 1, 1), 1), ((3, 3, 2), 3), ((5, 3, 2), 6), ((4, 2, 2), 4)] {
        in_runtime(|| async move {
            let cluster = Cluster::new(bookies);
            let writer = written(&cluster, quorum(shape.0, shape.1, shape.2), 50).await;
            assert_eq!(writer.last_add_confirmed(), EntryId(49));
            let closed = writer.close().await.unwrap();
            assert_eq!(closed.last_entry, EntryId(49));
            let length: usize = payloads(0..50).iter().map(Bytes::len).sum();
            assert_eq!(closed.length, length as u64);
            assert_eq!(writer.close().await.unwrap(), closed);
            assert_eq!(writer.append(payloads(50..51)), Err(AppendRefused::Ended(closed.ledger)));
            check_all(&cluster, closed.ledger, 50).await;
            assert_eq!(cluster.client.recover(closed.ledger).await.unwrap(), closed);
            cluster.client.delete(closed.ledger).await.unwrap();
            assert_eq!(cluster.client.record(closed.ledger).await.unwrap(), None);
        });
    }
}

#[test]
fn not_enough_bookies_is_said() {
    in_runtime(|| async {
        let cluster = Cluster::new(2);
        let created = cluster.client.create(quorum(3, 3, 2), "test", Recorder::new()).await;
        assert!(created.is_err());
    });
}

#[test]
fn a_ledger_is_spread_over_fewer_bookies_but_never_on_fewer_copies() {
    in_runtime(|| async {
        for (bookies, spread) in [(6, Some(5)), (5, Some(5)), (4, Some(4)), (3, Some(3)), (2, None)]
        {
            let cluster = Cluster::new(bookies);
            let created = cluster.client.create(quorum(5, 3, 2), "test", Recorder::new()).await;
            let Some(spread) = spread else {
                assert!(matches!(created, Err(CreateError::NotEnoughBookies { needed: 3, .. })));
                continue;
            };
            let ledger = created.unwrap().ledger();
            let record = cluster.client.record(ledger).await.unwrap().unwrap();
            assert_eq!(record.quorum, quorum(spread, 3, 2));
            assert_eq!(record.fragments[0].ensemble.len(), spread as usize);
        }
    });
}

#[test]
fn a_lost_answer_to_the_creation_is_seen_through() {
    in_runtime(|| async {
        let cluster = Cluster::new(1);
        cluster.metadata.lose_answers(1);
        let writer = written(&cluster, quorum(1, 1, 1), 3).await;
        cluster.metadata.lose_answers(1);
        assert_eq!(writer.close().await.unwrap().last_entry, EntryId(2));
    });
}

#[test]
fn one_bookie_down_is_tolerated_and_catches_up() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 2), "t", recorder.clone()).await.unwrap();
        cluster.bookies.get(BookieId(2)).set_mode(Mode::Down);
        writer.append(payloads(0..100)).unwrap();
        recorder.confirmed_at(99).await;
        assert_eq!(cluster.bookies.get(BookieId(2)).count(writer.ledger()), 0);
        cluster.bookies.get(BookieId(2)).set_mode(Mode::Up);
        let clock = real::runtime().clock;
        for _ in 0..100 {
            if cluster.bookies.get(BookieId(2)).count(writer.ledger()) == 100 {
                return;
            }
            clock.sleep(Duration::from_millis(5)).await;
        }
        panic!("the bookie did not catch up");
    });
}

#[test]
fn a_silent_quorum_times_out_with_unknown_outcome() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 2), "t", recorder.clone()).await.unwrap();
        writer.append(payloads(0..2)).unwrap();
        recorder.confirmed_at(1).await;
        for id in 1..=2 {
            cluster.bookies.get(BookieId(id)).set_mode(Mode::Silent);
        }
        writer.append(payloads(2..4)).unwrap();
        assert_eq!(recorder.end().await, (EntryId(1), WriterEnd::TimedOut(EntryId(2))));
        assert!(writer.append(payloads(4..5)).is_err());
        // Entries 2 and 3 lie on one bookie; with the others back, recovery finds them.
        for id in 1..=2 {
            cluster.bookies.get(BookieId(id)).set_mode(Mode::Up);
        }
        let closed = cluster.client.recover(writer.ledger()).await.unwrap();
        assert!(closed.last_entry >= EntryId(1));
        check_all(&cluster, closed.ledger, closed.last_entry.0 + 1).await;
    });
}

#[test]
fn a_poisoned_only_bookie_ends_the_writer() {
    in_runtime(|| async {
        let cluster = Cluster::new(1);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(1, 1, 1), "t", recorder.clone()).await.unwrap();
        cluster.bookies.get(BookieId(1)).set_mode(Mode::Poisoned);
        writer.append(payloads(0..1)).unwrap();
        assert!(matches!(recorder.end().await, (EntryId::NONE, WriterEnd::NotEnoughBookies(_))));
    });
}

#[test]
fn a_failed_bookie_is_replaced_by_a_spare() {
    in_runtime(|| async {
        let cluster = Cluster::new(5);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 3), "t", recorder.clone()).await.unwrap();
        let ledger = writer.ledger();
        writer.append(payloads(0..10)).unwrap();
        recorder.confirmed_at(9).await;
        let before = ensemble(&cluster, ledger).await;
        cluster.bookies.get(before[1]).set_mode(Mode::Poisoned);
        cluster.metadata.lose_answers(1);
        writer.append(payloads(10..20)).unwrap();
        recorder.confirmed_at(19).await;
        let record = cluster.client.record(ledger).await.unwrap().unwrap();
        assert_eq!(record.fragments.len(), 2);
        assert_eq!(record.fragments[1].first_entry, EntryId(10));
        let after = ensemble(&cluster, ledger).await;
        assert_eq!((after[0], after[2]), (before[0], before[2]));
        assert_eq!(cluster.bookies.get(after[1]).count(ledger), 10);
        check_all_open(&cluster, ledger, 20).await;
        let closed = cluster.client.recover(ledger).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(19));
        check_all(&cluster, ledger, 20).await;
    });
}

/// Reads an open ledger up to what its owner knows.
async fn check_all_open(cluster: &Cluster, ledger: LedgerId, count: i64) {
    let reader = cluster.client.open(ledger).await.unwrap();
    let mut next = EntryId::FIRST;
    while next.0 < count {
        let run = reader.read(next, 100, u32::MAX, EntryId(count - 1)).await.unwrap();
        next = EntryId(next.0 + run.len() as i64);
    }
    assert_eq!(next.0, count);
}

#[test]
fn the_last_add_confirmed_is_told_when_idle() {
    in_runtime(|| async {
        let cluster = Cluster::telling_after(3, Duration::from_millis(20));
        let writer = written(&cluster, quorum(3, 3, 2), 5).await;
        let reader = cluster.client.open(writer.ledger()).await.unwrap();
        let clock = real::runtime().clock;
        for _ in 0..100 {
            if reader.last_add_confirmed().await.unwrap() == EntryId(4) {
                return;
            }
            clock.sleep(Duration::from_millis(5)).await;
        }
        panic!("the last add confirmed was not told");
    });
}

#[test]
fn a_recovered_ledger_deposes_its_writer() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 2), "t", recorder.clone()).await.unwrap();
        let ledger = writer.ledger();
        writer.append(payloads(0..30)).unwrap();
        recorder.confirmed_at(29).await;
        let (one, two) =
            tokio::join!(cluster.client.recover(ledger), cluster.client.recover(ledger));
        let closed = one.unwrap();
        assert_eq!(closed, two.unwrap());
        assert_eq!(closed.last_entry, EntryId(29));
        writer.append(payloads(30..31)).unwrap();
        assert_eq!(recorder.end().await, (EntryId(29), WriterEnd::Fenced));
        assert!(writer.append(payloads(31..32)).is_err());
        check_all(&cluster, ledger, 30).await;
        assert_eq!(writer.close().await.unwrap(), closed);
    });
}

#[test]
fn recovery_finds_entries_on_one_bookie_and_never_guesses() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let writer = written(&cluster, quorum(3, 3, 2), 20).await;
        let ledger = writer.ledger();
        drop(writer);
        let members = ensemble(&cluster, ledger).await;
        cluster.bookies.get(members[0]).forget_from(ledger, 0);
        cluster.bookies.get(members[1]).set_mode(Mode::Down);
        cluster.bookies.get(members[2]).damage(ledger, 5);
        // One absent, one damaged, one unreachable: undecidable.
        let refused = cluster.client.recover(ledger).await;
        assert!(matches!(&refused, Err(RecoveryError::Undecidable { .. })), "{refused:?}");
        let record = cluster.client.record(ledger).await.unwrap().unwrap();
        assert_eq!(record.state, LedgerState::InRecovery);
        cluster.bookies.get(members[1]).set_mode(Mode::Up);
        let closed = cluster.client.recover(ledger).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(19));
        check_all(&cluster, ledger, 20).await;
    });
}

#[test]
fn an_entry_is_called_damaged_only_when_every_copy_was_heard() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let writer = written(&cluster, quorum(3, 3, 2), 5).await;
        let ledger = writer.ledger();
        writer.close().await.unwrap();
        let members = ensemble(&cluster, ledger).await;
        cluster.bookies.get(members[0]).damage(ledger, 3);
        cluster.bookies.get(members[1]).forget_from(ledger, 3);
        cluster.bookies.get(members[2]).set_mode(Mode::Down);
        let reader = cluster.client.open(ledger).await.unwrap();
        let read = || reader.read(EntryId(3), 1, u32::MAX, EntryId(4));
        let unheard = read().await.unwrap_err();
        let LedgerReadError::NoGoodReplica { last, .. } = &unheard else { panic!("{unheard}") };
        assert!(!matches!(last, ReadError::Absent | ReadError::Corrupt(_)), "{unheard}");
        cluster.bookies.get(members[2]).set_mode(Mode::Up);
        assert_eq!(read().await.unwrap().len(), 1);
        cluster.bookies.get(members[2]).damage(ledger, 3);
        let lost = read().await.unwrap_err();
        assert!(lost.to_string().contains("damaged"), "{lost}");
    });
}

#[test]
fn an_empty_ledger_recovers_empty() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let writer = cluster.client.create(quorum(3, 3, 2), "t", Recorder::new()).await.unwrap();
        let closed = cluster.client.recover(writer.ledger()).await.unwrap();
        assert_eq!((closed.last_entry, closed.length), (EntryId::NONE, 0));
        assert_eq!(writer.close().await.unwrap().last_entry, EntryId::NONE);
        assert_eq!(
            cluster.client.recover(LedgerId(99)).await,
            Err(RecoveryError::NoLedger(LedgerId(99)))
        );
    });
}

/// The fence becomes known when a close has begun and the writer's task does not know yet. Whoever appended
/// must hear that nothing more comes.
#[test]
fn a_writer_that_is_fenced_during_its_close_says_so() {
    in_one_thread(|| async {
        let cluster = Cluster::new(1);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(1, 1, 1), "t", recorder.clone()).await.unwrap();
        let bookie = cluster.bookies.get(BookieId(1));
        bookie.hold();
        writer.append(payloads(0..2)).unwrap();
        tokio::task::yield_now().await;
        assert_eq!(bookie.fence_held(), 1);
        writer.close().await.unwrap();
        assert_eq!(recorder.ended_as(), Some((EntryId::NONE, WriterEnd::Fenced)));
    });
}

#[test]
fn a_writer_closed_elsewhere_learns_it() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 2), "t", recorder.clone()).await.unwrap();
        let members = ensemble(&cluster, writer.ledger()).await;
        cluster.bookies.get(members[0]).set_mode(Mode::Silent);
        cluster.bookies.get(members[1]).set_mode(Mode::Silent);
        // On one bookie only: recovery keeps it, the writer never confirmed it.
        writer.append(payloads(0..1)).unwrap();
        recorder.end().await;
        cluster.bookies.get(members[0]).set_mode(Mode::Up);
        cluster.bookies.get(members[1]).set_mode(Mode::Down);
        let closed = cluster.client.recover(writer.ledger()).await.unwrap();
        // Two of three say; whether the third's copy was heard first decides, and either end is right.
        let told = writer.close().await;
        if closed.last_entry == EntryId(0) {
            assert_eq!(told, Err(CloseError::ClosedElsewhere { last_entry: EntryId(0) }));
        } else {
            assert_eq!(told.unwrap(), closed);
        }
    });
}

#[test]
fn reads_pass_over_bad_and_slow_replicas() {
    in_runtime(|| async {
        let cluster = Cluster::new(3);
        let writer = written(&cluster, quorum(3, 3, 3), 10).await;
        let ledger = writer.ledger();
        writer.close().await.unwrap();
        cluster.bookies.get(BookieId(1)).damage(ledger, 4);
        cluster.bookies.get(BookieId(2)).set_mode(Mode::Silent);
        check_all(&cluster, ledger, 10).await;
        cluster.bookies.get(BookieId(3)).forget_from(ledger, 0);
        let reader = cluster.client.open(ledger).await.unwrap();
        let refused = reader.read(EntryId(4), 1, 1, EntryId::NONE).await.unwrap_err();
        // The silent one may hold it.
        let unknown = LedgerReadError::NoGoodReplica {
            ledger,
            entry: EntryId(4),
            last: ReadError::Unknown("not done within 100ms".to_owned()),
        };
        assert_eq!(refused.to_string(), unknown.to_string());
    });
}

#[test]
fn conflicts_with_repair_stop_nobody() {
    in_runtime(|| async {
        let cluster = Cluster::new(5);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 3), "t", recorder.clone()).await.unwrap();
        let before = ensemble(&cluster, writer.ledger()).await;
        cluster.bookies.get(before[0]).set_mode(Mode::Poisoned);
        cluster.metadata.disturb(1);
        writer.append(payloads(0..5)).unwrap();
        recorder.confirmed_at(4).await;
        cluster.metadata.disturb(1);
        assert_eq!(writer.close().await.unwrap().last_entry, EntryId(4));
        let abandoned = written(&cluster, quorum(3, 3, 2), 5).await.ledger();
        cluster.metadata.disturb(1);
        assert_eq!(cluster.client.recover(abandoned).await.unwrap().last_entry, EntryId(4));
    });
}

/// Whether the other one, which closes in between, found fewer entries or more: the record has the end.
#[test]
fn a_recovery_that_is_not_first_to_close_tells_what_the_record_says() {
    for (last_entry, length) in [(EntryId(3), 28), (EntryId(7), 56)] {
        in_runtime(|| async move {
            let cluster = Cluster::new(3);
            let ledger = written(&cluster, quorum(3, 3, 2), 5).await.ledger();
            let mut record = cluster.client.record(ledger).await.unwrap().unwrap();
            let key = LedgerRecord::key(ledger);
            // Claimed already, so that the next change is the close.
            record.state = LedgerState::InRecovery;
            let value = serde_json::to_vec(&record).unwrap();
            cluster.metadata.put(&key, Bytes::from(value), Expect::Any, None).await.unwrap();
            record.state = LedgerState::Closed { last_entry, length };
            cluster.metadata.intrude(key, Bytes::from(serde_json::to_vec(&record).unwrap()));
            let closed = cluster.client.recover(ledger).await.unwrap();
            assert_eq!(closed, ClosedLedger { ledger, last_entry, length });
        });
    }
}

#[test]
fn recovery_replaces_a_bookie_without_telling_metadata_early() {
    in_runtime(|| async {
        let cluster = Cluster::new(4);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 3), "t", recorder.clone()).await.unwrap();
        let ledger = writer.ledger();
        writer.append(payloads(0..5)).unwrap();
        recorder.confirmed_at(4).await;
        drop(writer);
        let before = ensemble(&cluster, ledger).await;
        // Reads well, takes nothing: the third copy must go to the spare.
        cluster.bookies.get(before[2]).set_mode(Mode::Poisoned);
        let closed = cluster.client.recover(ledger).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(4));
        let after = ensemble(&cluster, ledger).await;
        assert_ne!(after[2], before[2]);
        assert_eq!(cluster.bookies.get(after[2]).count(ledger), 5);
        check_all(&cluster, ledger, 5).await;
    });
}

/// What was written back before stays where it is; the record has to name both places.
#[test]
fn recovery_replaces_a_bookie_from_the_entry_on_that_it_did_not_take() {
    in_runtime(|| async {
        let cluster = Cluster::new(4);
        let ledger = written(&cluster, quorum(3, 3, 3), 5).await.ledger();
        let before = ensemble(&cluster, ledger).await;
        cluster.bookies.get(before[2]).refuse_from(4);
        let closed = cluster.client.recover(ledger).await.unwrap();
        assert_eq!(closed.last_entry, EntryId(4));
        let record = cluster.client.record(ledger).await.unwrap().unwrap();
        let first_entries: Vec<i64> = record.fragments.iter().map(|f| f.first_entry.0).collect();
        assert_eq!(first_entries, [0, 4]);
        assert_eq!(record.fragments[0].ensemble, before);
        assert!(!record.fragments[1].ensemble.contains(&before[2]));
        for bookie in &record.fragments[1].ensemble[..2] {
            cluster.bookies.get(*bookie).forget_from(ledger, 4);
        }
        check_all(&cluster, ledger, 5).await;
    });
}

/// Waits until an open ledger is written to other bookies than this one.
async fn replaced(cluster: &Cluster, ledger: LedgerId, bookie: BookieId) {
    while ensemble(cluster, ledger).await.contains(&bookie) {
        real::runtime().clock.sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn an_ensemble_change_keeps_what_repair_changed_meanwhile() {
    in_runtime(|| async {
        let cluster = Cluster::new(6);
        let recorder = Recorder::new();
        let writer = cluster.client.create(quorum(3, 3, 2), "t", recorder.clone()).await.unwrap();
        let ledger = writer.ledger();
        let first = ensemble(&cluster, ledger).await;
        writer.append(payloads(0..5)).unwrap();
        recorder.confirmed_at(4).await;
        cluster.bookies.get(first[0]).set_mode(Mode::Poisoned);
        writer.append(payloads(5..8)).unwrap();
        replaced(&cluster, ledger, first[0]).await;
        writer.append(payloads(8..10)).unwrap();
        recorder.confirmed_at(9).await;
        // The first fragment can grow no more. While the writer replaces a bookie of the last one, repair moves a
        // place of the first.
        let mut repaired = cluster.client.record(ledger).await.unwrap().unwrap();
        assert_eq!(repaired.fragments.len(), 2);
        let spare = (1..=6).map(BookieId).find(|bookie| !first.contains(bookie)).unwrap();
        repaired.fragments[0].ensemble[0] = spare;
        let value = Bytes::from(serde_json::to_vec(&repaired).unwrap());
        cluster.metadata.intrude(LedgerRecord::key(ledger), value);
        let last = ensemble(&cluster, ledger).await;
        cluster.bookies.get(last[1]).set_mode(Mode::Poisoned);
        writer.append(payloads(10..12)).unwrap();
        replaced(&cluster, ledger, last[1]).await;
        let record = cluster.client.record(ledger).await.unwrap().unwrap();
        assert_eq!(record.fragments[..2], repaired.fragments[..], "what repair did is undone");
    });
}
