//! A broker over metadata and one bookie in memory.

use std::sync::Arc;

use bytes::Bytes;

use super::sinks::probe;
use super::{ConsumerProbe, ProducerProbe};
use crate::broker::{
    AppendTerms, Broker, BrokerConfig, ConnectionFacts, Consumer, InitialPosition, Producer,
    ProducerOptions, Publish, SubscribeOptions, SubscriptionType, Topic,
};
use crate::domain::{TopicName, WallTime};
use crate::ledger::testing::{FakeBookies, FakeMetadata};
use crate::ledger::{LedgerClient, LedgerConfig, Quorum};
use crate::metadata::{Expect, Metadata, MetadataClient};
use crate::runtime::real;

/// A broker and what it stands on.
pub(super) struct Cluster {
    pub(super) broker: Broker,
    metadata: Arc<FakeMetadata>,
    bookies: Arc<FakeBookies>,
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
        Self::over(Arc::default(), Arc::new(FakeBookies::new(1)), config)
    }

    fn over(metadata: Arc<FakeMetadata>, bookies: Arc<FakeBookies>, config: BrokerConfig) -> Self {
        let runtime = real::runtime();
        let store: Metadata = Arc::<FakeMetadata>::clone(&metadata);
        let pool = Arc::<FakeBookies>::clone(&bookies);
        let limits = LedgerConfig::default();
        let ledgers = LedgerClient::new(runtime.clone(), Arc::clone(&store), pool, limits);
        let broker = Broker::new(runtime, store, ledgers, config.clone());
        broker.own_everything();
        Self { broker, metadata, bookies, config }
    }

    /// Another broker over the same metadata and bookies.
    pub(super) fn another(&self) -> Self {
        Self::over(Arc::clone(&self.metadata), Arc::clone(&self.bookies), self.config.clone())
    }

    /// Writes a record of metadata, whoever it belongs to.
    pub(super) async fn put(&self, key: &str, value: &'static str) {
        let value = Bytes::from_static(value.as_bytes());
        self.metadata.put(key, value, Expect::Any, None).await.expect("metadata in memory");
    }

    /// Whether metadata has a record.
    pub(super) async fn has(&self, key: &str) -> bool {
        self.metadata.get(key).await.expect("metadata in memory").is_some()
    }

    pub(super) async fn topic(&self, name: &str) -> Topic {
        let name = TopicName::parse(name).expect("a name");
        self.broker.topic(&name, true).await.expect("a topic")
    }
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
            terms: AppendTerms::default(),
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
