//! Shared subscriptions: round robin, redelivery, batch indexes, the limit of unacknowledged messages.

use super::cluster::{consumer, producer};
use super::{Cluster, in_runtime, options, publish};
use crate::broker::{AckError, AckRequest, AckTarget, AckType, SubscriptionType};

fn individual(targets: Vec<AckTarget>) -> AckRequest {
    AckRequest { ack_type: AckType::Individual, targets }
}

#[test]
fn entries_are_spread_and_those_of_a_lost_consumer_go_to_others() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let options = options("s", SubscriptionType::Shared);
        let (one, one_sink) = consumer(&topic, options.clone(), 50).await;
        let (_two, two_sink) = consumer(&topic, options, 1000).await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..100));
        let one_numbers = one_sink.take(20).await;
        two_sink.take(20).await;
        one.close().await;
        drop(one_numbers);
        let mut rest = two_sink.take(80).await;
        rest.sort_by_key(|delivery| delivery.position);
        assert!(rest.iter().all(|delivery| delivery.redelivery_count == 0));
        two_sink.nothing().await;
    });
}

#[test]
fn redelivery_counts_and_acknowledged_entries_stay_away() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (consumer, sink) = consumer(&topic, options("s", SubscriptionType::Shared), 100).await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..4));
        let taken = sink.take(4).await;
        let whole = AckTarget { position: taken[1].position, ack_set: None };
        assert_eq!(consumer.acknowledge(individual(vec![whole])).await.expect("answer"), Ok(()));
        consumer.redeliver(Some(vec![taken[1].position, taken[2].position]), None);
        let again = sink.take(1).await;
        assert_eq!((again[0].position, again[0].redelivery_count), (taken[2].position, 1));
        consumer.redeliver(None, None);
        let again: Vec<_> =
            sink.take(3).await.iter().map(|one| (one.position, one.redelivery_count)).collect();
        let expected = [(taken[0].position, 1), (taken[2].position, 2), (taken[3].position, 1)];
        assert_eq!(again, expected);
        let cumulative = AckRequest {
            ack_type: AckType::Cumulative,
            targets: vec![AckTarget { position: taken[3].position, ack_set: None }],
        };
        let refused = consumer.acknowledge(cumulative).await.expect("answer");
        assert_eq!(refused, Err(AckError::NotAllowed));
    });
}

#[test]
fn a_partly_acknowledged_batch_comes_with_its_open_indexes() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (consumer, sink) = consumer(&topic, options("s", SubscriptionType::Shared), 100).await;
        let (producer, _sink) = producer(&topic).await;
        let mut batch = publish(0..1);
        batch[0].message_count = 3;
        batch[0].is_batch = true;
        producer.publish(batch);
        let taken = sink.take(1).await;
        assert_eq!(consumer.stats().await.available_permits, 97);
        let part = AckTarget { position: taken[0].position, ack_set: Some(vec![0b110]) };
        assert_eq!(consumer.acknowledge(individual(vec![part])).await.expect("answer"), Ok(()));
        assert_eq!(consumer.stats().await.unacked_messages, 2);
        consumer.redeliver(None, None);
        let again = sink.take(1).await;
        assert_eq!(again[0].ack_set, Some(vec![0b110]));
        assert_eq!(consumer.stats().await.available_permits, 95);
        let last = consumer.last_message().await.expect("an end");
        assert_eq!(last.batch_size, Some(3));
    });
}

#[test]
fn a_consumer_with_too_much_unacknowledged_is_left_out() {
    in_runtime(|| async {
        let cluster = Cluster::with(|config| config.unacked_per_consumer_max = 10);
        let topic = cluster.topic("t").await;
        let (consumer, sink) = consumer(&topic, options("s", SubscriptionType::Shared), 100).await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..30));
        let taken = sink.take(10).await;
        sink.nothing().await;
        let stats = consumer.stats().await;
        assert!(stats.blocked_on_unacked);
        assert_eq!(stats.unacked_messages, 10);
        let targets = |range: std::ops::Range<usize>| {
            let target =
                |index: usize| AckTarget { position: taken[index].position, ack_set: None };
            individual(range.map(target).collect())
        };
        drop(consumer.acknowledge(targets(0..5)));
        sink.nothing().await;
        drop(consumer.acknowledge(targets(5..6)));
        sink.take(6).await;
        sink.nothing().await;
    });
}
