//! What passes between a front end and the broker: requests in, outcomes and deliveries out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::domain::{Position, WallTime};

/// Who is connected, for statistics.
#[derive(Clone, Debug, Default)]
pub struct ConnectionFacts {
    /// Peer address, `host:port`.
    pub address: String,
    /// What the client calls itself, for example `Pulsar-CPP-v4.2.0`.
    pub client_version: String,
    /// When it connected.
    pub connected_since: WallTime,
}

/// Entries appended by one call. What is stored of them is a prefix: once one is refused, every later one is.
#[derive(Clone, Debug, Default)]
pub struct AppendSession(Arc<AtomicBool>);

impl AppendSession {
    /// Nothing more of it is taken.
    pub(in crate::broker) fn break_off(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(in crate::broker) fn is_broken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// On what terms an entry is appended. By default it just is.
#[derive(Clone, Debug, Default)]
pub struct AppendTerms {
    /// The sequence number it must get.
    pub expected: Option<u64>,
    /// The fencing token of its writer.
    pub token: Option<u64>,
    /// The call it belongs to.
    pub session: Option<AppendSession>,
}

/// One entry to publish.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The producer's id of the (first) message; echoed in the outcome.
    pub sequence_id: u64,
    /// Id of the last message of a batch, if told; echoed.
    pub highest_sequence_id: Option<u64>,
    /// Messages in the entry, at least 1.
    pub message_count: u32,
    /// The bytes are a batch (even of one).
    pub is_batch: bool,
    /// When the client says it was published.
    pub publish_time: WallTime,
    /// The client's bytes, stored and delivered untouched.
    pub client_bytes: Bytes,
    /// On what terms.
    pub terms: AppendTerms,
}

/// Why an entry was not stored, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The topic moved, closed or is being deleted: look it up again. Not stored.
    #[error("the topic is not served here any more")]
    TopicMoved,
    /// The producer was closed or fenced. Not stored.
    #[error("the producer is closed")]
    ProducerClosed,
    /// The topic's queue is full. Not stored; try again later.
    #[error("too many messages are pending on the topic")]
    TooManyPending,
    /// Its expected number is not the next one. Not stored.
    #[error("the next number is {next}")]
    WrongNumber {
        /// The number the next entry gets, everything before it being committed.
        next: u64,
    },
    /// Its token is not the topic's. Not stored, for ever.
    #[error("the fencing token is {current}")]
    StaleToken {
        /// The topic's token.
        current: u64,
    },
    /// An entry before it in its call was refused. Not stored.
    #[error("an entry before it was refused")]
    SessionBroken,
    /// Storage did not answer as it should: the entry **may or may not** be stored.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

/// What became of one [`Publish`].
#[derive(Clone, Debug)]
pub struct PublishOutcome {
    /// As given.
    pub sequence_id: u64,
    /// As given.
    pub highest_sequence_id: Option<u64>,
    /// The entry's sequence number, if it is committed.
    pub number: u64,
    /// The position of the committed entry, or why not.
    pub result: Result<Position, PublishError>,
}

/// Why the broker closed a producer or consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The topic is moving, was unloaded or failed: look it up again.
    TopicMoved,
    /// The topic was deleted.
    TopicDeleted,
    /// The subscription is seeking: subscribe again.
    Seek,
    /// The subscription was deleted.
    SubscriptionDeleted,
    /// Fenced by another producer or evicted by a newer connection of the same one.
    Replaced,
}

/// Where a producer's outcomes go. Calls are short, never block, and come in the order of publishing.
pub trait ProducerSink: Send + Sync {
    /// Outcomes, in publishing order.
    fn published(&self, outcomes: Vec<PublishOutcome>);
    /// The broker closed the producer. Nothing follows.
    fn closed(&self, reason: CloseReason);
}

/// One entry for a consumer.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Where it is.
    pub position: Position,
    /// Times it was given out before and explicitly asked for again.
    pub redelivery_count: u32,
    /// For a partly acknowledged batch: bit set = not yet acknowledged; little-endian words.
    pub ack_set: Option<Vec<u64>>,
    /// Messages in the entry.
    pub message_count: u32,
    /// The epoch of the consumer when it was sent, if it has one.
    pub consumer_epoch: Option<u64>,
    /// The client's bytes.
    pub client_bytes: Bytes,
}

/// Where a consumer's deliveries go. Calls are short and never block.
pub trait ConsumerSink: Send + Sync {
    /// Entries, in order.
    fn deliver(&self, deliveries: Vec<Delivery>);
    /// False while the connection holds more unsent bytes than its budget. Dispatch then leaves this
    /// consumer out until the front end calls [`super::Consumer::resume`].
    fn has_room(&self) -> bool;
    /// The active consumer of a Failover subscription changed.
    fn active_changed(&self, is_active: bool);
    /// The broker closed the consumer. Nothing follows.
    fn closed(&self, reason: CloseReason);
}

/// How a subscription shares its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SubscriptionType {
    /// One consumer.
    Exclusive,
    /// Round robin over consumers with permits.
    Shared,
    /// One active consumer, others waiting.
    Failover,
    /// One consumer a key.
    #[serde(rename = "Key_Shared")]
    KeyShared,
}

/// Where a new subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialPosition {
    /// After the last message.
    Latest,
    /// At the first message kept.
    Earliest,
    /// At this position, inclusive (readers).
    At(Position),
}

/// What a consumer asks for.
#[derive(Clone, Debug)]
pub struct SubscribeOptions {
    /// The subscription's name, not empty.
    pub subscription: String,
    /// Its type.
    pub subscription_type: SubscriptionType,
    /// False for readers: the cursor lives as long as its consumers and is not stored.
    pub durable: bool,
    /// Where a new subscription begins.
    pub initial_position: InitialPosition,
    /// Begin this long before now instead, if not zero.
    pub rollback_seconds: u64,
    /// The consumer's id on its connection.
    pub consumer_id: u64,
    /// The consumer's name; may be empty or repeated.
    pub consumer_name: String,
    /// Lower is served first.
    pub priority_level: i32,
    /// The consumer's epoch, raised by it at each "redeliver all".
    pub consumer_epoch: Option<u64>,
    /// Stored with a new subscription and shown in statistics.
    pub subscription_properties: Vec<(String, String)>,
    /// Shown in statistics.
    pub metadata: Vec<(String, String)>,
    /// Who is connected.
    pub connection: ConnectionFacts,
}

/// One position acknowledged, wholly or by batch index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AckTarget {
    /// The entry.
    pub position: Position,
    /// For a batch: bit set = still **not** acknowledged; little-endian words. `None`: the whole entry.
    pub ack_set: Option<Vec<u64>>,
}

/// How acknowledgements reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckType {
    /// The targets only. The same entry may come twice; bit sets are combined by AND.
    Individual,
    /// Everything up to the (single) target, inclusive.
    Cumulative,
}

/// An acknowledgement.
#[derive(Clone, Debug)]
pub struct AckRequest {
    /// How it reaches.
    pub ack_type: AckType,
    /// What it names.
    pub targets: Vec<AckTarget>,
}

/// An acknowledgement was not made durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AckError {
    /// The consumer or its subscription is gone.
    #[error("the consumer is closed")]
    ConsumerClosed,
    /// Cumulative acknowledgement on a shared subscription.
    #[error("cumulative acknowledgement is not allowed on this subscription type")]
    NotAllowed,
    /// Storage failed; the acknowledgement may be lost at the next restart (then messages come again).
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

/// Where to move a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeekTarget {
    /// The first message kept.
    Earliest,
    /// After the last message.
    Latest,
    /// This position, inclusive; with a bit set for part of a batch (bit set = to deliver).
    At(Position, Option<Vec<u64>>),
    /// After the last entry with publish time before this.
    Time(WallTime),
}

/// The topic's end as a consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastMessage {
    /// The last committed entry; `None` if nothing was ever written or nothing is kept.
    pub position: Option<Position>,
    /// Messages in that entry if it is a batch.
    pub batch_size: Option<u32>,
    /// The subscription's mark-delete position.
    pub mark_delete: Position,
}
