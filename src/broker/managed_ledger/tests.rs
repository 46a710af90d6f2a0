//! Whole lives of topics' logs over bookies and metadata in memory.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Notify;

use super::{
    AppendOutcome, ManagedLedger, ManagedLedgerEnvironment, ManagedLedgerError,
    ManagedLedgerEvents, NewEntry, TailCache,
};
use crate::broker::cursor::EntryState;
use crate::broker::{AckRequest, AckTarget, AckType, BrokerConfig, InitialPosition};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId,
    LastAddConfirmed, LedgerId, Position, ReadError, ReadRequest, WallTime,
};
use crate::ledger::{BookieClient, BookiePool, LedgerClient, LedgerConfig, Quorum};
use crate::metadata::{
    Expect, Metadata, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchStream,
};
use crate::runtime::real;

#[derive(Default)]
struct Store {
    pairs: BTreeMap<String, Versioned>,
    revision: u64,
    counter: u64,
    lose_answers: u32,
}

#[derive(Default)]
struct MemoryMetadata(Mutex<Store>);

fn holds(store: &Store, key: &str, expect: Expect) -> Result<(), MetadataError> {
    let found = store.pairs.get(key).map(|found| found.version);
    let good = match expect {
        Expect::Any => true,
        Expect::Absent => found.is_none(),
        Expect::Version(version) => found == Some(version),
    };
    let mismatch = MetadataError::VersionMismatch { key: key.to_owned(), expected: expect, found };
    if good { Ok(()) } else { Err(mismatch) }
}

#[async_trait]
impl MetadataClient for MemoryMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        Ok(self.0.lock().unwrap().pairs.get(key).cloned())
    }
    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        let store = self.0.lock().unwrap();
        let pairs = store.pairs.iter().filter(|(key, _)| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        });
        Ok(pairs.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        _session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        let mut store = self.0.lock().unwrap();
        holds(&store, key, expect)?;
        store.revision += 1;
        let version = Revision(store.revision);
        store.pairs.insert(key.to_owned(), Versioned { value, version });
        if store.lose_answers > 0 {
            store.lose_answers -= 1;
            return Err(MetadataError::OutcomeUnknown("lost".to_owned()));
        }
        Ok(version)
    }
    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        let mut store = self.0.lock().unwrap();
        holds(&store, key, expect)?;
        store.pairs.remove(key);
        Ok(())
    }
    async fn next_number(&self, _key: &str) -> Result<u64, MetadataError> {
        let mut store = self.0.lock().unwrap();
        store.counter += 1;
        Ok(store.counter)
    }
    async fn watch(&self, _prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        Err(MetadataError::Refused("not faked".to_owned()))
    }
    async fn open_session(&self, _time_to_live: Duration) -> Result<SessionId, MetadataError> {
        Ok(SessionId(1))
    }
    async fn keep_alive(&self, _session: SessionId) -> Result<(), MetadataError> {
        Ok(())
    }
    async fn close_session(&self, _session: SessionId) -> Result<(), MetadataError> {
        Ok(())
    }
}

#[derive(Default)]
struct Held {
    entries: BTreeMap<EntryId, Entry>,
    fenced: bool,
}

/// One bookie, also the pool: every ledger is 1/1/1 on it. The second part names a ledger whose
/// adds are stored but not answered.
#[derive(Clone, Default)]
struct OneBookie(Arc<Mutex<BookieState>>);

type BookieState = (BTreeMap<LedgerId, Held>, Option<LedgerId>);

#[async_trait]
impl BookieClient for OneBookie {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let mut state = self.0.lock().unwrap();
        let poisoned = state.1 == Some(batch.ledger);
        let held = state.0.entry(batch.ledger).or_default();
        let ids: Vec<_> = batch.entries.iter().map(|entry| entry.entry).collect();
        let result = if held.fenced && !batch.recovery {
            Err(AddError::Fenced)
        } else {
            for entry in batch.entries {
                held.entries.insert(entry.entry, entry);
            }
            Ok(())
        };
        drop(state);
        // A poisoned ledger's adds are stored, but the writer is never told.
        let result = if poisoned && !batch.recovery { return } else { result };
        sink.answered(AddAnswer {
            bookie: BookieId(1),
            ledger: batch.ledger,
            entries: ids,
            result,
        });
    }
    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        let mut state = self.0.lock().unwrap();
        let held = state.0.entry(request.ledger).or_default();
        held.fenced |= request.fence;
        let mut run = Vec::new();
        let mut next = request.first;
        while run.len() < request.entries_max as usize {
            let Some(entry) = held.entries.get(&next) else { break };
            run.push(entry.clone());
            next = next.next();
        }
        if run.is_empty() { Err(ReadError::Absent) } else { Ok(run) }
    }
    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        let mut state = self.0.lock().unwrap();
        let held = state.0.entry(ledger).or_default();
        held.fenced |= fence;
        let last = held.entries.last_key_value();
        Ok(LastAddConfirmed {
            last_add_confirmed: last.map_or(EntryId::NONE, |(_, entry)| entry.last_add_confirmed),
            last_entry: last.map_or(EntryId::NONE, |(id, _)| *id),
            fenced: held.fenced,
        })
    }
    async fn tell_last_add_confirmed(
        &self,
        _ledger: LedgerId,
        _creator: CreatorToken,
        _last: EntryId,
    ) -> Result<(), ReadError> {
        Ok(())
    }
}

impl BookiePool for OneBookie {
    fn bookie(&self, _id: BookieId) -> Arc<dyn BookieClient> {
        Arc::new(self.clone())
    }
    fn writable(&self) -> Vec<BookieId> {
        vec![BookieId(1)]
    }
}

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
    async fn positions(&self, count: usize) -> Vec<Position> {
        loop {
            {
                let outcomes = self.outcomes.lock().unwrap();
                if outcomes.len() >= count {
                    assert!(outcomes.iter().zip(0..).all(|(outcome, tag)| outcome.tag == tag));
                    return outcomes.iter().map(|o| o.result.clone().unwrap()).collect();
                }
            }
            self.news.notified().await;
        }
    }
}

struct World {
    environment: ManagedLedgerEnvironment,
    metadata: Arc<MemoryMetadata>,
    bookie: OneBookie,
}

fn world() -> World {
    let metadata = Arc::new(MemoryMetadata::default());
    let bookie = OneBookie::default();
    let runtime = real::runtime();
    let quorum = Quorum::new(1, 1, 1).unwrap();
    let shared: Metadata = Arc::<MemoryMetadata>::clone(&metadata);
    let ledgers = LedgerClient::new(
        runtime.clone(),
        Arc::clone(&shared),
        Arc::new(bookie.clone()),
        LedgerConfig { add_timeout: Duration::from_millis(200), ..LedgerConfig::default() },
    );
    let config = BrokerConfig { ledger_entries_max: 10, ..BrokerConfig::with_quorum(quorum) };
    let cache = Arc::new(TailCache::new(200));
    let environment =
        ManagedLedgerEnvironment { runtime, metadata: shared, ledgers, config, cache };
    World { environment, metadata, bookie }
}

fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(async {
        let clock = real::runtime().clock;
        clock.timeout(Duration::from_secs(20), test()).await.expect("in time");
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
        while recorder.fenced.lock().unwrap().is_none() {
            recorder.news.notified().await;
        }
        assert!(recorder.outcomes.lock().unwrap().last().unwrap().result.is_err());
        check_all(&second, 35).await;
        second.close().await;
        let (third, _) = open(&world).await;
        check_all(&third, 35).await;
    });
}

#[test]
fn entries_of_unknown_fate_are_decided_not_doubled() {
    run(|| async {
        let world = world();
        let (ledger, recorder) = open(&world).await;
        ledger.append(entries(0..3));
        let positions = recorder.positions(3).await;
        world.bookie.0.lock().unwrap().1 = Some(positions[0].ledger);
        ledger.append(entries(3..6));
        recorder.positions(6).await;
        world.metadata.0.lock().unwrap().lose_answers = 2;
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
