//! The statistics of a partitioned topic: partitions added up; producers, subscriptions and consumers of
//! the same name are one.

use std::collections::BTreeMap;

use crate::broker::{ConsumerStats, Flow, PublisherStats, SubscriptionStats, TopicStats};

/// The sum over partitions. Positions and ledgers of different partitions do not add up and are left out.
pub(crate) fn sum(parts: Vec<TopicStats>) -> TopicStats {
    let mut total = TopicStats::default();
    let mut publishers: BTreeMap<String, PublisherStats> = BTreeMap::new();
    let mut subscriptions: BTreeMap<String, SubscriptionStats> = BTreeMap::new();
    for part in parts {
        add_flow(&mut total.inward, part.inward);
        add_flow(&mut total.outward, part.outward);
        total.storage_bytes += part.storage_bytes;
        total.backlog_bytes += part.backlog_bytes;
        total.pending_adds += part.pending_adds;
        for publisher in part.publishers {
            match publishers.get_mut(&publisher.producer_name) {
                Some(known) => add_publisher(known, &publisher),
                None => drop(publishers.insert(publisher.producer_name.clone(), publisher)),
            }
        }
        for subscription in part.subscriptions {
            match subscriptions.get_mut(&subscription.name) {
                Some(known) => add_subscription(known, subscription),
                None => drop(subscriptions.insert(subscription.name.clone(), subscription)),
            }
        }
    }
    total.average_message_bytes = mean(total.inward);
    total.publishers = publishers.into_values().collect();
    total.subscriptions = subscriptions.into_values().collect();
    total
}

const fn add_flow(to: &mut Flow, more: Flow) {
    to.message_rate += more.message_rate;
    to.byte_rate += more.byte_rate;
    to.messages += more.messages;
    to.bytes += more.bytes;
}

fn mean(flow: Flow) -> f64 {
    if flow.messages == 0 { 0.0 } else { flow.bytes as f64 / flow.messages as f64 }
}

fn add_publisher(to: &mut PublisherStats, more: &PublisherStats) {
    add_flow(&mut to.inward, more.inward);
    to.average_message_bytes = mean(to.inward);
}

fn add_subscription(to: &mut SubscriptionStats, more: SubscriptionStats) {
    add_flow(&mut to.outward, more.outward);
    to.redeliver_rate += more.redeliver_rate;
    to.ack_rate += more.ack_rate;
    to.backlog_entries += more.backlog_entries;
    to.unacked_messages += more.unacked_messages;
    to.in_replay += more.in_replay;
    to.blocked_on_unacked |= more.blocked_on_unacked;
    to.last_flow = to.last_flow.max(more.last_flow);
    to.last_consumed = to.last_consumed.max(more.last_consumed);
    to.last_acked = to.last_acked.max(more.last_acked);
    if to.idle_reason.is_empty() {
        to.idle_reason = more.idle_reason;
    }
    for consumer in more.consumers {
        let known = to.consumers.iter_mut().find(|known| {
            known.consumer_name == consumer.consumer_name
                && known.connection.address == consumer.connection.address
        });
        match known {
            Some(known) => add_consumer(known, &consumer),
            None => to.consumers.push(consumer),
        }
    }
}

fn add_consumer(to: &mut ConsumerStats, more: &ConsumerStats) {
    add_flow(&mut to.outward, more.outward);
    to.redeliver_rate += more.redeliver_rate;
    to.ack_rate += more.ack_rate;
    to.available_permits += more.available_permits;
    to.unacked_messages += more.unacked_messages;
    to.blocked_on_unacked |= more.blocked_on_unacked;
    to.last_flow = to.last_flow.max(more.last_flow);
    to.last_consumed = to.last_consumed.max(more.last_consumed);
    to.last_acked = to.last_acked.max(more.last_acked);
}
