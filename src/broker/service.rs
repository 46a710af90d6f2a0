//! The broker as front ends see it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::messages::{
    AckError, AckRequest, ConnectionFacts, ConsumerSink, LastMessage, ProducerSink, Publish,
    SeekTarget, SubscribeOptions,
};
use super::{ConsumerStats, TopicStats};
use crate::domain::{NamespaceName, Position, TopicName};
use crate::ledger::{LedgerClient, Quorum};
use crate::metadata::Metadata;
use crate::runtime::Runtime;

/// Limits and defaults of a broker.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// The cluster's name, first part of generated producer names.
    pub cluster: String,
    /// Replication of topics' ledgers.
    pub quorum: Quorum,
    /// Replication of cursors' ledgers.
    pub cursor_quorum: Quorum,
    /// A topic's ledger is rolled over at this many entries.
    pub ledger_entries_max: u64,
    /// … or at this many bytes.
    pub ledger_bytes_max: u64,
    /// … or at this age, if not empty.
    pub ledger_age_max: Duration,
    /// Bytes of recent entries kept in memory over all topics.
    pub tail_cache_bytes: usize,
    /// Publishes pending on one topic; more are refused with `TooManyPending`.
    pub topic_pending_max: usize,
    /// Longest name of a subscription, producer or consumer, in bytes.
    pub name_bytes_max: usize,
    /// Unacknowledged messages of one consumer of a Shared subscription before it is blocked.
    pub unacked_per_consumer_max: u32,
    /// How often fully consumed ledgers are trimmed.
    pub trim_interval: Duration,
    /// Acknowledgements without a receipt are made durable within this time.
    pub cursor_flush_interval: Duration,
    /// Entries a cursor's ledger may hold before the cursor moves to a new one.
    pub cursor_ledger_entries_max: u64,
}

impl BrokerConfig {
    /// Defaults for a replication.
    pub fn with_quorum(quorum: Quorum) -> Self {
        Self {
            cluster: "standalone".to_owned(),
            quorum,
            cursor_quorum: quorum,
            ledger_entries_max: 1_000_000,
            ledger_bytes_max: 1024 * 1024 * 1024,
            ledger_age_max: Duration::from_secs(4 * 3600),
            tail_cache_bytes: 256 * 1024 * 1024,
            topic_pending_max: 20_000,
            name_bytes_max: 1024,
            unacked_per_consumer_max: 50_000,
            trim_interval: Duration::from_secs(30),
            cursor_flush_interval: Duration::from_millis(200),
            cursor_ledger_entries_max: 50_000,
        }
    }
}

/// Why the broker refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokerError {
    /// No such topic.
    #[error("topic {0} does not exist")]
    TopicNotFound(TopicName),
    /// It exists already.
    #[error("topic {0} exists already")]
    TopicExists(TopicName),
    /// No such subscription.
    #[error("subscription {0} does not exist")]
    SubscriptionNotFound(String),
    /// Producers or subscriptions hold it.
    #[error("in use: {0}")]
    InUse(String),
    /// The subscription is Exclusive and taken, or connected consumers are of another type.
    #[error("consumer busy: {0}")]
    ConsumerBusy(String),
    /// A connected producer has this name.
    #[error("producer busy: {0}")]
    ProducerBusy(String),
    /// An argument breaks a rule.
    #[error("invalid: {0}")]
    Invalid(String),
    /// Permanently not possible here.
    #[error("not allowed: {0}")]
    NotAllowed(String),
    /// For the moment: loading, fenced, seeking, moving. Try again.
    #[error("not ready: {0}")]
    NotReady(String),
    /// Metadata failed.
    #[error("metadata: {0}")]
    Metadata(String),
    /// Storage failed.
    #[error("storage: {0}")]
    Storage(String),
}

/// What a producer asks for.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// The producer's id on its connection.
    pub producer_id: u64,
    /// Its name; the broker makes one if not given.
    pub name: Option<String>,
    /// Raised by the client at each reconnect.
    pub epoch: u64,
    /// Shown in statistics.
    pub metadata: Vec<(String, String)>,
    /// Who is connected.
    pub connection: ConnectionFacts,
}

/// A running broker. Cheap to clone.
#[derive(Clone)]
pub struct Broker {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl Broker {
    /// A broker over metadata and ledgers.
    pub fn new(
        _runtime: Runtime,
        _metadata: Metadata,
        _ledgers: LedgerClient,
        _config: BrokerConfig,
    ) -> Self {
        unimplemented!()
    }

    /// The topic, loaded (and with `create`, created) if need be.
    pub async fn topic(&self, _name: &TopicName, _create: bool) -> Result<Topic, BrokerError> {
        unimplemented!()
    }

    /// Number of partitions; 0 for a topic that is not partitioned. With `create` a missing topic counts
    /// as 0, else it is `TopicNotFound`.
    pub async fn partitions(&self, _name: &TopicName, _create: bool) -> Result<u32, BrokerError> {
        unimplemented!()
    }

    /// Creates a partitioned topic and its partitions.
    pub async fn create_partitioned(
        &self,
        _name: &TopicName,
        _count: u32,
    ) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// Creates a topic that is not partitioned.
    pub async fn create_topic(&self, _name: &TopicName) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// Deletes a topic, or a partitioned topic with its partitions. Without `force` refuses while it has
    /// producers or subscriptions.
    pub async fn delete_topic(&self, _name: &TopicName, _force: bool) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// Every topic of a namespace by its full name, partitions included, in name order.
    pub async fn topics(&self, _namespace: &NamespaceName) -> Result<Vec<TopicName>, BrokerError> {
        unimplemented!()
    }

    /// Topics loaded here now.
    pub fn loaded_topics(&self) -> Vec<Topic> {
        unimplemented!()
    }

    /// Closes every topic in order; clients are told to look up again.
    pub async fn stop(&self) {
        unimplemented!()
    }
}

/// A loaded topic. Cheap to clone.
#[derive(Clone)]
pub struct Topic {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl Topic {
    /// Its name.
    pub fn name(&self) -> &TopicName {
        unimplemented!()
    }

    /// Adds a producer.
    pub async fn add_producer(
        &self,
        _options: ProducerOptions,
        _sink: Arc<dyn ProducerSink>,
    ) -> Result<Producer, BrokerError> {
        unimplemented!()
    }

    /// Adds a consumer; creates the subscription if it is new.
    pub async fn subscribe(
        &self,
        _options: SubscribeOptions,
        _sink: Arc<dyn ConsumerSink>,
    ) -> Result<Consumer, BrokerError> {
        unimplemented!()
    }

    /// Names of its subscriptions.
    pub async fn subscriptions(&self) -> Result<Vec<String>, BrokerError> {
        unimplemented!()
    }

    /// Deletes a subscription; without `force` refuses while it has consumers.
    pub async fn delete_subscription(&self, _name: &str, _force: bool) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// What it tells about itself.
    pub async fn stats(&self) -> TopicStats {
        unimplemented!()
    }

    /// Closes the topic here: clients look up again and it is loaded anew.
    pub async fn unload(&self) {
        unimplemented!()
    }
}

/// A connected producer.
#[derive(Clone)]
pub struct Producer {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl Producer {
    /// Its name, given or made.
    pub fn name(&self) -> &str {
        unimplemented!()
    }

    /// Publishes entries in order; never blocks. Every one gets its outcome at the sink, in order.
    pub fn publish(&self, _entries: Vec<Publish>) {
        unimplemented!()
    }

    /// Closes it; outcomes of what is pending still come first.
    pub async fn close(&self) {
        unimplemented!()
    }
}

/// A connected consumer.
#[derive(Clone)]
pub struct Consumer {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl Consumer {
    /// Allows this many more messages.
    pub fn flow(&self, _permits: u32) {
        unimplemented!()
    }

    /// The sink has room again.
    pub fn resume(&self) {
        unimplemented!()
    }

    /// Acknowledges. The answer comes when it is durable; dropping the receiver is fine.
    pub fn acknowledge(&self, _request: AckRequest) -> oneshot::Receiver<Result<(), AckError>> {
        unimplemented!()
    }

    /// Asks for entries again: these, or everything unacknowledged of this consumer.
    pub fn redeliver(&self, _positions: Option<Vec<Position>>, _consumer_epoch: Option<u64>) {
        unimplemented!()
    }

    /// Its figures.
    pub async fn stats(&self) -> ConsumerStats {
        unimplemented!()
    }

    /// Moves the subscription. All its consumers are closed with `Seek` first.
    pub async fn seek(&self, _target: SeekTarget) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// The topic's end.
    pub async fn last_message(&self) -> Result<LastMessage, BrokerError> {
        unimplemented!()
    }

    /// Deletes the subscription; refused while other consumers are connected, unless `force`.
    pub async fn unsubscribe(&self, _force: bool) -> Result<(), BrokerError> {
        unimplemented!()
    }

    /// Closes it; what it holds unacknowledged goes to others.
    pub async fn close(&self) {
        unimplemented!()
    }
}
