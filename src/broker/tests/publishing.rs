//! Producers: outcomes, names, limits.

use super::cluster::producer;
use super::sinks::probe;
use super::{Cluster, ProducerProbe, in_runtime, producer_options, publish};
use crate::broker::{BrokerError, CloseReason, PublishError};

#[test]
fn outcomes_come_in_order_and_close_waits_for_them() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, sink) = producer(&topic).await;
        producer.publish(publish(0..50));
        producer.publish(publish(50..100));
        producer.close().await;
        let outcomes = sink.outcomes(100).await;
        let mut last = None;
        for (expected, (sequence_id, result)) in (0..).zip(outcomes) {
            assert_eq!(sequence_id, expected);
            let position = Some(result.expect("stored"));
            assert!(last < position);
            last = position;
        }
    });
}

#[test]
fn made_names_differ_and_a_connected_name_is_busy() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (first, _sink) = producer(&topic).await;
        let (second, _sink) = producer(&topic).await;
        assert_ne!(first.name(), second.name());
        assert!(first.name().starts_with("standalone-1-"), "{}", first.name());
        let named = producer_options(Some("mine"));
        let sink = probe::<ProducerProbe>();
        let held = topic.add_producer(named.clone(), sink.clone()).await.expect("the name is free");
        let busy = topic.add_producer(named.clone(), probe::<ProducerProbe>()).await;
        assert!(matches!(busy.err(), Some(BrokerError::ProducerBusy(_))));
        let mut newer = named;
        newer.epoch = 1;
        let replacing = topic.add_producer(newer, probe::<ProducerProbe>()).await.expect("newer");
        assert_eq!(sink.closed().await, CloseReason::Replaced);
        assert_eq!(replacing.name(), "mine");
        // The handle of the replaced one must not close its successor.
        drop(held);
        assert_eq!(topic.stats().await.publishers.len(), 3);
        drop(replacing);
        assert_eq!(topic.stats().await.publishers.len(), 2);
    });
}

#[test]
fn too_many_pending_are_refused_in_their_order() {
    in_runtime(|| async {
        let cluster = Cluster::with(|config| config.topic_pending_max = 1);
        let topic = cluster.topic("t").await;
        let (producer, sink) = producer(&topic).await;
        for number in 0..200 {
            producer.publish(publish(number..number + 1));
        }
        let mut stored = 0;
        for (expected, (sequence_id, result)) in (0..).zip(sink.outcomes(200).await) {
            assert_eq!(sequence_id, expected);
            match result {
                Ok(_) => stored += 1,
                Err(error) => assert_eq!(error, PublishError::TooManyPending),
            }
        }
        assert!(stored > 0);
    });
}
