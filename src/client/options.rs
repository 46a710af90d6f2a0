//! Settings of clients, producers and consumers.

use std::time::Duration;

use super::compression::Compression;
use super::message::MessageId;
use crate::broker::SubscriptionType;

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Deadline of every request and connect.
    pub operation_limit: Duration,
    /// How often to ping; a broker silent for two of these is taken for dead.
    pub keep_alive: Duration,
    /// Largest frame read, and largest payload after decompression, in bytes.
    pub frame_bytes_max: usize,
    /// Frames waiting to be written on one connection; a sender waits at the bound.
    pub outbound_frames_max: usize,
    /// First pause before connecting again; doubled each time up to `backoff_max`, with jitter.
    pub backoff_first: Duration,
    /// Longest pause before connecting again.
    pub backoff_max: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            operation_limit: Duration::from_secs(30),
            keep_alive: Duration::from_secs(30),
            frame_bytes_max: 64 * 1024 * 1024,
            outbound_frames_max: 1024,
            backoff_first: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
        }
    }
}

/// Settings of a producer.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// Its name; the broker makes one if not given.
    pub name: Option<String>,
    /// Messages without outcome; a sender waits at the bound.
    pub pending_max: usize,
    /// Messages in a batch; 1 sends each by itself.
    pub batch_messages_max: usize,
    /// Bytes of payload in a batch.
    pub batch_bytes_max: usize,
    /// How long a batch may wait for more; zero sends what is queued at once.
    pub linger: Duration,
    /// How payloads are compressed.
    pub compression: Compression,
    /// A message without outcome after this is `Unknown`.
    pub send_limit: Duration,
    /// Connect again and send again what got no receipt. Then a message may be stored more than once.
    /// Without it everything pending is `Unknown` when the connection or the producer is lost.
    pub reconnect: bool,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            name: None,
            pending_max: 1000,
            batch_messages_max: 1,
            batch_bytes_max: 128 * 1024,
            linger: Duration::ZERO,
            compression: Compression::None,
            send_limit: Duration::from_secs(30),
            reconnect: true,
        }
    }
}

/// Where a new subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartPosition {
    /// At the first message kept.
    Earliest,
    /// After the last message.
    Latest,
    /// At this message, inclusive; readers only.
    At(MessageId),
}

/// Settings of a consumer.
#[derive(Clone, Debug)]
pub struct ConsumerOptions {
    /// How the subscription shares its messages.
    pub subscription_type: SubscriptionType,
    /// Where a new subscription begins.
    pub start: StartPosition,
    /// False for a reader: the subscription is not stored.
    pub durable: bool,
    /// Messages asked for ahead, at least 1.
    pub receiver_queue: u32,
    /// Its name.
    pub name: String,
    /// Facts kept with a durable subscription, set when it is created.
    pub subscription_properties: Vec<(String, String)>,
    /// Lower is served first.
    pub priority_level: i32,
    /// Connect and subscribe again when the connection or the consumer is lost.
    pub reconnect: bool,
}

impl Default for ConsumerOptions {
    fn default() -> Self {
        Self {
            subscription_type: SubscriptionType::Exclusive,
            start: StartPosition::Latest,
            durable: true,
            receiver_queue: 1000,
            name: String::new(),
            subscription_properties: Vec::new(),
            priority_level: 0,
            reconnect: true,
        }
    }
}
