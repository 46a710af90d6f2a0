//! Statistics in the shape Pulsar's clients, consoles and scripts read. A field of a feature that is not
//! here (transactions, chunks, offloading, delayed delivery, replication) has its neutral value.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::broker::{
    ConnectionFacts, ConsumerStats, Flow, PublisherStats, SubscriptionStats, SubscriptionType,
    TopicStats,
};
use crate::domain::{Position, WallTime};

/// A map that is always empty here.
type Nothing = BTreeMap<String, u8>;

/// One topic.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopicJson {
    msg_rate_in: f64,
    msg_throughput_in: f64,
    msg_rate_out: f64,
    msg_throughput_out: f64,
    bytes_in_counter: u64,
    msg_in_counter: u64,
    bytes_out_counter: u64,
    msg_out_counter: u64,
    average_msg_size: f64,
    msg_chunk_published: bool,
    storage_size: u64,
    backlog_size: u64,
    publish_rate_limited_times: u64,
    earliest_msg_publish_time_in_backlogs: u64,
    offloaded_storage_size: u64,
    last_offload_ledger_id: u64,
    last_offload_success_time_stamp: u64,
    last_offload_failure_time_stamp: u64,
    ongoing_txn_count: u64,
    aborted_txn_count: u64,
    committed_txn_count: u64,
    publishers: Vec<PublisherJson>,
    waiting_publishers: u64,
    subscriptions: BTreeMap<String, SubscriptionJson>,
    replication: Nothing,
    deduplication_status: &'static str,
    topic_epoch: Option<u64>,
    non_contiguous_deleted_messages_ranges: u64,
    non_contiguous_deleted_messages_ranges_serialized_size: u64,
    delayed_message_index_size_in_bytes: u64,
    compaction: CompactionJson,
    owner_broker: String,
    metadata: Nothing,
}

/// Compaction: never happened.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompactionJson {
    last_compaction_removed_event_count: u64,
    last_compaction_succeed_timestamp: u64,
    last_compaction_failed_timestamp: u64,
    last_compaction_duration_time_in_mills: u64,
}

/// One producer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PublisherJson {
    access_mode: &'static str,
    producer_id: u64,
    producer_name: String,
    msg_rate_in: f64,
    msg_throughput_in: f64,
    average_msg_size: f64,
    chunked_message_rate: f64,
    supports_partial_producer: bool,
    #[serde(flatten)]
    peer: PeerJson,
    metadata: BTreeMap<String, String>,
}

/// Who is at the other end.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PeerJson {
    address: String,
    connected_since: String,
    client_version: String,
}

/// One subscription.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionJson {
    #[serde(rename = "type")]
    subscription_type: &'static str,
    is_durable: bool,
    durable: bool,
    is_replicated: bool,
    replicated: bool,
    msg_rate_out: f64,
    msg_throughput_out: f64,
    bytes_out_counter: u64,
    msg_out_counter: u64,
    msg_rate_redeliver: f64,
    message_ack_rate: f64,
    chunked_message_rate: f64,
    msg_backlog: u64,
    backlog_size: i64,
    earliest_msg_publish_time_in_backlog: u64,
    msg_backlog_no_delayed: u64,
    msg_delayed: u64,
    msg_in_replay: u64,
    blocked_subscription_on_unacked_msgs: bool,
    unacked_messages: u64,
    active_consumer_name: Option<String>,
    msg_rate_expired: f64,
    total_msg_expired: u64,
    last_expire_timestamp: u64,
    last_consumed_flow_timestamp: u64,
    last_consumed_timestamp: u64,
    last_acked_timestamp: u64,
    last_mark_delete_advanced_timestamp: u64,
    consumers: Vec<ConsumerJson>,
    allow_out_of_order_delivery: bool,
    key_shared_mode: Option<&'static str>,
    consumers_after_mark_delete_position: Nothing,
    non_contiguous_deleted_messages_ranges: u64,
    non_contiguous_deleted_messages_ranges_serialized_size: u64,
    delayed_message_index_size_in_bytes: u64,
    subscription_properties: BTreeMap<String, String>,
    filter_processed_msg_count: u64,
    filter_accepted_msg_count: u64,
    filter_rejected_msg_count: u64,
    filter_rescheduled_msg_count: u64,
    /// Ours: why nothing is being delivered, in words; empty when nothing is to be said.
    idle_reason: String,
}

/// One consumer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConsumerJson {
    consumer_name: String,
    msg_rate_out: f64,
    msg_throughput_out: f64,
    bytes_out_counter: u64,
    msg_out_counter: u64,
    msg_rate_redeliver: f64,
    message_ack_rate: f64,
    chunked_message_rate: f64,
    available_permits: i64,
    unacked_messages: u64,
    avg_messages_per_entry: u64,
    blocked_consumer_on_unacked_msgs: bool,
    #[serde(flatten)]
    peer: PeerJson,
    last_acked_timestamp: u64,
    last_consumed_timestamp: u64,
    last_consumed_flow_timestamp: u64,
    read_position_when_joining: Option<String>,
    key_hash_ranges: Option<Vec<String>>,
    metadata: BTreeMap<String, String>,
}

/// The sum over a partitioned topic, and its parts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartitionedJson {
    #[serde(flatten)]
    sum: TopicSum,
    metadata: PartitionsJson,
    partitions: BTreeMap<String, TopicJson>,
}

/// A topic's fields without its own `metadata`, which is another thing on a partitioned topic.
type TopicSum = serde_json::Map<String, serde_json::Value>;

/// How many partitions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PartitionsJson {
    partitions: u32,
    deleted: bool,
}

/// What `internalStats` tells.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InternalStatsJson {
    entries_added_counter: u64,
    number_of_entries: u64,
    total_size: u64,
    current_ledger_entries: u64,
    current_ledger_size: u64,
    last_ledger_created_timestamp: Option<String>,
    last_ledger_creation_failure_timestamp: Option<String>,
    waiting_cursors_count: u64,
    pending_add_entries_count: u64,
    last_confirmed_entry: String,
    state: &'static str,
    ledgers: Vec<LedgerJson>,
    cursors: BTreeMap<String, CursorJson>,
    schema_ledgers: Vec<LedgerJson>,
    compacted_ledger: LedgerJson,
}

/// One ledger of the chain.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LedgerJson {
    ledger_id: i64,
    entries: i64,
    size: i64,
    offloaded: bool,
    under_replicated: bool,
}

/// One cursor.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CursorJson {
    mark_delete_position: String,
    read_position: String,
    waiting_read_op: bool,
    pending_read_ops: u64,
    messages_consumed_counter: u64,
    cursor_ledger: i64,
    cursor_ledger_last_entry: i64,
    state: &'static str,
    number_of_entries_since_first_not_acked_message: u64,
    subscription_have_pending_read: bool,
    subscription_have_pending_replay_read: bool,
    properties: BTreeMap<String, u64>,
}

impl TopicJson {
    /// A topic's statistics as told by `owner`.
    pub(crate) fn new(stats: &TopicStats, owner: &str) -> Self {
        Self {
            msg_rate_in: finite(stats.inward.message_rate),
            msg_throughput_in: finite(stats.inward.byte_rate),
            msg_rate_out: finite(stats.outward.message_rate),
            msg_throughput_out: finite(stats.outward.byte_rate),
            bytes_in_counter: stats.inward.bytes,
            msg_in_counter: stats.inward.messages,
            bytes_out_counter: stats.outward.bytes,
            msg_out_counter: stats.outward.messages,
            average_msg_size: finite(stats.average_message_bytes),
            storage_size: stats.storage_bytes,
            backlog_size: stats.backlog_bytes,
            publishers: stats.publishers.iter().map(publisher).collect(),
            subscriptions: stats
                .subscriptions
                .iter()
                .map(|stats| (stats.name.clone(), subscription(stats)))
                .collect(),
            deduplication_status: "Disabled",
            owner_broker: owner.to_owned(),
            ..Self::default()
        }
    }
}

impl PartitionedJson {
    /// A partitioned topic.
    pub(crate) fn new(sum: TopicJson, count: u32, partitions: BTreeMap<String, TopicJson>) -> Self {
        let mut fields = match serde_json::to_value(sum) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => TopicSum::new(),
        };
        fields.remove("metadata");
        Self {
            sum: fields,
            metadata: PartitionsJson { partitions: count, deleted: false },
            partitions,
        }
    }
}

impl InternalStatsJson {
    /// What a topic's statistics say about its ledgers and cursors.
    pub(crate) fn new(stats: &TopicStats) -> Self {
        let ledger = |&(id, entries, bytes): &(u64, u64, u64)| LedgerJson {
            ledger_id: signed(id),
            entries: signed(entries),
            size: signed(bytes),
            offloaded: false,
            under_replicated: false,
        };
        let (_, current_entries, current_bytes) = stats.ledgers.last().copied().unwrap_or_default();
        Self {
            entries_added_counter: stats.inward.messages,
            number_of_entries: stats.ledgers.iter().map(|(_, entries, _)| entries).sum(),
            total_size: stats.storage_bytes,
            current_ledger_entries: current_entries,
            current_ledger_size: current_bytes,
            last_ledger_created_timestamp: None,
            last_ledger_creation_failure_timestamp: None,
            waiting_cursors_count: 0,
            pending_add_entries_count: stats.pending_adds,
            last_confirmed_entry: stats.last_position.map_or("-1:-1".to_owned(), place),
            state: "LedgerOpened",
            ledgers: stats.ledgers.iter().map(ledger).collect(),
            cursors: stats
                .subscriptions
                .iter()
                .map(|stats| (stats.name.clone(), cursor(stats)))
                .collect(),
            schema_ledgers: Vec::new(),
            compacted_ledger: LedgerJson {
                ledger_id: -1,
                entries: -1,
                size: -1,
                offloaded: false,
                under_replicated: false,
            },
        }
    }
}

fn publisher(stats: &PublisherStats) -> PublisherJson {
    PublisherJson {
        access_mode: "Shared",
        producer_id: stats.producer_id,
        producer_name: stats.producer_name.clone(),
        msg_rate_in: finite(stats.inward.message_rate),
        msg_throughput_in: finite(stats.inward.byte_rate),
        average_msg_size: finite(stats.average_message_bytes),
        chunked_message_rate: 0.0,
        supports_partial_producer: false,
        peer: peer(&stats.connection),
        metadata: stats.metadata.iter().cloned().collect(),
    }
}

fn subscription(stats: &SubscriptionStats) -> SubscriptionJson {
    let Flow { message_rate, byte_rate, messages, bytes } = stats.outward;
    SubscriptionJson {
        subscription_type: type_name(stats.subscription_type),
        is_durable: stats.is_durable,
        durable: stats.is_durable,
        is_replicated: false,
        replicated: false,
        msg_rate_out: finite(message_rate),
        msg_throughput_out: finite(byte_rate),
        bytes_out_counter: bytes,
        msg_out_counter: messages,
        msg_rate_redeliver: finite(stats.redeliver_rate),
        message_ack_rate: finite(stats.ack_rate),
        chunked_message_rate: 0.0,
        msg_backlog: stats.backlog_entries,
        backlog_size: -1, // Pulsar's word for "not computed"
        earliest_msg_publish_time_in_backlog: 0,
        msg_backlog_no_delayed: stats.backlog_entries,
        msg_delayed: 0,
        msg_in_replay: stats.in_replay,
        blocked_subscription_on_unacked_msgs: stats.blocked_on_unacked,
        unacked_messages: stats.unacked_messages,
        active_consumer_name: stats.active_consumer.clone(),
        msg_rate_expired: 0.0,
        total_msg_expired: 0,
        last_expire_timestamp: 0,
        last_consumed_flow_timestamp: stats.last_flow.0,
        last_consumed_timestamp: stats.last_consumed.0,
        last_acked_timestamp: stats.last_acked.0,
        last_mark_delete_advanced_timestamp: 0,
        consumers: stats.consumers.iter().map(consumer).collect(),
        allow_out_of_order_delivery: false,
        key_shared_mode: None,
        consumers_after_mark_delete_position: Nothing::new(),
        non_contiguous_deleted_messages_ranges: 0,
        non_contiguous_deleted_messages_ranges_serialized_size: 0,
        delayed_message_index_size_in_bytes: 0,
        subscription_properties: stats.properties.iter().cloned().collect(),
        filter_processed_msg_count: 0,
        filter_accepted_msg_count: 0,
        filter_rejected_msg_count: 0,
        filter_rescheduled_msg_count: 0,
        idle_reason: stats.idle_reason.clone(),
    }
}

fn consumer(stats: &ConsumerStats) -> ConsumerJson {
    ConsumerJson {
        consumer_name: stats.consumer_name.clone(),
        msg_rate_out: finite(stats.outward.message_rate),
        msg_throughput_out: finite(stats.outward.byte_rate),
        bytes_out_counter: stats.outward.bytes,
        msg_out_counter: stats.outward.messages,
        msg_rate_redeliver: finite(stats.redeliver_rate),
        message_ack_rate: finite(stats.ack_rate),
        chunked_message_rate: 0.0,
        available_permits: stats.available_permits,
        unacked_messages: stats.unacked_messages,
        // An integer in Pulsar; the conversion saturates.
        avg_messages_per_entry: finite(stats.average_messages_per_entry).round() as u64,
        blocked_consumer_on_unacked_msgs: stats.blocked_on_unacked,
        peer: peer(&stats.connection),
        last_acked_timestamp: stats.last_acked.0,
        last_consumed_timestamp: stats.last_consumed.0,
        last_consumed_flow_timestamp: stats.last_flow.0,
        read_position_when_joining: None,
        key_hash_ranges: None,
        metadata: stats.metadata.iter().cloned().collect(),
    }
}

fn cursor(stats: &SubscriptionStats) -> CursorJson {
    CursorJson {
        mark_delete_position: place(stats.mark_delete),
        read_position: place(stats.read_position),
        waiting_read_op: false,
        pending_read_ops: 0,
        messages_consumed_counter: stats.outward.messages,
        cursor_ledger: -1,
        cursor_ledger_last_entry: -1,
        state: "Open",
        number_of_entries_since_first_not_acked_message: stats.backlog_entries,
        subscription_have_pending_read: false,
        subscription_have_pending_replay_read: stats.in_replay > 0,
        properties: BTreeMap::new(),
    }
}

fn peer(facts: &ConnectionFacts) -> PeerJson {
    PeerJson {
        address: if facts.address.starts_with('/') {
            facts.address.clone()
        } else {
            // Java prints socket addresses with a slash, and so do scripts that cut it off.
            format!("/{}", facts.address)
        },
        connected_since: time(facts.connected_since),
        client_version: facts.client_version.clone(),
    }
}

/// Pulsar's names of subscription types.
const fn type_name(subscription_type: SubscriptionType) -> &'static str {
    match subscription_type {
        SubscriptionType::Exclusive => "Exclusive",
        SubscriptionType::Shared => "Shared",
        SubscriptionType::Failover => "Failover",
        SubscriptionType::KeyShared => "Key_Shared",
    }
}

fn place(position: Position) -> String {
    position.to_string()
}

/// RFC 3339 in UTC; the year 9999 stands for anything later.
fn time(time: WallTime) -> String {
    const LATEST: u64 = 253_402_300_799_000;
    let since = Duration::from_millis(time.0.min(LATEST));
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + since).to_string()
}

/// JSON has no infinities; a rate over no time is no rate.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
