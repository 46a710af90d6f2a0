//! The connection's limits and the shape of the JSON.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::aggregate::sum;
use super::stats_json::{InternalStatsJson, PartitionedJson, TopicJson};
use super::{AdminConfig, connection};
use crate::broker::{
    ConnectionFacts, ConsumerStats, Flow, PublisherStats, SubscriptionStats, SubscriptionType,
    TopicStats,
};
use crate::domain::{EntryId, LedgerId, Position, WallTime};
use crate::runtime::{Accepted, Shutdown, real};

fn config() -> AdminConfig {
    AdminConfig {
        idle_limit: Duration::from_millis(200),
        ..AdminConfig::new("127.0.0.1:0", "standalone")
    }
}

/// Sends bytes to a connection and reads until it is closed.
fn exchange(sent: &[u8]) -> Vec<u8> {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    executor.block_on(async {
        let runtime = real::runtime();
        let (mut client, server) = tokio::io::duplex(1024 * 1024);
        let router = Router::new().route("/x", get(|| async { "answer" }));
        let limits = connection::Limits::of(&config());
        let stop = Shutdown::new();
        let serving = connection::serve(
            runtime.clock.clone(),
            Accepted {
                stream: Box::pin(server),
                peer: "client:1".to_owned(),
                local: "here:1".to_owned(),
            },
            router,
            limits,
            stop.signal(),
        );
        let talking = async {
            client.write_all(sent).await.unwrap();
            let mut received = Vec::new();
            client.read_to_end(&mut received).await.unwrap();
            received
        };
        runtime
            .clock
            .timeout(Duration::from_secs(20), async { futures_util::join!(serving, talking).1 })
            .await
            .expect("the connection is closed in time")
    })
}

#[test]
fn requests_are_answered_and_an_idle_peer_is_cut_off() {
    let received =
        exchange(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\nGET /x HTTP/1.1\r\nhost: a\r\n\r\n");
    let text = String::from_utf8(received).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert_eq!(text.matches("answer").count(), 2, "{text}");
}

#[test]
fn a_peer_that_never_finishes_its_header_is_cut_off() {
    exchange(b"GET /x HTTP/1.1\r\nhost: ");
    exchange(b"");
}

#[test]
fn hostile_bytes_end_the_connection() {
    let huge = [b"GET /x HTTP/1.1\r\nh: ".as_slice(), &vec![b'x'; 200 * 1024]].concat();
    for bytes in [
        b"\x00\x00\x00\x08garbage\xff\xff".as_slice(),
        b"GET /x HTTP/9.9\r\n\r\n",
        b"GET /x HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        &huge,
    ] {
        let received = exchange(bytes);
        assert!(!String::from_utf8_lossy(&received).contains("200 OK"));
    }
}

fn topic(messages: u64) -> TopicStats {
    let flow = Flow { message_rate: 2.5, byte_rate: 25.0, messages, bytes: messages * 10 };
    let connection = ConnectionFacts {
        address: "127.0.0.1:5".to_owned(),
        client_version: "Pulsar-CPP-v4".to_owned(),
        connected_since: WallTime(1_000),
    };
    let consumer = ConsumerStats {
        consumer_name: "c".to_owned(),
        available_permits: -3,
        connection: connection.clone(),
        ..ConsumerStats::default()
    };
    let position = Position::new(LedgerId(3), EntryId(7));
    TopicStats {
        inward: flow,
        average_message_bytes: f64::NAN,
        storage_bytes: 100,
        publishers: vec![PublisherStats {
            producer_name: "p".to_owned(),
            inward: flow,
            connection,
            ..PublisherStats::default()
        }],
        subscriptions: vec![SubscriptionStats {
            name: "s".to_owned(),
            subscription_type: SubscriptionType::KeyShared,
            is_durable: true,
            outward: flow,
            redeliver_rate: 0.0,
            ack_rate: 0.0,
            backlog_entries: 4,
            unacked_messages: 2,
            blocked_on_unacked: false,
            active_consumer: None,
            mark_delete: position,
            read_position: position,
            in_replay: 0,
            last_flow: WallTime(1),
            last_consumed: WallTime(2),
            last_acked: WallTime(3),
            idle_reason: String::new(),
            properties: Vec::new(),
            consumers: vec![consumer],
        }],
        last_position: Some(position),
        ledgers: vec![(3, 8, 100)],
        ..TopicStats::default()
    }
}

#[test]
fn topic_statistics_have_the_fields_clients_read() {
    let json = serde_json::to_value(TopicJson::new(&topic(4), "here")).unwrap();
    assert_eq!(json["msgRateIn"], 2.5);
    assert_eq!(json["averageMsgSize"], 0.0, "not a number is none");
    assert_eq!(json["publishers"][0]["address"], "/127.0.0.1:5");
    assert_eq!(json["publishers"][0]["clientVersion"], "Pulsar-CPP-v4");
    assert_eq!(json["publishers"][0]["connectedSince"], "1970-01-01T00:00:01.000Z");
    assert!(json["replication"].is_object());
    let subscription = &json["subscriptions"]["s"];
    assert_eq!(subscription["type"], "Key_Shared");
    assert_eq!(subscription["msgBacklog"], 4);
    assert_eq!(subscription["msgRateExpired"], 0.0);
    let consumer = &subscription["consumers"][0];
    assert_eq!(consumer["availablePermits"], -3);
    assert_eq!(consumer["blockedConsumerOnUnackedMsgs"], false);
    let internal = serde_json::to_value(InternalStatsJson::new(&topic(4))).unwrap();
    assert_eq!(internal["lastConfirmedEntry"], "3:7");
    assert_eq!(internal["cursors"]["s"]["markDeletePosition"], "3:7");
}

#[test]
fn partitions_add_up_by_name() {
    let total = sum(vec![topic(4), topic(6)]);
    assert_eq!(total.inward.messages, 10);
    assert_eq!(total.publishers.len(), 1);
    assert_eq!(total.subscriptions.len(), 1);
    assert_eq!(total.subscriptions[0].backlog_entries, 8);
    assert_eq!(total.subscriptions[0].consumers.len(), 1);
    assert!((total.average_message_bytes - 10.0).abs() < 1e-9);
    let json = PartitionedJson::new(TopicJson::new(&total, "here"), 2, Default::default());
    let json = serde_json::to_value(json).unwrap();
    assert_eq!(json["metadata"]["partitions"], 2);
    assert_eq!(json["msgInCounter"], 10);
}
