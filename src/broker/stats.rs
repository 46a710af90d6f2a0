//! What a topic tells about itself. Front ends translate it; rates are per second over the last minute
//! or so, counters are since the topic was loaded here.

use super::messages::{ConnectionFacts, SubscriptionType};
use crate::domain::{Position, WallTime};

/// Messages and bytes in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Messages a second.
    pub message_rate: f64,
    /// Bytes a second.
    pub byte_rate: f64,
    /// Messages since loading.
    pub messages: u64,
    /// Bytes since loading.
    pub bytes: u64,
}

/// One topic.
#[derive(Clone, Debug, Default)]
pub struct TopicStats {
    /// Published.
    pub inward: Flow,
    /// Delivered, all subscriptions.
    pub outward: Flow,
    /// Mean size of the messages published since loading, bytes.
    pub average_message_bytes: f64,
    /// Bytes stored.
    pub storage_bytes: u64,
    /// Bytes stored and not acknowledged by the slowest subscription (an estimate).
    pub backlog_bytes: u64,
    /// Connected producers.
    pub publishers: Vec<PublisherStats>,
    /// Subscriptions by name.
    pub subscriptions: Vec<SubscriptionStats>,
    /// The last committed position, `None` if nothing was ever written.
    pub last_position: Option<Position>,
    /// Ledgers of the chain: (id, entries, bytes).
    pub ledgers: Vec<(u64, u64, u64)>,
    /// Entries appended and not yet confirmed.
    pub pending_adds: u64,
}

/// One producer.
#[derive(Clone, Debug, Default)]
pub struct PublisherStats {
    /// Its id on its connection.
    pub producer_id: u64,
    /// Its name.
    pub producer_name: String,
    /// What it publishes.
    pub inward: Flow,
    /// Mean message size, bytes.
    pub average_message_bytes: f64,
    /// Who is connected.
    pub connection: ConnectionFacts,
    /// As told.
    pub metadata: Vec<(String, String)>,
}

/// One subscription.
#[derive(Clone, Debug)]
pub struct SubscriptionStats {
    /// Its name.
    pub name: String,
    /// Its type.
    pub subscription_type: SubscriptionType,
    /// False for readers.
    pub is_durable: bool,
    /// Delivered.
    pub outward: Flow,
    /// Redelivered messages a second.
    pub redeliver_rate: f64,
    /// Acknowledged messages a second.
    pub ack_rate: f64,
    /// Messages not acknowledged, counted as entries.
    pub backlog_entries: u64,
    /// Given out and not acknowledged.
    pub unacked_messages: u64,
    /// Blocked by unacknowledged messages.
    pub blocked_on_unacked: bool,
    /// The active consumer of Exclusive and Failover.
    pub active_consumer: Option<String>,
    /// Its cursor's mark-delete position.
    pub mark_delete: Position,
    /// The next position dispatch will read.
    pub read_position: Position,
    /// Entries waiting to be redelivered.
    pub in_replay: u64,
    /// Last time a consumer gave permits.
    pub last_flow: WallTime,
    /// Last time something was delivered.
    pub last_consumed: WallTime,
    /// Last acknowledgement.
    pub last_acked: WallTime,
    /// Why nothing is being delivered, in words; empty when there is nothing to deliver or it flows.
    pub idle_reason: String,
    /// As stored.
    pub properties: Vec<(String, String)>,
    /// Connected consumers.
    pub consumers: Vec<ConsumerStats>,
}

/// One consumer.
#[derive(Clone, Debug, Default)]
pub struct ConsumerStats {
    /// Its id on its connection.
    pub consumer_id: u64,
    /// Its name.
    pub consumer_name: String,
    /// Delivered.
    pub outward: Flow,
    /// Redelivered messages a second.
    pub redeliver_rate: f64,
    /// Acknowledged messages a second.
    pub ack_rate: f64,
    /// Permits left; below zero after a large batch.
    pub available_permits: i64,
    /// Given out and not acknowledged.
    pub unacked_messages: u64,
    /// Blocked by unacknowledged messages.
    pub blocked_on_unacked: bool,
    /// Mean messages an entry delivered.
    pub average_messages_per_entry: f64,
    /// Last acknowledgement.
    pub last_acked: WallTime,
    /// Last delivery.
    pub last_consumed: WallTime,
    /// Last permits.
    pub last_flow: WallTime,
    /// Who is connected.
    pub connection: ConnectionFacts,
    /// As told.
    pub metadata: Vec<(String, String)>,
}
