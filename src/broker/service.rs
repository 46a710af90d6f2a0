//! The broker as front ends see it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::managed_ledger::{ManagedLedger, ManagedLedgerEnvironment, TailCache};
use super::messages::ConnectionFacts;
use super::ownership::{
    BrokerAddresses, BrokerRecord, Bundle, Located, Ownership, OwnershipConfig,
};
use super::partitions::{PARTITIONS_MAX, Partitions};
use super::served_topics::ServedTopics;
use crate::domain::{Domain, Formats, NamespaceName, TopicName};
use crate::ledger::{LedgerClient, Quorum};
use crate::metadata::{Metadata, MetadataError, Pages};
use crate::runtime::Runtime;

pub use super::topic::{Consumer, Producer, Topic};

/// Prefix of topics' records in metadata; the full name follows.
const TOPICS_PREFIX: &str = "/topics/";

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
    /// Bundles, sessions, shedding.
    pub ownership: OwnershipConfig,
    /// Which entry headers it writes, and which it reads.
    pub formats: Formats,
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
            ownership: OwnershipConfig::default(),
            formats: Formats::default(),
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
    /// Another broker serves it, or nobody does: look it up again.
    #[error(
        "Namespace bundle for topic ({0}) not served by this instance. Please redo the lookup."
    )]
    NotServed(TopicName),
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
    served: Arc<ServedTopics>,
    ownership: Arc<Ownership>,
    partitions: Partitions,
    metadata: Metadata,
}

impl Broker {
    /// A broker over metadata and ledgers.
    pub fn new(
        runtime: Runtime,
        metadata: Metadata,
        ledgers: LedgerClient,
        config: BrokerConfig,
    ) -> Self {
        let cache = Arc::new(TailCache::new(config.tail_cache_bytes));
        let ownership = config.ownership.clone();
        let environment = ManagedLedgerEnvironment {
            runtime: runtime.clone(),
            metadata: Arc::clone(&metadata),
            ledgers,
            config,
            cache,
        };
        let served = ServedTopics::new(environment);
        let topics = Arc::clone(&served);
        Self {
            served,
            ownership: Ownership::new(runtime, Arc::clone(&metadata), ownership, topics),
            partitions: Partitions::new(Arc::clone(&metadata)),
            metadata,
        }
    }

    /// Registers this broker in the cluster under these addresses; until then it serves nothing. Waits for
    /// metadata as long as it takes. `connections` tells how many clients are connected.
    pub async fn join(
        &self,
        addresses: BrokerAddresses,
        connections: Arc<dyn Fn() -> u64 + Send + Sync>,
    ) {
        self.ownership.join(addresses, connections).await;
    }

    /// Where a topic is served. A topic that nobody serves is taken if this broker is the one to take it, or
    /// if whoever chose it says so (`authoritative`).
    pub async fn locate(
        &self,
        name: &TopicName,
        authoritative: bool,
    ) -> Result<Located, BrokerError> {
        self.ownership.locate(name, authoritative).await
    }

    /// The topic, loaded (and with `create`, created) if need be; `NotServed` if it is not to be served here.
    pub async fn topic(&self, name: &TopicName, create: bool) -> Result<Topic, BrokerError> {
        check_persistent(name)?;
        if let Some(topic) = self.served.get(name)? {
            return Ok(topic);
        }
        let bundle = self.ownership.bundle_of(name).await?;
        // Who did not look it up first is served all the same by the broker a lookup would have named.
        if !self.served.is_served(&bundle) && self.locate(name, false).await? != Located::Here {
            return Err(BrokerError::NotServed(name.clone()));
        }
        if create {
            self.check_partitioning(name).await?;
        }
        self.served.load(name, &bundle, create).await
    }

    /// The bundle a topic is in.
    pub async fn bundle_of(&self, name: &TopicName) -> Result<Bundle, BrokerError> {
        self.ownership.bundle_of(name).await
    }

    /// The bundles of a namespace, in order.
    pub async fn bundles(&self, namespace: &NamespaceName) -> Result<Vec<Bundle>, BrokerError> {
        Ok(Bundle::all(namespace, self.ownership.bundle_count(namespace).await?))
    }

    /// The registered broker that owns a bundle, if it is not this one.
    pub async fn other_owner(
        &self,
        bundle: &Bundle,
    ) -> Result<Option<BrokerAddresses>, BrokerError> {
        self.ownership.other_owner(bundle).await
    }

    /// Gives a bundle up if it is held here: its topics are closed, clients look up again, and whoever is
    /// asked next takes it.
    pub async fn release(&self, bundle: &Bundle) -> Result<(), BrokerError> {
        self.ownership.release(bundle).await
    }

    /// Every registered broker, by start.
    pub async fn brokers(&self) -> Result<Vec<BrokerRecord>, BrokerError> {
        let brokers = self.ownership.brokers().await?;
        Ok(brokers.into_iter().map(|(_, record)| record).collect())
    }

    /// Every namespace that was ever used, in order.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceName>, BrokerError> {
        self.ownership.namespaces().await
    }

    /// A partitioned topic itself holds nothing, and it has no partition beyond its count.
    async fn check_partitioning(&self, name: &TopicName) -> Result<(), BrokerError> {
        let count = self.partitions.count(&name.partitioned()).await?;
        match (name.partition(), count) {
            (None, Some(count)) => Err(BrokerError::NotAllowed(format!(
                "{name} is partitioned: use one of its {count} partitions"
            ))),
            (Some(index), Some(count)) if index >= count => {
                Err(BrokerError::TopicNotFound(name.clone()))
            }
            _ => Ok(()),
        }
    }

    async fn exists(&self, name: &TopicName) -> Result<bool, BrokerError> {
        let record = self.metadata.get(&format!("{TOPICS_PREFIX}{name}")).await;
        Ok(record?.is_some())
    }

    /// Number of partitions; 0 for a topic that is not partitioned. With `create` a missing topic counts
    /// as 0, else it is `TopicNotFound`.
    pub async fn partitions(&self, name: &TopicName, create: bool) -> Result<u32, BrokerError> {
        check_persistent(name)?;
        if let Some(count) = self.partitions.count(name).await? {
            return Ok(count);
        }
        if create || self.exists(name).await? {
            return Ok(0);
        }
        Err(BrokerError::TopicNotFound(name.clone()))
    }

    /// Creates a partitioned topic and its partitions. If this fails half way the record stays, and
    /// partitions are created on first use.
    pub async fn create_partitioned(
        &self,
        name: &TopicName,
        count: u32,
    ) -> Result<(), BrokerError> {
        check_persistent(name)?;
        if count == 0 || count > PARTITIONS_MAX {
            return Err(BrokerError::Invalid(format!(
                "a topic has 1 to {PARTITIONS_MAX} partitions"
            )));
        }
        if name.partition().is_some() {
            return Err(BrokerError::Invalid(format!("{name} is the name of a partition")));
        }
        if self.exists(name).await? {
            return Err(BrokerError::TopicExists(name.clone()));
        }
        self.partitions.create(name, count).await?;
        for index in 0..count {
            self.write_new(&name.with_partition(index)).await?;
        }
        Ok(())
    }

    /// Writes the record of a topic nobody has used; whoever owns its bundle may load it then. One that is
    /// there stays as it is.
    async fn write_new(&self, name: &TopicName) -> Result<(), BrokerError> {
        match ManagedLedger::create(&self.metadata, &name.to_string()).await {
            Ok(()) | Err(MetadataError::VersionMismatch { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a topic that is not partitioned.
    pub async fn create_topic(&self, name: &TopicName) -> Result<(), BrokerError> {
        check_persistent(name)?;
        self.check_partitioning(name).await.map_err(|error| match error {
            BrokerError::NotAllowed(_) => BrokerError::TopicExists(name.clone()),
            other => other,
        })?;
        if self.exists(name).await? {
            return Err(BrokerError::TopicExists(name.clone()));
        }
        self.write_new(name).await
    }

    /// Deletes a topic, or a partitioned topic with its partitions. Without `force` refuses while it has
    /// producers or subscriptions.
    pub async fn delete_topic(&self, name: &TopicName, force: bool) -> Result<(), BrokerError> {
        check_persistent(name)?;
        match self.partitions.count(name).await? {
            None => self.topic(name, false).await?.delete(force).await,
            Some(count) => self.delete_partitioned(name, count, &BTreeSet::new(), force).await,
        }
    }

    /// Deletes the record of a partitioned topic and its partitions but those `away`, which other brokers
    /// serve and are to delete.
    pub async fn delete_partitioned(
        &self,
        name: &TopicName,
        count: u32,
        away: &BTreeSet<TopicName>,
        force: bool,
    ) -> Result<(), BrokerError> {
        // All are asked before the first is deleted; the record goes first, so that lookups stop.
        let mut partitions = Vec::new();
        for index in 0..count {
            let part = name.with_partition(index);
            if away.contains(&part) {
                continue;
            }
            match self.topic(&part, false).await {
                Ok(partition) => {
                    partition.check_unused(force).await?;
                    partitions.push(partition);
                }
                Err(BrokerError::TopicNotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.partitions.delete(name).await?;
        for partition in partitions {
            partition.delete(force).await?;
        }
        Ok(())
    }

    /// Every topic of a namespace by its full name, partitions included, in name order.
    pub async fn topics(&self, namespace: &NamespaceName) -> Result<Vec<TopicName>, BrokerError> {
        let prefix = format!("{TOPICS_PREFIX}{}://{namespace}/", Domain::Persistent.as_str());
        let mut names = Vec::new();
        let mut pages = Pages::new(&self.metadata, &prefix);
        while let Some(page) = pages.next().await? {
            let keys = page.iter().filter_map(|(key, _)| key.strip_prefix(TOPICS_PREFIX));
            // A key that is no topic name was not written by a broker.
            names.extend(keys.filter_map(|key| TopicName::parse(key).ok()));
        }
        names.sort();
        Ok(names)
    }

    /// Topics loaded here now.
    pub fn loaded_topics(&self) -> Vec<Topic> {
        self.served.loaded()
    }

    /// Hands every bundle over: clients are told to look up again, its topics are closed, and it is released.
    /// Nothing is loaded any more.
    pub async fn stop(&self) {
        self.ownership.hand_over().await;
        self.served.stop().await;
        self.ownership.end().await;
    }

    /// Takes every bundle without asking anybody: for tests of topics, over metadata without watches.
    #[cfg(test)]
    pub(super) fn own_everything(&self) {
        let namespace = NamespaceName::parse("public/default").unwrap();
        for bundle in Bundle::all(&namespace, OwnershipConfig::default().bundles) {
            self.served.open(&bundle, 1);
        }
    }
}

fn check_persistent(name: &TopicName) -> Result<(), BrokerError> {
    match name.domain() {
        Domain::Persistent => Ok(()),
        Domain::NonPersistent => {
            Err(BrokerError::NotAllowed("non-persistent topics come later".to_owned()))
        }
    }
}

impl From<MetadataError> for BrokerError {
    fn from(error: MetadataError) -> Self {
        Self::Metadata(error.to_string())
    }
}
