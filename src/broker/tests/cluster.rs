//! Metadata and bookies in memory, and a broker over them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::sinks::probe;
use super::{ConsumerProbe, ProducerProbe};
use crate::broker::{
    Broker, BrokerConfig, ConnectionFacts, Consumer, InitialPosition, Producer, ProducerOptions,
    Publish, SubscribeOptions, SubscriptionType, Topic,
};
use crate::domain::{
    AddAnswer, AddBatch, AddSink, BookieId, CreatorToken, Entry, EntryId, LastAddConfirmed,
    LedgerId, ReadError, ReadRequest, TopicName, WallTime,
};
use crate::ledger::{BookieClient, BookiePool, LedgerClient, LedgerConfig, Quorum};
use crate::metadata::{
    Expect, Metadata, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchStream,
};
use crate::runtime::real;

#[derive(Default)]
struct Pairs {
    revision: u64,
    values: BTreeMap<String, Versioned>,
    counters: BTreeMap<String, u64>,
}

/// Metadata in memory; no sessions, no watches.
#[derive(Default)]
struct MemoryMetadata(Mutex<Pairs>);

fn not_here<T>() -> Result<T, MetadataError> {
    Err(MetadataError::Refused("not in this test's store".to_owned()))
}

fn check(key: &str, found: Option<&Versioned>, expected: Expect) -> Result<(), MetadataError> {
    let found = found.map(|found| found.version);
    let holds = match expected {
        Expect::Any => true,
        Expect::Absent => found.is_none(),
        Expect::Version(version) => found == Some(version),
    };
    if holds {
        return Ok(());
    }
    Err(MetadataError::VersionMismatch { key: key.to_owned(), expected, found })
}

#[async_trait]
impl MetadataClient for MemoryMetadata {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        Ok(self.0.lock().unwrap().values.get(key).cloned())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        let state = self.0.lock().unwrap();
        let pairs = state.values.iter().filter(|(key, _)| {
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
        let mut state = self.0.lock().unwrap();
        check(key, state.values.get(key), expect)?;
        state.revision += 1;
        let version = Revision(state.revision);
        state.values.insert(key.to_owned(), Versioned { value, version });
        Ok(version)
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        let mut state = self.0.lock().unwrap();
        check(key, state.values.get(key), expect)?;
        state.values.remove(key);
        Ok(())
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        let mut state = self.0.lock().unwrap();
        let number = state.counters.entry(key.to_owned()).or_insert(0);
        *number += 1;
        Ok(*number)
    }

    async fn watch(&self, _prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        not_here()
    }

    async fn open_session(&self, _time_to_live: Duration) -> Result<SessionId, MetadataError> {
        not_here()
    }

    async fn keep_alive(&self, _session: SessionId) -> Result<(), MetadataError> {
        not_here()
    }

    async fn close_session(&self, _session: SessionId) -> Result<(), MetadataError> {
        not_here()
    }
}

#[derive(Default)]
struct StoredLedger {
    entries: BTreeMap<EntryId, Entry>,
    told: Option<EntryId>,
    fenced: bool,
}

/// One bookie in memory.
#[derive(Default)]
struct MemoryBookie(Mutex<BTreeMap<LedgerId, StoredLedger>>);

const BOOKIE: BookieId = BookieId(1);

#[async_trait]
impl BookieClient for MemoryBookie {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let entries = batch.entries.iter().map(|entry| entry.entry).collect();
        let result = {
            let mut ledgers = self.0.lock().unwrap();
            let stored = ledgers.entry(batch.ledger).or_default();
            if stored.fenced && !batch.recovery {
                Err(crate::domain::AddError::Fenced)
            } else {
                stored.entries.extend(batch.entries.into_iter().map(|entry| (entry.entry, entry)));
                Ok(())
            }
        };
        sink.answered(AddAnswer { bookie: BOOKIE, ledger: batch.ledger, entries, result });
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        let mut ledgers = self.0.lock().unwrap();
        let stored = ledgers.entry(request.ledger).or_default();
        stored.fenced |= request.fence;
        let run: Vec<Entry> = (request.first.0..)
            .map_while(|id| stored.entries.get(&EntryId(id)).cloned())
            .take(request.entries_max as usize)
            .collect();
        if run.is_empty() { Err(ReadError::Absent) } else { Ok(run) }
    }

    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        let mut ledgers = self.0.lock().unwrap();
        let stored = ledgers.entry(ledger).or_default();
        stored.fenced |= fence;
        let carried = stored.entries.values().map(|entry| entry.last_add_confirmed).max();
        Ok(LastAddConfirmed {
            last_add_confirmed: carried.max(stored.told).unwrap_or(EntryId::NONE),
            last_entry: stored.entries.keys().last().copied().unwrap_or(EntryId::NONE),
            fenced: stored.fenced,
        })
    }

    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        let mut ledgers = self.0.lock().unwrap();
        let stored = ledgers.entry(ledger).or_default();
        stored.told = stored.told.max(Some(last_add_confirmed));
        Ok(())
    }
}

struct OneBookie(Arc<MemoryBookie>);

impl BookiePool for OneBookie {
    fn bookie(&self, _id: BookieId) -> Arc<dyn BookieClient> {
        Arc::<MemoryBookie>::clone(&self.0)
    }

    fn writable(&self) -> Vec<BookieId> {
        vec![BOOKIE]
    }
}

/// A broker and what it stands on.
pub(super) struct Cluster {
    pub(super) broker: Broker,
    metadata: Arc<MemoryMetadata>,
    bookie: Arc<MemoryBookie>,
    config: BrokerConfig,
}

impl Cluster {
    /// Defaults.
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With changed limits.
    pub(super) fn with(change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let mut config = BrokerConfig::with_quorum(Quorum::new(1, 1, 1).expect("a quorum of one"));
        change(&mut config);
        Self::over(Arc::default(), Arc::default(), config)
    }

    fn over(
        metadata: Arc<MemoryMetadata>,
        bookie: Arc<MemoryBookie>,
        config: BrokerConfig,
    ) -> Self {
        let runtime = real::runtime();
        let store: Metadata = Arc::<MemoryMetadata>::clone(&metadata);
        let pool = Arc::new(OneBookie(Arc::clone(&bookie)));
        let limits = LedgerConfig::default();
        let ledgers = LedgerClient::new(runtime.clone(), Arc::clone(&store), pool, limits);
        let broker = Broker::new(runtime, store, ledgers, config.clone());
        Self { broker, metadata, bookie, config }
    }

    /// Another broker over the same metadata and bookies.
    pub(super) fn another(&self) -> Self {
        Self::over(Arc::clone(&self.metadata), Arc::clone(&self.bookie), self.config.clone())
    }

    pub(super) async fn topic(&self, name: &str) -> Topic {
        let name = TopicName::parse(name).expect("a name");
        self.broker.topic(&name, true).await.expect("a topic")
    }
}

/// Runs a test on the production runtime.
pub(super) fn in_runtime<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an executor for the test");
    executor.block_on(test());
}

pub(super) fn producer_options(name: Option<&str>) -> ProducerOptions {
    ProducerOptions {
        producer_id: 1,
        name: name.map(str::to_owned),
        epoch: 0,
        metadata: Vec::new(),
        connection: ConnectionFacts::default(),
    }
}

pub(super) fn options(subscription: &str, subscription_type: SubscriptionType) -> SubscribeOptions {
    SubscribeOptions {
        subscription: subscription.to_owned(),
        subscription_type,
        durable: true,
        initial_position: InitialPosition::Earliest,
        rollback_seconds: 0,
        consumer_id: 1,
        consumer_name: String::new(),
        priority_level: 0,
        consumer_epoch: None,
        subscription_properties: Vec::new(),
        metadata: Vec::new(),
        connection: ConnectionFacts::default(),
    }
}

/// Entries of one message each: the numbers, as text.
pub(super) fn publish(numbers: std::ops::Range<u64>) -> Vec<Publish> {
    numbers
        .map(|number| Publish {
            sequence_id: number,
            highest_sequence_id: None,
            message_count: 1,
            is_batch: false,
            publish_time: WallTime(1000 + number),
            client_bytes: Bytes::from(number.to_string()),
        })
        .collect()
}

/// A producer without a name of its own.
pub(super) async fn producer(topic: &Topic) -> (Producer, Arc<ProducerProbe>) {
    let sink = probe::<ProducerProbe>();
    let given = Arc::<ProducerProbe>::clone(&sink);
    let producer = topic.add_producer(producer_options(None), given).await;
    (producer.expect("a producer"), sink)
}

/// A consumer with these permits.
pub(super) async fn consumer(
    topic: &Topic,
    options: SubscribeOptions,
    permits: u32,
) -> (Consumer, Arc<ConsumerProbe>) {
    let sink = probe::<ConsumerProbe>();
    let given = Arc::<ConsumerProbe>::clone(&sink);
    let consumer = topic.subscribe(options, given).await.expect("a consumer");
    consumer.flow(permits);
    (consumer, sink)
}
