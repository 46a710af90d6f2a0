//! Whole lives of topics' logs over bookies and metadata in memory.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use super::handle::Shared;
use super::{
    AppendError, AppendOutcome, ManagedLedger, ManagedLedgerEnvironment, ManagedLedgerError,
    ManagedLedgerEvents, NewEntry, TailCache,
};
use crate::broker::cursor::{EntryState, recover_cursors};
use crate::broker::{AckRequest, AckTarget, AckType, AppendTerms, BrokerConfig, InitialPosition};
use crate::domain::{BookieId, LedgerId, Position, WallTime};
use crate::ledger::testing::{FakeBookies, FakeMetadata, in_runtime};
use crate::ledger::{LedgerClient, LedgerConfig, Quorum};
use crate::metadata::{Expect, Metadata};
use crate::runtime::sim::{World as SimWorld, WorldSettings};
use crate::runtime::{Runtime, real};

#[derive(Default)]
struct Recorder {
    outcomes: Mutex<Vec<AppendOutcome>>,
    fenced: Mutex<Option<String>>,
    news: Notify,
}

impl ManagedLedgerEvents for Recorder {
    fn appended(&self, outcomes: Vec<AppendOutcome>) {
        self.outcomes.lock().unwrap().extend(outcomes);
        self.news.notify_one();
    }
    fn fenced(&self, reason: String) {
        *self.fenced.lock().unwrap() = Some(reason);
        self.news.notify_one();
    }
}

impl Recorder {
    async fn outcomes(&self, count: usize) -> Vec<AppendOutcome> {
        loop {
            {
                let outcomes = self.outcomes.lock().unwrap();
                if outcomes.len() >= count {
                    assert!(outcomes.iter().zip(0..).all(|(outcome, tag)| outcome.tag == tag));
                    return outcomes.clone();
                }
            }
            self.news.notified().await;
        }
    }

    /// Waits until the log is told to be lost.
    async fn lost(&self) {
        while self.fenced.lock().unwrap().is_none() {
            self.news.notified().await;
        }
    }

    async fn positions(&self, count: usize) -> Vec<Position> {
        let outcomes = self.outcomes(count).await;
        outcomes.into_iter().map(|outcome| outcome.result.unwrap()).collect()
    }
}

struct World {
    environment: ManagedLedgerEnvironment,
    metadata: Arc<FakeMetadata>,
    bookies: Arc<FakeBookies>,
}

fn world() -> World {
    world_on(real::runtime())
}

fn world_on(runtime: Runtime) -> World {
    let metadata = Arc::new(FakeMetadata::default());
    let bookies = Arc::new(FakeBookies::new(1));
    let quorum = Quorum::new(1, 1, 1).unwrap();
    let shared: Metadata = Arc::<FakeMetadata>::clone(&metadata);
    let ledgers = LedgerClient::new(
        runtime.clone(),
        Arc::clone(&shared),
        Arc::<FakeBookies>::clone(&bookies),
        LedgerConfig { add_timeout: Duration::from_millis(200), ..LedgerConfig::default() },
    );
    let config = BrokerConfig { ledger_entries_max: 10, ..BrokerConfig::with_quorum(quorum) };
    let cache = Arc::new(TailCache::new(200));
    let environment =
        ManagedLedgerEnvironment { runtime, metadata: shared, ledgers, config, cache };
    World { environment, metadata, bookies }
}

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    in_runtime(|| async {
        let clock = real::runtime().clock;
        clock.timeout(Duration::from_secs(20), test()).await.expect("in time");
    });
}

/// The same on virtual time, so that what happens at once does so in every run.
fn run_virtually<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(World) -> F) {
    SimWorld::run(1, WorldSettings::default(), |world| async move {
        let node = world.create_node("broker", "broker");
        node.spawn("test", test(world_on(node.runtime()))).await.expect("passed");
    });
}

fn entries(range: std::ops::Range<u64>) -> Vec<NewEntry> {
    range
        .map(|tag| NewEntry {
            tag,
            message_count: 2,
            is_batch: true,
            publish_time: WallTime(tag),
            client_bytes: Bytes::from(format!("message {tag}")),
            terms: AppendTerms::default(),
        })
        .collect()
}

async fn open(world: &World) -> (ManagedLedger, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let events = Arc::<Recorder>::clone(&recorder);
    let ledger = ManagedLedger::open(world.environment.clone(), "t", true, events).await.unwrap();
    (ledger, recorder)
}

async fn check_all(ledger: &ManagedLedger, count: u64) {
    let mut next = ledger.first_position();
    let mut seen = 0;
    loop {
        let run = ledger.read(next, 7, usize::MAX).await.unwrap();
        let Some(last) = run.last() else { break };
        next = ledger.next_position(last.position);
        for entry in run {
            assert_eq!(entry.client_bytes, format!("message {seen}"));
            seen += 1;
        }
    }
    assert_eq!(seen, count);
    assert_eq!(ledger.stats().next_message_index, 2 * count);
}

fn ack(position: Position) -> AckRequest {
    let targets = vec![AckTarget { position, ack_set: None }];
    AckRequest { ack_type: AckType::Individual, targets }
}

#[test]
fn a_log_rolls_over_and_is_taken_over() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..35));
        let positions = recorder.positions(35).await;
        assert!(positions.is_sorted_by(|one, two| one < two));
        assert_eq!(ledger.stats().ledgers.len(), 4);
        check_all(&ledger, 35).await;
        assert_eq!(ledger.last_before(WallTime(12)).await.unwrap(), Some(positions[11]));
        // Without closing: the next owner recovers the last ledger and deposes the first.
        let (second, _) = open(&world).await;
        check_all(&second, 35).await;
        ledger.append(entries(35..36));
        recorder.lost().await;
        assert!(recorder.outcomes.lock().unwrap().last().unwrap().result.is_err());
        check_all(&second, 35).await;
        second.close().await;
        let (third, _) = open(&world).await;
        check_all(&third, 35).await;
    });
}

#[test]
fn a_former_owner_cannot_prove_that_it_is_one() {
    run(|| async {
        let world = world();
        // Without an open ledger only the record can say so.
        let (idle, recorder) = open(&world).await;
        assert_eq!(idle.prove_owned().await, Ok(()));
        let (ledger, _) = open(&world).await;
        assert_eq!(idle.prove_owned().await, Err(ManagedLedgerError::Fenced));
        recorder.lost().await;
        assert_eq!(ledger.prove_owned().await, Ok(()));
    });
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..3));
        recorder.positions(3).await;
        // The bookies of the open ledger can, although metadata names somebody else.
        let key = Shared::key("t");
        let record = world.environment.metadata.get(&key).await.unwrap().unwrap();
        world.environment.metadata.delete(&key, Expect::Version(record.version)).await.unwrap();
        assert_eq!(ledger.prove_owned().await, Ok(()));
        world.environment.metadata.put(&key, record.value, Expect::Absent, None).await.unwrap();
        let (second, _) = open(&world).await;
        assert_eq!(ledger.prove_owned().await, Err(ManagedLedgerError::Fenced));
        assert_eq!(second.prove_owned().await, Ok(()));
    });
}

/// Somebody who began to take the topic over claims a cursor after this owner has, and gets no further: nothing that
/// is acknowledged here can be stored any more.
#[test]
fn who_loses_a_cursor_gives_the_topic_up() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        let cursor = ledger.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        ledger.append(entries(0..3));
        let positions = recorder.positions(3).await;
        let metadata = &world.environment.metadata;
        let (key, record) = metadata.list("/cursors/", None, 1).await.unwrap().remove(0);
        let claimed = metadata.put(&key, record.value, Expect::Version(record.version), None);
        claimed.await.unwrap();
        assert!(cursor.acknowledge(ack(positions[0])).await.unwrap().is_err());
        let clock = &world.environment.runtime.clock;
        clock
            .timeout(Duration::from_secs(5), recorder.lost())
            .await
            .expect("the topic goes on without it");
        let (second, _) = open(&world).await;
        let cursor = second.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        assert_eq!(cursor.acknowledge(ack(positions[0])).await.unwrap(), Ok(()));
    });
}

/// A broker that stood still in the middle of loading a topic goes on when the topic has another owner.
#[test]
fn a_deposed_owner_claims_no_cursor() {
    run(|| async {
        let world = world();
        let (stale, recorder) = open(&world).await;
        stale.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        stale.append(entries(0..3));
        recorder.positions(3).await;
        let (ledger, recorder) = open(&world).await;
        let cursor = ledger.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        ledger.append(entries(0..3));
        let last = *recorder.positions(3).await.last().unwrap();
        let all = AckRequest { ack_type: AckType::Cumulative, ..ack(last) };
        assert_eq!(cursor.acknowledge(all.clone()).await.unwrap(), Ok(()));
        let recovered = recover_cursors(&stale.shared().cursor_place()).await;
        assert_eq!(recovered.err(), Some(ManagedLedgerError::Fenced));
        assert_eq!(cursor.acknowledge(all).await.unwrap(), Ok(()));
        let (next, _) = open(&world).await;
        let cursor = next.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        assert_eq!(cursor.mark_delete(), last);
    });
}

#[test]
fn a_cursor_that_is_deleted_takes_no_topic_along() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..3));
        let positions = recorder.positions(3).await;
        let start = InitialPosition::Earliest;
        let cursor = ledger.open_cursor("s", start, Vec::new()).await.unwrap();
        let answer = cursor.acknowledge(ack(positions[0]));
        ledger.delete_cursor("s").await.unwrap();
        // Stored before or not: it is answered.
        let _ = answer.await.unwrap();
        ledger.append(entries(3..6));
        recorder.positions(6).await;
        assert_eq!(*recorder.fenced.lock().unwrap(), None);
    });
}

#[test]
fn entries_of_unknown_fate_are_decided_not_doubled() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..3));
        let positions = recorder.positions(3).await;
        world.bookies.get(BookieId(1)).mute(positions[0].ledger);
        ledger.append(entries(3..6));
        recorder.positions(6).await;
        world.metadata.lose_answers(2);
        ledger.append(entries(6..26));
        recorder.positions(26).await;
        check_all(&ledger, 26).await;
    });
}

#[test]
fn acknowledgements_survive_and_hold_back_trimming() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        let properties = vec![("key".to_owned(), "value".to_owned())];
        let cursor =
            ledger.open_cursor("s/1", InitialPosition::Earliest, properties.clone()).await.unwrap();
        ledger.append(entries(0..35));
        let positions = recorder.positions(35).await;
        for at in (0..12).chain([20]) {
            assert_eq!(cursor.acknowledge(ack(positions[at])).await.unwrap(), Ok(()));
        }
        assert_eq!((cursor.mark_delete(), cursor.backlog()), (positions[11], 22));
        ledger.trim().await.unwrap();
        assert_eq!(ledger.first_position(), positions[10]);
        let (second, _) = open(&world).await;
        assert_eq!(second.cursor_names(), vec!["s/1"]);
        let again = second.open_cursor("s/1", InitialPosition::Latest, Vec::new()).await.unwrap();
        assert_eq!((again.mark_delete(), again.backlog()), (positions[11], 22));
        assert_eq!(again.entry_state(positions[20]), EntryState::Acknowledged);
        again.reset(positions[15], None).await.unwrap();
        assert_eq!(again.properties(), properties);
        second.close().await;
        let (third, _) = open(&world).await;
        let again = third.open_cursor("s/1", InitialPosition::Latest, Vec::new()).await.unwrap();
        assert_eq!((again.mark_delete(), again.backlog()), (positions[14], 20));
        assert_eq!(again.properties(), properties);
        third.delete_cursor("s/1").await.unwrap();
        third.trim().await.unwrap();
        assert_eq!(third.stats().ledgers.len(), 1);
        third.delete().await.unwrap();
        let events = Arc::new(Recorder::default());
        let gone = ManagedLedger::open(world.environment.clone(), "t", false, events).await;
        assert_eq!(gone.err(), Some(ManagedLedgerError::NotFound));
    });
}

/// An owner that hears nothing from metadata while it rolls cannot know whether the chain names the next
/// ledger: the next owner reads only what is named.
#[test]
fn nothing_is_confirmed_in_a_ledger_the_chain_may_not_name() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..10));
        recorder.positions(10).await;
        world.metadata.lose_puts(Some("/topics/"));
        ledger.append(entries(10..15));
        let outcomes = recorder.outcomes(15).await;
        world.metadata.lose_puts(None);
        let confirmed = outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
        let (next, _) = open(&world).await;
        check_all(&next, confirmed as u64).await;
        assert_eq!(confirmed, 10);
    });
}

/// A ledger that got no entry leaves the chain first and is deleted then; the other way round the chain names
/// a ledger that is gone, and nobody can open the topic any more.
#[test]
fn an_empty_ledger_is_kept_while_the_chain_may_name_it() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..10));
        let positions = recorder.positions(10).await;
        // The second ledger is listed, and nothing arrives in it.
        world.bookies.get(BookieId(1)).deafen(LedgerId(positions[0].ledger.0 + 1));
        ledger.append(entries(10..12));
        let clock = &world.environment.runtime.clock;
        while ledger.stats().ledgers.len() < 2 {
            clock.sleep(Duration::from_millis(1)).await;
        }
        // The chain with the third instead of the second never reaches metadata.
        world.metadata.lose_puts(Some("/topics/"));
        assert!(recorder.outcomes(12).await[11].result.is_err());
        world.metadata.lose_puts(None);
        let (next, _) = open(&world).await;
        check_all(&next, 10).await;
    });
}

/// Whoever subscribes while ledgers are trimmed is either in time to keep them or begins behind them.
#[test]
fn a_cursor_made_during_a_trim_finds_what_it_was_promised() {
    for later in [0, 5, 10] {
        run_virtually(move |world| async move {
            let (ledger, recorder) = open(&world).await;
            let first = ledger.open_cursor("s/1", InitialPosition::Earliest, Vec::new()).await;
            let first = first.unwrap();
            ledger.append(entries(0..35));
            for position in recorder.positions(35).await.into_iter().take(30) {
                assert_eq!(first.acknowledge(ack(position)).await.unwrap(), Ok(()));
            }
            let subscribing = async {
                world.environment.runtime.clock.sleep(Duration::from_millis(later)).await;
                let opened = ledger.open_cursor("s/2", InitialPosition::Earliest, Vec::new());
                let second = opened.await.unwrap();
                (second.backlog(), second)
            };
            let (trimmed, (promised, second)) = tokio::join!(ledger.trim(), subscribing);
            trimmed.unwrap();
            let next = ledger.next_position(second.mark_delete());
            let there = ledger.read(next, 100, usize::MAX).await.unwrap();
            assert_eq!(there.len() as u64, promised, "after {later} ms");
        });
    }
}

/// Whoever expects a number that somebody has got takes it that his own entry may be stored. So he is not told of
/// numbers given to entries that are never stored.
#[test]
fn numbers_of_what_was_never_stored_are_not_told() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..10));
        recorder.positions(10).await;
        // The next ledger is never listed, so nothing more is stored.
        world.metadata.lose_puts(Some("/topics/"));
        let mut twice = entries(10..12);
        twice[1].terms.expected = Some(10);
        ledger.append(twice);
        let outcomes = recorder.outcomes(12).await;
        world.metadata.lose_puts(None);
        assert_eq!(outcomes[11].result, Err(AppendError::Fenced));
        let (next, _) = open(&world).await;
        check_all(&next, 10).await;
    });
}

/// What is left after a trim is all there is from some number on.
#[test]
fn trimming_leaves_no_gap() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        let cursor = ledger.open_cursor("s", InitialPosition::Earliest, Vec::new()).await.unwrap();
        ledger.append(entries(0..45));
        for position in recorder.positions(45).await.into_iter().take(32) {
            assert_eq!(cursor.acknowledge(ack(position)).await.unwrap(), Ok(()));
        }
        ledger.trim().await.unwrap();
        let log = ledger.numbered();
        let mut number = log.facts().first_number;
        while number < 45 {
            let run = log.read(number, 100, usize::MAX).await.unwrap();
            assert!(!run.is_empty(), "number {number} is not there");
            number += run.len() as u64;
        }
        assert_eq!(log.facts().first_number, 30);
    });
}

/// Clients stamp messages by their own clocks, so a later entry may have an earlier time.
#[test]
fn a_search_by_time_trusts_no_order() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        let mut stamped = entries(0..25);
        for (place, entry) in (0..).zip(&mut stamped) {
            entry.publish_time = WallTime(place * 7 % 25);
        }
        let times: Vec<WallTime> = stamped.iter().map(|entry| entry.publish_time).collect();
        ledger.append(stamped);
        let positions = recorder.positions(25).await;
        for time in (0..=25).map(WallTime) {
            let last = times.iter().rposition(|published| *published < time);
            let found = ledger.last_before(time).await.unwrap();
            assert_eq!(found, last.map(|place| positions[place]), "before {time:?}");
        }
    });
}

/// The index of a message is the number of messages stored before it, whatever else was under way when the topic was
/// closed.
#[test]
fn indexes_count_what_is_stored() {
    run_virtually(|world| async move {
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..3));
        let stored = recorder.positions(3).await;
        world.bookies.get(BookieId(1)).deafen(stored[0].ledger);
        ledger.append(entries(3..5));
        ledger.close().await;
        assert!(recorder.outcomes(5).await[4].result.is_err());
        let (next, _) = open(&world).await;
        check_all(&next, 3).await;
    });
}
