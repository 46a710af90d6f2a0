//! One client connection: a reader task that turns frames into calls, and a writer task that writes what
//! those calls answer. Everything either holds is bounded (`PulsarConfig`).

mod delivery_sink;
mod handles;
mod inflight;
mod outbox;
mod publish_sink;
mod reader;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::codec::{Command, CommandError, FrameError, proto};
use super::config::PulsarConfig;
use crate::broker::{Broker, BrokerError, ConnectionFacts};
use crate::domain::{TopicName, TopicNameError};
use crate::runtime::{ByteStream, Runtime, Shutdown, mailbox};

pub(super) use delivery_sink::DeliverySink;
pub(super) use handles::{BeginError, Handles, OpenConsumer, OpenProducer};
pub(super) use inflight::Inflight;
pub(super) use outbox::Outbox;
pub(super) use publish_sink::{PublishSink, Refusal};
pub(super) use reader::PublishBatches;

/// Items the writer's queue holds before the reader waits; answers to admitted work may exceed it.
const OUTBOX_ITEMS: usize = 4096;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionEnd {
    /// The client closed it.
    #[error("closed by the client")]
    Peer,
    /// The stream broke.
    #[error("broken: {0}")]
    Broken(std::io::Error),
    /// Bytes that are not frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame that is not a command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A command that is not allowed here.
    #[error("protocol violation: {0}")]
    Violation(&'static str),
    /// A command only a broker may send, or of the inner protocol.
    #[error("protocol violation: {0} from a client")]
    Unexpected(&'static str),
    /// No CONNECT in time.
    #[error("no CONNECT in time")]
    Handshake,
    /// Nothing came for two keep-alive intervals.
    #[error("silent for too long")]
    Silent,
    /// This front end stops, or the writer could not write.
    #[error("stopping, or the client does not read")]
    Stopped,
}

impl ConnectionEnd {
    /// Whether the client broke the rules.
    pub(super) const fn is_protocol_error(&self) -> bool {
        matches!(self, Self::Frame(_) | Self::Command(_) | Self::Violation(_) | Self::Unexpected(_))
    }
}

/// What the tasks of a connection share.
pub(super) struct Connection {
    pub(super) runtime: Runtime,
    pub(super) broker: Broker,
    pub(super) config: Arc<PulsarConfig>,
    /// `pulsar://host:port` of this broker as clients should see it.
    pub(super) advertised: Arc<str>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) inflight: Arc<Inflight>,
    pub(super) handles: Arc<Handles>,
    facts: Mutex<ConnectionFacts>,
    requests: Arc<Semaphore>,
    /// Triggered when the front end stops or the writer cannot write.
    stop: Shutdown,
}

impl Connection {
    /// Serves a stream until it ends.
    pub(super) async fn serve(
        runtime: Runtime,
        broker: Broker,
        config: Arc<PulsarConfig>,
        advertised: Arc<str>,
        stream: ByteStream,
        address: String,
        stop: Shutdown,
    ) -> ConnectionEnd {
        let (sender, receiver) = mailbox(OUTBOX_ITEMS);
        let facts = ConnectionFacts {
            address,
            client_version: String::new(),
            connected_since: runtime.clock.wall(),
        };
        let connection = Arc::new(Self {
            outbox: Arc::new(Outbox::new(sender, config.outbound_bytes_max)),
            inflight: Arc::new(Inflight::new(config.publishes_max, config.publish_bytes_max)),
            handles: Arc::new(Handles::new(config.producers_max, config.consumers_max)),
            facts: Mutex::new(facts),
            requests: Arc::new(Semaphore::new(config.requests_max)),
            runtime,
            broker,
            config,
            advertised,
            stop,
        });
        let (read_half, write_half) = tokio::io::split(stream);
        let writer = connection
            .runtime
            .tasks
            .spawn("pulsar-writer", writer::write(Arc::clone(&connection), receiver, write_half));
        let end = reader::read(&connection, read_half).await;
        connection.outbox.end();
        let (producers, consumers) = connection.handles.end();
        for open in consumers {
            open.consumer.close().await;
        }
        for open in producers {
            open.producer.close().await;
        }
        // Bounded by the writer's own limit on a client that does not read.
        let _ = writer.await;
        end
    }

    /// Who is connected.
    pub(super) fn facts(&self) -> ConnectionFacts {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what the client calls itself.
    pub(super) fn set_client_version(&self, version: String) {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).client_version = version;
    }

    /// Works on a request beside the reader. Waits while too many are being worked on.
    pub(super) async fn spawn_request<F>(
        self: &Arc<Self>,
        name: &'static str,
        work: F,
    ) -> Result<(), ConnectionEnd>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.stop.signal();
        let permit = tokio::select! {
            biased;
            () = stop.triggered() => return Err(ConnectionEnd::Stopped),
            permit = Arc::clone(&self.requests).acquire_owned() => {
                permit.map_err(|_| ConnectionEnd::Stopped)?
            }
        };
        self.runtime.tasks.spawn(name, async move {
            work.await;
            drop(permit);
        });
        Ok(())
    }

    /// Parses a topic's name within the limits.
    pub(super) fn topic_name(&self, text: &str) -> Result<TopicName, TopicNameError> {
        TopicName::parse(text)
    }

    /// Answers a request with the broker's refusal.
    pub(super) fn refuse(&self, request_id: u64, error: &BrokerError) {
        let code = super::error_map::of_broker(error);
        self.outbox.error(request_id, code, error.to_string());
    }

    /// Answers a request about a name that cannot be one.
    pub(super) fn refuse_name(&self, request_id: u64, error: &TopicNameError) {
        let code = proto::ServerError::InvalidTopicName;
        self.outbox.error(request_id, code, error.to_string());
    }

    /// Queues an answer.
    pub(super) fn answer(&self, command: &Command) {
        self.outbox.command(command);
    }

    /// Asks both tasks to end.
    fn stop_now(&self) {
        self.stop.trigger();
    }
}
