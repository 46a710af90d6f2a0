//! Words for scenarios with several brokers.

use std::time::Duration;

use seawall::broker::Broker;
use seawall::domain::{Position, TopicName};
use seawall::simulator::history::MessageNumber;

use super::{Stage, TOPIC};

/// The machine that serves the topic, and its broker.
pub async fn owner(stage: &mut Stage) -> (String, Broker) {
    let name = TopicName::parse(TOPIC).unwrap();
    for _ in 0..600 {
        for node in &stage.cluster.nodes {
            let serving = node.serving();
            let Some(broker) = serving.as_ref().and_then(|node| node.broker()) else { continue };
            if broker.loaded_topics().iter().any(|topic| *topic.name() == name) {
                return (node.machine.name().to_owned(), broker.clone());
            }
        }
        stage.pass(Duration::from_millis(100)).await;
    }
    panic!("nobody serves the topic");
}

/// Publishes until so many were acknowledged in all, as a client that connects again would.
pub async fn publish_on(stage: &mut Stage, count: usize) -> Vec<(MessageNumber, Position)> {
    let mut acknowledged = Vec::new();
    for _ in 0..200 {
        acknowledged.extend(stage.publish(5).await);
        if acknowledged.len() >= count {
            return acknowledged;
        }
        stage.pass(Duration::from_millis(200)).await;
    }
    panic!("only {} of {count} were acknowledged", acknowledged.len());
}
