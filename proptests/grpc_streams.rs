//! The stream API of a whole node, through its gRPC port: what comes from Pulsar's producers and goes to its
//! consumers, followers, flow control, and what is refused and how.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where a failure is a failed test")]

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use seawall::client::{
    ClientOptions, Compression, ConsumerOptions, OutgoingMessage, ProducerOptions, PulsarClient,
    StartPosition, StreamClient, StreamError,
};
use seawall::frontend::grpc::{GrpcConfig, GrpcFrontend};
use seawall::ledger::Quorum;
use seawall::rpc::generated::public::{
    self as wire, NewRecord, Property, Reason, Record, append_request, read_stream_request::Start,
    streams_client::StreamsClient,
};
use seawall::rpc::{Channel, ChannelConfig, ReceiverStream, failure_of_status};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tonic::Code;

use crate::node_place::{Place, on_node};

const LIMIT: Duration = Duration::from_secs(20);

fn client(place: &Place, topic: &str) -> StreamClient {
    let address = place.node.grpc_address().unwrap().to_owned();
    StreamClient::new(&place.runtime, &[address], topic).unwrap()
}

fn raw(place: &Place, address: &str) -> StreamsClient<Channel> {
    let channel = Channel::new(place.runtime.clone(), address, ChannelConfig::default());
    StreamsClient::new(channel).max_decoding_message_size(64 * 1024 * 1024)
}

fn record(payload: &[u8]) -> NewRecord {
    NewRecord { payload: Bytes::copy_from_slice(payload), ..NewRecord::default() }
}

/// Appends records and waits for their numbers.
async fn append(client: &StreamClient, records: Vec<NewRecord>) -> Result<Vec<u64>, StreamError> {
    let mut appender = client.append(None).await?;
    for record in records {
        appender.send(record).await;
    }
    appender.finish();
    let mut numbers = Vec::new();
    while let Some(more) = appender.next().await? {
        numbers.extend(more);
    }
    Ok(numbers)
}

async fn read(client: &StreamClient, start: Start, limit: u64) -> Vec<Record> {
    let mut reader = client.read(start, limit, false).await.unwrap();
    let mut records = Vec::new();
    while let Some(more) = reader.next().await.unwrap() {
        records.extend(more);
    }
    records
}

async fn pulsar(place: &Place) -> PulsarClient {
    let address = place.node.pulsar_address().unwrap();
    PulsarClient::connect(&place.runtime, address, ClientOptions::default()).await.unwrap()
}

#[test]
fn what_is_appended_is_received_and_what_is_published_is_read() {
    on_node(async |place| {
        let stream = client(place, "both");
        let pulsar = pulsar(place).await;
        let property = Property { name: "color".to_owned(), value: "red".to_owned() };
        let first = NewRecord {
            key: Some("key".to_owned()),
            properties: vec![property.clone()],
            publish_time: Some(1000),
            ..record(b"by gRPC")
        };
        assert_eq!(append(&stream, vec![first, record(b"")]).await.unwrap(), [0, 1]);
        let options = ConsumerOptions { start: StartPosition::Earliest, ..Default::default() };
        let mut consumer = pulsar.consumer("both", "s", options).await.unwrap();
        let message = consumer.receive(LIMIT).await.unwrap().unwrap();
        assert_eq!((&message.payload[..], message.key.as_deref()), (&b"by gRPC"[..], Some("key")));
        assert_eq!(message.properties, [("color".to_owned(), "red".to_owned())]);
        assert_eq!((message.publish_time, message.sequence_id), (1000, 0));
        assert!(consumer.receive(LIMIT).await.unwrap().unwrap().payload.is_empty());
        // A message, and a compressed batch of three: each is one entry and one number.
        let alone = pulsar.producer("both", ProducerOptions::default()).await.unwrap();
        let message =
            OutgoingMessage { key: Some("k".to_owned()), ..OutgoingMessage::new("alone") };
        let alone_at = alone.send(message).await.unwrap().await.unwrap();
        let options = ProducerOptions {
            batch_messages_max: 3,
            // Nothing but the third message closes the batch, however slow the machine.
            linger: LIMIT,
            compression: Compression::Lz4,
            ..ProducerOptions::default()
        };
        let batching = pulsar.producer("both", options).await.unwrap();
        let mut tickets = Vec::new();
        for text in ["one", "two", "three"] {
            tickets.push(batching.send(OutgoingMessage::new(text)).await.unwrap());
        }
        for ticket in tickets {
            ticket.await.unwrap();
        }
        assert_eq!(append(&stream, vec![record(b"last")]).await.unwrap(), [4]);
        let records = read(&stream, Start::First(true), 0).await;
        let numbers: Vec<_> = records.iter().map(|record| record.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert_eq!((&records[0].payload[..], records[0].plain), (&b"by gRPC"[..], true));
        assert_eq!(
            (records[0].key.as_deref(), &records[0].properties),
            (Some("key"), &vec![property])
        );
        assert_eq!(
            (&records[2].payload[..], records[2].key.as_deref()),
            (&b"alone"[..], Some("k"))
        );
        let position = (alone_at.position.ledger.0, alone_at.position.entry.0);
        assert_eq!((records[2].ledger, records[2].entry), position);
        assert_eq!(
            (records[3].batch, records[3].message_count, records[3].plain),
            (true, 3, false)
        );
        assert!(!records[3].pulsar_metadata.is_empty());
        // By number, by time, limited.
        assert_eq!(read(&stream, Start::Number(3), 1).await[0].number, 3);
        assert_eq!(read(&stream, Start::Time(1000), 1).await[0].number, 0);
        assert_eq!(read(&stream, Start::Time(1001), 1).await[0].number, 1);
        assert!(read(&stream, Start::Time(u64::MAX), 0).await.is_empty());
        pulsar.close().await;
    });
}

#[test]
fn a_follower_gets_what_comes_and_is_told_when_the_topic_goes() {
    on_node(async |place| {
        let stream = client(place, "followed");
        append(&stream, vec![record(b"before")]).await.unwrap();
        let mut reader = stream.read(Start::Tail(true), 0, true).await.unwrap();
        for number in 1..20_u64 {
            append(&stream, vec![record(b"x")]).await.unwrap();
            let next = place.runtime.clock.timeout(LIMIT, reader.next()).await.unwrap();
            let numbers: Vec<_> = next.unwrap().unwrap().iter().map(|r| r.number).collect();
            assert_eq!(numbers, [number]);
        }
        let mut appender = stream.append(None).await.unwrap();
        let name = seawall::domain::TopicName::parse("followed").unwrap();
        place.broker.topic(&name, false).await.unwrap().unload().await;
        let end = place.runtime.clock.timeout(LIMIT, reader.next()).await.unwrap().unwrap_err();
        assert_eq!(end.reason(), Reason::NotReady);
        let end = place.runtime.clock.timeout(LIMIT, appender.next()).await.unwrap().unwrap_err();
        assert_eq!((end.reason(), end.is_unknown()), (Reason::NotReady, false));
        assert_eq!(append(&stream, vec![record(b"after")]).await.unwrap(), [20]);
    });
}

#[test]
fn a_reader_that_takes_nothing_costs_little_and_loses_nothing() {
    on_node(async |place| {
        let stream = client(place, "slow");
        let payload = vec![5; 64 * 1024];
        let records = (0..400).map(|_| record(&payload)).collect();
        assert_eq!(append(&stream, records).await.unwrap().len(), 400);
        // 25 MiB, far more than windows and one answer hold.
        let mut slow = Vec::new();
        for _ in 0..4 {
            slow.push(stream.read(Start::First(true), 0, false).await.unwrap());
        }
        assert_eq!(read(&stream, Start::First(true), 0).await.len(), 400);
        for mut reader in slow {
            let mut next = 0;
            while let Some(records) = reader.next().await.unwrap() {
                let bytes: usize = records.iter().map(|record| record.payload.len()).sum();
                assert!(bytes <= 256 * 1024 + payload.len(), "an answer of {bytes} bytes");
                for record in records {
                    assert_eq!(record.number, next);
                    next += 1;
                }
            }
            assert_eq!(next, 400);
        }
    });
}

#[test]
fn what_breaks_a_rule_is_refused_and_what_was_good_is_kept() {
    on_node(async |place| {
        for name in ["", "a/b", "persistent://x", "non-persistent://public/default/t"] {
            let mut raw = raw(place, place.node.grpc_address().unwrap());
            let stream = wire::StreamName { name: name.to_owned(), authoritative: true };
            let request = wire::CreateStreamRequest { stream: Some(stream) };
            let status = raw.create_stream(request).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{name:?}: {status:?}");
            assert_eq!(failure_of_status(&status).unwrap().reason(), Reason::Invalid);
        }
        let mut raw = raw(place, place.node.grpc_address().unwrap());
        let nothing = raw.describe_stream(wire::DescribeStreamRequest { stream: None }).await;
        assert_eq!(nothing.unwrap_err().code(), Code::InvalidArgument);
        let missing = client(place, "missing");
        assert_eq!(missing.describe().await.unwrap_err().reason(), Reason::NotFound);
        assert_eq!(missing.fence(1).await.unwrap_err().reason(), Reason::NotFound);
        let error = missing.read(Start::First(true), 0, false).await.err().unwrap();
        assert_eq!(error.reason(), Reason::NotFound);
        let stream = client(place, "rules");
        stream.create().await.unwrap();
        assert_eq!(stream.fence(0).await.unwrap_err().reason(), Reason::Invalid);
        let error = stream.read(Start::First(false), 0, false).await.err().unwrap();
        assert_eq!(error.reason(), Reason::Invalid);
        // A record beyond the limits ends the call; the one before it is committed.
        let property = Property { name: "n".to_owned(), value: "v".to_owned() };
        for bad in [
            record(&vec![0; 5 * 1024 * 1024 + 1]),
            NewRecord { properties: vec![property; 1001], ..record(b"") },
        ] {
            let before = stream.describe().await.unwrap().next_number;
            let error = append(&stream, vec![record(b"good"), bad]).await.unwrap_err();
            assert_eq!((error.reason(), error.is_unknown()), (Reason::Invalid, false));
            assert_eq!(stream.describe().await.unwrap().next_number, before + 1);
        }
        // The largest that is good.
        append(&stream, vec![record(&vec![1; 5 * 1024 * 1024])]).await.unwrap();
    });
}

#[test]
fn sessions_beyond_the_limit_are_refused_and_idle_connections_closed() {
    on_node(async |place| {
        let config = GrpcConfig {
            sessions_max: 2,
            first_call_limit: Duration::from_millis(200),
            ..GrpcConfig::new("127.0.0.1:0", Quorum::SINGLE)
        };
        let ledgers = place.node.ledgers().unwrap().clone();
        let started =
            GrpcFrontend::start(place.runtime.clone(), place.broker.clone(), ledgers, config);
        let small = started.await.unwrap();
        let address = [small.local_address().to_owned()];
        let stream = StreamClient::new(&place.runtime, &address, "few").unwrap();
        let one = stream.append(None).await.unwrap();
        let _two = stream.append(None).await.unwrap();
        let refused = stream.append(None).await.err().unwrap();
        assert_eq!((refused.reason(), refused.is_unknown()), (Reason::Limit, false));
        drop(one);
        let deadline = place.runtime.clock.now() + LIMIT;
        while stream.append(None).await.is_err() {
            assert!(place.runtime.clock.now() < deadline, "room is not given back");
        }
        // One that says nothing, or half a preface, is closed; one that calls is not.
        for sent in [&b""[..], b"PRI * HTTP/2.0"] {
            let mut silent = place.runtime.network.connect(&address[0]).await.unwrap();
            silent.write_all(sent).await.unwrap();
            let mut received = Vec::new();
            let reading = tokio::io::AsyncReadExt::read_to_end(&mut silent, &mut received);
            let _ = place.runtime.clock.timeout(LIMIT, reading).await.expect("closed in time");
        }
        small.stop().await;
    });
}

/// Requests of an append, right and wrong ones.
fn requests() -> impl Strategy<Value = Vec<wire::AppendRequest>> {
    let open = (any::<bool>(), proptest::option::of(any::<u64>()), "\\PC{0,20}").prop_map(
        |(is_good, token, name)| {
            let name = if is_good { "hostile".to_owned() } else { name };
            let stream = Some(wire::StreamName { name, authoritative: false });
            append_request::Item::Open(wire::OpenAppend { stream, token: token.map(|t| t % 4) })
        },
    );
    let text = "\\PC{0,8}";
    let record = (
        proptest::collection::vec(any::<u8>(), 0..64),
        proptest::option::of(0_u64..30),
        proptest::option::of(text),
        proptest::collection::vec((text, text), 0..4),
        proptest::option::of(any::<u64>()),
    );
    let record = record.prop_map(|(payload, expected_number, key, properties, publish_time)| {
        let properties = properties.into_iter().map(|(name, value)| Property { name, value });
        append_request::Item::Record(NewRecord {
            payload: payload.into(),
            expected_number,
            key,
            properties: properties.collect(),
            publish_time,
        })
    });
    let item = proptest::option::weighted(0.95, prop_oneof![1 => open, 6 => record]);
    proptest::collection::vec(item.prop_map(|item| wire::AppendRequest { item }), 0..20)
}

#[test]
fn random_calls_end_with_a_status_and_leave_the_numbers_dense() {
    on_node(async |place| {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let stream = client(place, "hostile");
        stream.create().await.unwrap();
        for _ in 0..60 {
            let case = requests().new_tree(&mut runner).unwrap().current();
            let mut raw = raw(place, place.node.grpc_address().unwrap());
            let (sender, receiver) = mpsc::channel(case.len().max(1));
            for request in case {
                sender.send(request).await.unwrap();
            }
            drop(sender);
            let talking = async {
                let mut answers = match raw.append(ReceiverStream::new(receiver)).await {
                    Ok(answers) => answers.into_inner(),
                    Err(status) => return Err(status),
                };
                while answers.message().await?.is_some() {}
                Ok(())
            };
            let ended = place.runtime.clock.timeout(LIMIT, talking).await.expect("ends in time");
            if let Err(status) = ended {
                let failure = failure_of_status(&status).expect("facts in every status");
                assert_ne!(failure.reason(), Reason::Unspecified, "{status:?}");
                assert!(!status.message().is_empty());
            }
        }
        let facts = stream.describe().await.unwrap();
        let records = read(&stream, Start::First(true), 0).await;
        assert!((0..facts.next_number).eq(records.iter().map(|record| record.number)));
    });
}
