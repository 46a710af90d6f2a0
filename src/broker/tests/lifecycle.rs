//! Topics: loading, partitions, unloading, deleting, stopping.

use super::cluster::{consumer, producer};
use super::{Cluster, in_runtime, options, publish};
use crate::broker::{BrokerError, CloseReason, PublishError, SubscriptionType};
use crate::domain::{NamespaceName, TopicName};

fn name(text: &str) -> TopicName {
    TopicName::parse(text).expect("a name")
}

#[test]
fn a_topic_is_loaded_once_and_anew_after_unloading() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let loads = (0..20).map(|_| cluster.topic("t"));
        let topics = futures_util::future::join_all(loads).await;
        assert_eq!(cluster.broker.loaded_topics().len(), 1);
        let topic = &topics[0];
        let (producer, producer_sink) = producer(topic).await;
        let options = options("s", SubscriptionType::Shared);
        let (_consumer, consumer_sink) = consumer(topic, options.clone(), 10).await;
        producer.publish(publish(0..5));
        topic.unload().await;
        assert_eq!(consumer_sink.closed().await, CloseReason::TopicMoved);
        assert_eq!(producer_sink.closed().await, CloseReason::TopicMoved);
        // Each is stored, or certainly not: the log may have been given up before its first ledger was open.
        let outcomes = producer_sink.outcomes(5).await;
        let stored = outcomes.iter().take_while(|(_, result)| result.is_ok()).count();
        let refused = |result: &Result<_, _>| *result == Err(PublishError::TopicMoved);
        assert!(outcomes[stored..].iter().all(|(_, result)| refused(result)), "{outcomes:?}");
        let topic = cluster.topic("t").await;
        assert_eq!(topic.subscriptions().await.expect("names"), ["s"]);
        let (_consumer, sink) = consumer(&topic, options, 10).await;
        assert_eq!(sink.take(stored).await.len(), stored);
        sink.nothing().await;
    });
}

#[test]
fn partitions_are_counted_listed_and_deleted_together() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let broker = &cluster.broker;
        assert_eq!(broker.partitions(&name("p"), true).await, Ok(0));
        let missing = broker.partitions(&name("p"), false).await;
        assert_eq!(missing, Err(BrokerError::TopicNotFound(name("p"))));
        broker.create_partitioned(&name("p"), 3).await.expect("created");
        let again = broker.create_partitioned(&name("p"), 3).await;
        assert_eq!(again, Err(BrokerError::TopicExists(name("p"))));
        assert_eq!(broker.partitions(&name("p"), false).await, Ok(3));
        let whole = broker.topic(&name("p"), true).await;
        assert!(matches!(whole.err(), Some(BrokerError::NotAllowed(_))));
        let beyond = broker.topic(&name("p-partition-3"), true).await;
        assert!(matches!(beyond.err(), Some(BrokerError::TopicNotFound(_))));
        let namespace = NamespaceName::parse("public/default").expect("a name");
        let listed = broker.topics(&namespace).await.expect("a list");
        assert_eq!(listed, [0, 1, 2].map(|index| name("p").with_partition(index)));
        let partition = cluster.topic("p-partition-1").await;
        let (consumer, sink) =
            consumer(&partition, options("s", SubscriptionType::Shared), 1).await;
        let refused = broker.delete_topic(&name("p"), false).await;
        assert!(matches!(refused, Err(BrokerError::InUse(_))));
        broker.delete_topic(&name("p"), true).await.expect("deleted");
        assert_eq!(sink.closed().await, CloseReason::TopicDeleted);
        drop(consumer);
        assert_eq!(broker.topics(&namespace).await.expect("a list"), []);
    });
}

#[test]
fn a_stopped_broker_loads_nothing() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (_producer, sink) = producer(&topic).await;
        cluster.broker.stop().await;
        assert_eq!(sink.closed().await, CloseReason::TopicMoved);
        let refused = cluster.broker.topic(&name("t"), true).await;
        assert!(matches!(refused.err(), Some(BrokerError::NotReady(_))));
        let named = name("non-persistent://public/default/t");
        let refused = cluster.broker.topic(&named, true).await;
        assert!(matches!(refused.err(), Some(BrokerError::NotAllowed(_))));
    });
}

/// Its bundle has another owner by now, of which no watch has told: it must not be fenced there.
#[test]
fn a_topic_of_another_owner_is_not_loaded() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let bundle = cluster.broker.bundle_of(&name("t")).await.expect("metadata in memory");
        let owned = format!("/ownership/{bundle}");
        for record in [
            r#"{"format":1,"owner":9,"epoch":2}"#,
            // Released by whoever took it with the epoch that is known here.
            r#"{"format":1,"owner":null,"epoch":1}"#,
        ] {
            cluster.put(&owned, record).await;
            let refused = cluster.broker.topic(&name("t"), true).await;
            assert!(matches!(refused.err(), Some(BrokerError::NotServed(_))), "{record}");
            assert!(!cluster.has("/topics/persistent://public/default/t").await, "{record}");
        }
        cluster.put(&owned, r#"{"format":1,"owner":9,"epoch":1}"#).await;
        cluster.topic("t").await;
        assert!(cluster.has("/topics/persistent://public/default/t").await);
    });
}

#[test]
fn a_topic_taken_over_closes_here_and_loses_nothing_stored() {
    in_runtime(|| async {
        let cluster = Cluster::new();
        let topic = cluster.topic("t").await;
        let (old_producer, sink) = producer(&topic).await;
        let options = options("s", SubscriptionType::Exclusive);
        let (_consumer, consumer_sink) = consumer(&topic, options.clone(), 100).await;
        old_producer.publish(publish(0..5));
        for (_, result) in sink.outcomes(5).await {
            result.expect("stored");
        }
        consumer_sink.take(5).await;
        let next = cluster.another();
        let taken_over = next.topic("t").await;
        let (_consumer, next_sink) = consumer(&taken_over, options, 100).await;
        assert_eq!(next_sink.numbers(5).await, [0, 1, 2, 3, 4]);
        // The old owner learns of it when it appends.
        old_producer.publish(publish(5..6));
        assert_eq!(sink.closed().await, CloseReason::TopicMoved);
        assert_eq!(consumer_sink.closed().await, CloseReason::TopicMoved);
        next_sink.nothing().await;
        let (next_producer, next_outcomes) = producer(&taken_over).await;
        assert!(next_producer.name().starts_with("standalone-2-"), "{}", next_producer.name());
        next_producer.publish(publish(6..7));
        next_outcomes.outcomes(1).await[0].1.clone().expect("stored");
        assert_eq!(next_sink.numbers(1).await, [6]);
    });
}
