//! P8: of clients that are gone brokers keep nothing, neither connections nor producers nor consumers.

use std::sync::Arc;

use crate::broker::SubscriptionStats;
use crate::node::Node;

/// What brokers still have of clients that are all gone: how many things were looked at, or what is left.
pub async fn nothing_left_behind(nodes: &[Arc<Node>]) -> Result<u64, String> {
    let mut compared = 0;
    for node in nodes {
        let (Some(counts), Some(broker)) = (node.pulsar_counts(), node.broker()) else { continue };
        compared += counts.connections_closed;
        if counts.active_connections > 0 {
            return Err(format!("{} Pulsar connections are open", counts.active_connections));
        }
        for topic in broker.loaded_topics() {
            let stats = topic.stats().await;
            compared += 1 + stats.subscriptions.len() as u64;
            if let Some(producer) = stats.publishers.first() {
                return Err(format!("{} has producer {}", topic.name(), producer.producer_name));
            }
            let holds = |subscription: &&SubscriptionStats| !subscription.consumers.is_empty();
            if let Some(subscription) = stats.subscriptions.iter().find(holds) {
                return Err(format!("{}/{} has a consumer", topic.name(), subscription.name));
            }
        }
    }
    Ok(compared)
}
