//! Exclusive and Failover: order, acknowledgement, rewinding, seeking, the end of a subscription.

use std::sync::atomic::Ordering;

use super::cluster::{consumer, producer};
use super::sinks::probe;
use super::{Cluster, ConsumerProbe, in_runtime, options, publish};
use crate::broker::{
    AckRequest, AckTarget, AckType, BrokerError, CloseReason, Consumer, InitialPosition,
    SeekTarget, SubscriptionType,
};
use crate::domain::{Position, WallTime};

async fn acknowledge(consumer: &Consumer, ack_type: AckType, position: Position) {
    let targets = vec![AckTarget { position, ack_set: None }];
    let answer = consumer.acknowledge(AckRequest { ack_type, targets });
    assert_eq!(answer.await.expect("an answer"), Ok(()));
}

#[test]
fn exclusive_gets_all_in_order_within_its_permits() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..10));
        let options = options("s", SubscriptionType::Exclusive);
        let (consumer, sink) = consumer(&topic, options.clone(), 4).await;
        assert_eq!(sink.numbers(4).await, [0, 1, 2, 3]);
        sink.nothing().await;
        let stats = topic.stats().await;
        assert_eq!(stats.subscriptions[0].idle_reason, "no consumer has permits");
        assert_eq!(stats.subscriptions[0].consumers[0].available_permits, 0);
        consumer.flow(100);
        assert_eq!(sink.numbers(6).await, [4, 5, 6, 7, 8, 9]);
        producer.publish(publish(10..12));
        assert_eq!(sink.numbers(2).await, [10, 11]);
        let busy = topic.subscribe(options, probe::<ConsumerProbe>()).await;
        assert!(matches!(busy.err(), Some(BrokerError::ConsumerBusy(_))));
    });
}

#[test]
fn exclusive_goes_back_to_the_first_not_acknowledged() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..10));
        let options = options("s", SubscriptionType::Exclusive);
        let (first, sink) = consumer(&topic, options.clone(), 100).await;
        let taken = sink.take(10).await;
        acknowledge(&first, AckType::Cumulative, taken[3].position).await;
        acknowledge(&first, AckType::Individual, taken[6].position).await;
        first.redeliver(None, Some(7));
        let again = sink.take(5).await;
        assert!(again.iter().all(|delivery| delivery.consumer_epoch == Some(7)));
        let numbers: Vec<_> = again.iter().map(super::sinks::number_of).collect();
        assert_eq!(numbers, [4, 5, 7, 8, 9]);
        first.close().await;
        let (_second, sink) = consumer(&topic, options, 100).await;
        assert_eq!(sink.numbers(5).await, [4, 5, 7, 8, 9]);
    });
}

#[test]
fn a_full_connection_is_left_out_until_it_has_room() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, _sink) = producer(&topic).await;
        let (consumer, sink) =
            consumer(&topic, options("s", SubscriptionType::Exclusive), 100).await;
        sink.full.store(true, Ordering::SeqCst);
        producer.publish(publish(0..1));
        assert_eq!(sink.numbers(1).await, [0]);
        producer.publish(publish(1..3));
        sink.nothing().await;
        sink.full.store(false, Ordering::SeqCst);
        consumer.resume();
        assert_eq!(sink.numbers(2).await, [1, 2]);
    });
}

#[test]
fn seek_closes_consumers_and_moves_the_subscription() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, _sink) = producer(&topic).await;
        producer.publish(publish(0..10));
        let options = options("s", SubscriptionType::Exclusive);
        let (mut current, mut sink) = consumer(&topic, options.clone(), 100).await;
        let taken = sink.take(10).await;
        acknowledge(&current, AckType::Cumulative, taken[9].position).await;
        let targets = [
            (SeekTarget::At(taken[8].position, None), vec![8, 9]),
            (SeekTarget::Latest, vec![]),
            (SeekTarget::Time(WallTime(1007)), vec![7, 8, 9]),
            (SeekTarget::Earliest, (0..10).collect()),
        ];
        for (target, expected) in targets {
            current.seek(target).await.expect("moved");
            assert_eq!(sink.closed().await, CloseReason::Seek);
            (current, sink) = consumer(&topic, options.clone(), 100).await;
            assert_eq!(sink.numbers(expected.len()).await, expected);
            sink.nothing().await;
        }
    });
}

#[test]
fn failover_serves_one_and_another_takes_over() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, _sink) = producer(&topic).await;
        let options = options("s", SubscriptionType::Failover);
        let (first, first_sink) = consumer(&topic, options.clone(), 100).await;
        first_sink.active(true).await;
        let (_second, second_sink) = consumer(&topic, options, 100).await;
        second_sink.active(false).await;
        producer.publish(publish(0..3));
        let taken = first_sink.take(3).await;
        acknowledge(&first, AckType::Individual, taken[0].position).await;
        second_sink.nothing().await;
        first.close().await;
        second_sink.active(true).await;
        assert_eq!(second_sink.numbers(2).await, [1, 2]);
    });
}

#[test]
fn readers_begin_where_they_say_and_leave_nothing() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (producer, producer_sink) = producer(&topic).await;
        producer.publish(publish(0..5));
        let stored = producer_sink.outcomes(5).await;
        let mut options = options("reader-1", SubscriptionType::Exclusive);
        options.durable = false;
        options.initial_position = InitialPosition::At(stored[3].1.clone().expect("stored"));
        let (reader, sink) = consumer(&topic, options.clone(), 100).await;
        assert_eq!(sink.numbers(2).await, [3, 4]);
        let last = reader.last_message().await.expect("an end");
        assert_eq!(last.position, Some(stored[4].1.clone().expect("stored")));
        options.durable = true;
        let refused = topic.subscribe(options, probe::<ConsumerProbe>()).await;
        assert!(matches!(refused.err(), Some(BrokerError::NotAllowed(_))));
        reader.close().await;
        assert_eq!(topic.subscriptions().await.expect("names"), Vec::<String>::new());
    });
}

#[test]
fn unsubscribe_removes_the_subscription() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (one, _sink) = consumer(&topic, options("s", SubscriptionType::Shared), 1).await;
        let (two, two_sink) = consumer(&topic, options("s", SubscriptionType::Shared), 1).await;
        let refused = one.unsubscribe(false).await;
        assert!(matches!(refused, Err(BrokerError::ConsumerBusy(_))));
        let refused = topic.delete_subscription("s", false).await;
        assert!(matches!(refused, Err(BrokerError::InUse(_))));
        one.unsubscribe(true).await.expect("forced");
        assert_eq!(two_sink.closed().await, CloseReason::SubscriptionDeleted);
        assert_eq!(topic.subscriptions().await.expect("names"), Vec::<String>::new());
        drop(two);
        let refused = topic.delete_subscription("s", true).await;
        assert_eq!(refused, Err(BrokerError::SubscriptionNotFound("s".to_owned())));
    });
}
