//! A client of a cluster: knows its brokers' addresses, looks topics up, shares one connection a broker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connection::{Connection, refused};
use super::consumer::Consumer;
use super::error::ClientError;
use super::options::{ClientOptions, ConsumerOptions, ProducerOptions};
use super::producer::Producer;
use crate::domain::{TopicName, TopicNameError};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::mutant;
use crate::runtime::{Random, Runtime};

use proto::command_lookup_topic_response::LookupType;

/// Redirects followed in one lookup.
const REDIRECTS_MAX: usize = 20;
/// Port of a service URL that names none.
const DEFAULT_PORT: &str = ":6650";

struct Inner {
    runtime: Runtime,
    options: ClientOptions,
    random: Random,
    addresses: Vec<String>,
    /// The address that answered last.
    preferred: AtomicUsize,
    /// By address. An entry is locked over its connect, so that one connection is made and no other waits.
    connections: Mutex<BTreeMap<String, Arc<Door>>>,
    next_id: AtomicU64,
}

/// The way to one broker: its connection, once there is one.
type Door = tokio::sync::Mutex<Option<Arc<Connection>>>;

impl Drop for Inner {
    fn drop(&mut self) {
        if mutant!("C-connections") {
            return;
        }
        let doors = self.connections.get_mut().unwrap_or_else(PoisonError::into_inner);
        for door in std::mem::take(doors).into_values() {
            // Locked only by who holds this client.
            if let Some(connection) = door.try_lock().ok().and_then(|mut door| door.take()) {
                connection.close();
            }
        }
    }
}

/// A client. Cheap to clone; its connections live until [`PulsarClient::close`], or until its last clone and the last
/// of its producers and consumers are gone.
#[derive(Clone)]
pub struct PulsarClient(Arc<Inner>);

impl PulsarClient {
    /// A client of `pulsar://host:port[,host:port…]` or plain addresses. Connects to the first that answers.
    pub async fn connect(
        runtime: &Runtime,
        service_url: &str,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        let addresses = parse_service_url(service_url)?;
        let client = Self(Arc::new(Inner {
            runtime: runtime.clone(),
            options,
            random: runtime.random.fork("pulsar-client"),
            addresses,
            preferred: AtomicUsize::new(0),
            connections: Mutex::new(BTreeMap::new()),
            next_id: AtomicU64::new(0),
        }));
        client.service_connection().await?;
        Ok(client)
    }

    /// Closes every connection. Producers and consumers find themselves disconnected.
    pub async fn close(&self) {
        let doors = std::mem::take(&mut *self.doors());
        for door in doors.values() {
            // A connect under way ends by its deadline.
            if let Some(connection) = door.lock().await.take() {
                connection.close();
            }
        }
    }

    /// Number of partitions; 0 for a topic that is not partitioned (and, with `create`, does not exist yet).
    pub async fn partitions(&self, topic: &str, create: bool) -> Result<u32, ClientError> {
        let name = parse_topic(topic)?;
        let connection = self.service_connection().await?;
        let answer = connection
            .request("partition metadata", |request_id| {
                Command::PartitionedMetadata(proto::CommandPartitionedTopicMetadata {
                    topic: name.to_string(),
                    request_id,
                    metadata_auto_creation_enabled: Some(create),
                    ..Default::default()
                })
            })
            .await?;
        match answer {
            Command::PartitionedMetadataResponse(answer) => match answer.error {
                Some(error) => Err(refused(error, answer.message.unwrap_or_default())),
                None => Ok(answer.partitions()),
            },
            other => Err(unexpected(&other)),
        }
    }

    /// The topics to produce to or consume from: the topic itself, or its partitions.
    pub async fn topic_parts(&self, topic: &str) -> Result<Vec<String>, ClientError> {
        let name = parse_topic(topic)?;
        Ok(match self.partitions(topic, true).await? {
            0 => vec![name.to_string()],
            count => (0..count).map(|index| name.with_partition(index).to_string()).collect(),
        })
    }

    /// Names of a namespace's topics, partitions included.
    pub async fn topics(&self, namespace: &str) -> Result<Vec<String>, ClientError> {
        let connection = self.service_connection().await?;
        let answer = connection
            .request("a list of topics", |request_id| {
                Command::GetTopicsOfNamespace(proto::CommandGetTopicsOfNamespace {
                    request_id,
                    namespace: namespace.to_owned(),
                    ..Default::default()
                })
            })
            .await?;
        match answer {
            Command::GetTopicsOfNamespaceResponse(answer) => Ok(answer.topics),
            other => Err(unexpected(&other)),
        }
    }

    /// The address of the broker that serves a topic, `host:port`.
    pub async fn lookup(&self, topic: &str) -> Result<String, ClientError> {
        let asked = self.0.preferred.load(Ordering::Relaxed);
        let found = self.look_up(topic).await;
        if found.as_ref().is_err_and(ClientError::is_transient) {
            // It may be cut off from what it needs to know: the next lookup asks another one.
            let next = (asked + 1) % self.0.addresses.len();
            let preferred = &self.0.preferred;
            // Someone else may have moved on already; then its choice stands.
            let _ = preferred.compare_exchange(asked, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        found
    }

    async fn look_up(&self, topic: &str) -> Result<String, ClientError> {
        let name = parse_topic(topic)?;
        let mut connection = self.service_connection().await?;
        let mut authoritative = false;
        for _ in 0..REDIRECTS_MAX {
            let answer = connection
                .request("a lookup", |request_id| {
                    Command::Lookup(proto::CommandLookupTopic {
                        topic: name.to_string(),
                        request_id,
                        authoritative: Some(authoritative),
                        ..Default::default()
                    })
                })
                .await?;
            let Command::LookupResponse(answer) = answer else { return Err(unexpected(&answer)) };
            let address = strip_scheme(answer.broker_service_url()).to_owned();
            match answer.response() {
                LookupType::Connect => return Ok(address),
                LookupType::Redirect => {
                    authoritative = answer.authoritative();
                    connection = self.connection(&address).await?;
                }
                LookupType::Failed => {
                    let error = answer.error.unwrap_or_default();
                    return Err(refused(error, answer.message.unwrap_or_default()));
                }
            }
        }
        Err(ClientError::Protocol("redirected for ever".to_owned()))
    }

    /// Opens a producer of a topic that is not partitioned, or of one partition.
    pub async fn producer(
        &self,
        topic: &str,
        options: ProducerOptions,
    ) -> Result<Producer, ClientError> {
        let name = parse_topic(topic)?;
        self.while_not_ready(|| Producer::open(self.clone(), name.clone(), options.clone())).await
    }

    /// Opens a consumer of a topic that is not partitioned, or of one partition.
    pub async fn consumer(
        &self,
        topic: &str,
        subscription: &str,
        options: ConsumerOptions,
    ) -> Result<Consumer, ClientError> {
        let name = parse_topic(topic)?;
        let open =
            || Consumer::open(self.clone(), name.clone(), subscription.to_owned(), options.clone());
        self.while_not_ready(open).await
    }

    /// Tries again while the topic is not ready, or its broker cannot be reached and another may take it, within
    /// the deadline of an operation.
    async fn while_not_ready<T, F>(&self, mut open: impl FnMut() -> F) -> Result<T, ClientError>
    where
        F: Future<Output = Result<T, ClientError>>,
    {
        let clock = &self.0.runtime.clock;
        let give_up = clock.now() + self.0.options.operation_limit;
        let mut attempt = 0;
        loop {
            match open().await {
                Err(error @ ClientError::Connect { .. }) if clock.now() < give_up => {
                    tracing::debug!(%error, "the topic's broker cannot be reached");
                    attempt += 1;
                    self.back_off(attempt).await;
                }
                Err(error) if error.is_not_ready() && clock.now() < give_up => {
                    attempt += 1;
                    self.back_off(attempt).await;
                }
                result => return result,
            }
        }
    }

    /// The connection to the broker that serves a topic.
    pub(super) async fn topic_connection(
        &self,
        topic: &TopicName,
    ) -> Result<Arc<Connection>, ClientError> {
        let address = self.lookup(&topic.to_string()).await?;
        self.connection(&address).await
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(super) fn options(&self) -> &ClientOptions {
        &self.0.options
    }

    /// An id for a producer or consumer, of its own on every connection of this client.
    pub(super) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Rests before the `attempt`-th try (from 1), longer each time, with jitter.
    pub(super) async fn back_off(&self, attempt: u32) {
        let options = &self.0.options;
        let doubled = options.backoff_first.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let pause = doubled.min(options.backoff_max);
        let half = u64::try_from(pause.as_millis() / 2).unwrap_or(u64::MAX);
        let jitter = self.0.random.below(half.max(1));
        self.0.runtime.clock.sleep(pause / 2 + Duration::from_millis(jitter)).await;
    }

    /// A connection to any broker, the one that answered last first.
    async fn service_connection(&self) -> Result<Arc<Connection>, ClientError> {
        let count = self.0.addresses.len();
        let first = self.0.preferred.load(Ordering::Relaxed);
        let mut result = Err(ClientError::Closed);
        for index in (0..count).map(|offset| (first + offset) % count) {
            result = self.connection(&self.0.addresses[index]).await;
            if result.is_ok() {
                self.0.preferred.store(index, Ordering::Relaxed);
                return result;
            }
        }
        result
    }

    async fn connection(&self, address: &str) -> Result<Arc<Connection>, ClientError> {
        let door = Arc::clone(self.doors().entry(address.to_owned()).or_default());
        let mut door = door.lock().await;
        if let Some(connection) = door.as_ref()
            && !connection.is_closed()
        {
            return Ok(Arc::clone(connection));
        }
        let connection = Connection::open(&self.0.runtime, address, &self.0.options).await?;
        *door = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn doors(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Door>>> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn unexpected(command: &Command) -> ClientError {
    ClientError::Protocol(format!("{} is no answer to that", command.name()))
}

fn parse_topic(topic: &str) -> Result<TopicName, ClientError> {
    TopicName::parse(topic).map_err(|error: TopicNameError| ClientError::Invalid(error.to_string()))
}

fn strip_scheme(url: &str) -> &str {
    url.strip_prefix("pulsar://").unwrap_or(url).trim_end_matches('/')
}

fn parse_service_url(url: &str) -> Result<Vec<String>, ClientError> {
    let rest = strip_scheme(url);
    if rest.contains("://") {
        return Err(ClientError::Invalid(format!("{url} is not a pulsar:// address")));
    }
    let addresses: Vec<String> = rest
        .split(',')
        .map(str::trim)
        .filter(|address| !address.is_empty())
        .map(|address| match address.contains(':') {
            true => address.to_owned(),
            false => format!("{address}{DEFAULT_PORT}"),
        })
        .collect();
    if addresses.is_empty() {
        return Err(ClientError::Invalid("no address".to_owned()));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_urls_name_one_or_more_brokers() {
        assert_eq!(parse_service_url("pulsar://a:1,b").unwrap(), ["a:1", "b:6650"]);
        assert_eq!(parse_service_url("127.0.0.1:7000").unwrap(), ["127.0.0.1:7000"]);
        assert!(parse_service_url("http://a:1").is_err());
        assert!(parse_service_url("pulsar://").is_err());
    }
}
