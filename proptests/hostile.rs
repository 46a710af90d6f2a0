//! Clients of a running front end, good and bad: whatever a client does, others are served.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where a failure is a failed test")]

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use seawall::broker::SubscriptionType;
use seawall::client::{
    ClientError, ClientOptions, Compression, ConsumerOptions, Message, OutgoingMessage,
    ProducerOptions, PulsarClient, RawConnection, SendError, StartPosition, publish_frame,
};
use seawall::frontend::pulsar::codec::{Command, encode_command, proto};
use seawall::frontend::pulsar::{PulsarConfig, PulsarFrontend};
use seawall::runtime::Runtime;

use crate::node_place::on_node;

const LIMIT: Duration = Duration::from_secs(5);

async fn client(runtime: &Runtime, front_end: &PulsarFrontend) -> PulsarClient {
    let options = ClientOptions { operation_limit: LIMIT, ..ClientOptions::default() };
    PulsarClient::connect(runtime, front_end.local_address(), options).await.unwrap()
}

async fn raw(runtime: &Runtime, front_end: &PulsarFrontend) -> RawConnection {
    RawConnection::connect(runtime, front_end.local_address(), LIMIT).await.unwrap()
}

fn earliest(subscription_type: SubscriptionType) -> ConsumerOptions {
    ConsumerOptions {
        start: StartPosition::Earliest,
        subscription_type,
        ..ConsumerOptions::default()
    }
}

async fn publish(client: &PulsarClient, topic: &str, options: ProducerOptions, count: u32) {
    let producer = client.producer(topic, options).await.unwrap();
    let mut tickets = Vec::new();
    for index in 0..count {
        let message = OutgoingMessage {
            key: Some(format!("k{index}")),
            properties: vec![("n".to_owned(), index.to_string())],
            ..OutgoingMessage::new(format!("m{index}"))
        };
        tickets.push(producer.send(message).await.unwrap());
    }
    producer.flush().unwrap();
    let mut last = None;
    for ticket in tickets {
        let id = ticket.await.unwrap();
        assert!(Some(id) > last, "receipts name growing places");
        last = Some(id);
    }
    producer.close().await.unwrap();
}

async fn receive(consumer: &mut seawall::client::Consumer, count: u32) -> Vec<Message> {
    let mut messages = Vec::new();
    for index in 0..count {
        let message = consumer.receive(LIMIT).await.unwrap();
        messages.push(message.unwrap_or_else(|| panic!("only {index} of {count} came")));
    }
    messages
}

fn check(messages: &[Message]) {
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message.payload, format!("m{index}"));
        assert_eq!(message.key, Some(format!("k{index}")));
        assert_eq!(message.properties, [("n".to_owned(), index.to_string())]);
    }
}

/// Publishes one message and receives it: the front end serves.
async fn is_served(runtime: &Runtime, front_end: &PulsarFrontend, topic: &str) {
    let client = client(runtime, front_end).await;
    publish(&client, topic, ProducerOptions::default(), 1).await;
    let options = earliest(SubscriptionType::Exclusive);
    let mut consumer = client.consumer(topic, "served", options).await.unwrap();
    check(&receive(&mut consumer, 1).await);
    client.close().await;
}

#[test]
fn what_is_published_is_received_in_every_form() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let client = client(runtime, front_end).await;
        let forms = [
            (1, Compression::None),
            (10, Compression::None),
            (10, Compression::Lz4),
            (10, Compression::Zlib),
            (7, Compression::Zstd),
            (64, Compression::Snappy),
            (1, Compression::Lz4),
        ];
        for (index, (batch_messages_max, compression)) in forms.into_iter().enumerate() {
            let topic = format!("form-{index}");
            let options = ProducerOptions {
                batch_messages_max,
                compression,
                linger: Duration::from_millis(5),
                ..ProducerOptions::default()
            };
            publish(&client, &topic, options, 500).await;
            let options =
                ConsumerOptions { receiver_queue: 50, ..earliest(SubscriptionType::Exclusive) };
            let mut consumer = client.consumer(&topic, "s", options).await.unwrap();
            let messages = receive(&mut consumer, 500).await;
            check(&messages);
            let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
            consumer.acknowledge(&ids[..250]).await.unwrap();
            consumer.acknowledge_cumulative(ids[299]).await.unwrap();
            consumer.redeliver(&[]);
            let next = consumer.receive(LIMIT).await.unwrap().unwrap();
            assert_eq!(next.payload, "m300", "{batch_messages_max} {compression:?}");
            consumer.seek(StartPosition::Earliest).await.unwrap();
            check(&receive(&mut consumer, 100).await);
            consumer.unsubscribe(false).await.unwrap();
        }
        client.close().await;
    });
}

#[test]
fn an_unloaded_topic_is_found_again() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let client = client(runtime, front_end).await;
        let producer = client.producer("moving", ProducerOptions::default()).await.unwrap();
        let options = earliest(SubscriptionType::Shared);
        let mut consumer = client.consumer("moving", "s", options).await.unwrap();
        for round in 0..3 {
            let ticket = producer.send(OutgoingMessage::new(format!("r{round}"))).await.unwrap();
            ticket.await.unwrap();
            let message = consumer.receive(LIMIT).await.unwrap().unwrap();
            assert_eq!(message.payload, format!("r{round}"));
            consumer.acknowledge(&[message.id]).await.unwrap();
            for topic in place.broker.loaded_topics() {
                topic.unload().await;
            }
        }
        producer.close().await.unwrap();
    });
}

/// Publishes while `disturb` is run between the halves, and checks that everything is stored at least once,
/// first occurrences in order.
async fn publish_disturbed(
    runtime: &Runtime,
    front_end: &PulsarFrontend,
    disturb: impl AsyncFnOnce(),
) {
    const COUNT: usize = 2000;
    let client = client(runtime, front_end).await;
    let options =
        ProducerOptions { batch_messages_max: 5, pending_max: COUNT, ..ProducerOptions::default() };
    let producer = client.producer("disturbed", options).await.unwrap();
    let mut tickets = Vec::new();
    for index in 0..COUNT / 2 {
        tickets.push(producer.send(OutgoingMessage::new(index.to_string())).await.unwrap());
    }
    disturb().await;
    for index in COUNT / 2..COUNT {
        tickets.push(producer.send(OutgoingMessage::new(index.to_string())).await.unwrap());
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    let options = earliest(SubscriptionType::Exclusive);
    let mut consumer = client.consumer("disturbed", "s", options).await.unwrap();
    let mut next = 0;
    while next < COUNT {
        let message = consumer.receive(LIMIT).await.unwrap().expect("all of them");
        let index: usize = std::str::from_utf8(&message.payload).unwrap().parse().unwrap();
        assert!(index <= next, "{index} overtook {next}");
        next = next.max(index + 1);
    }
    client.close().await;
}

#[test]
fn a_pipeline_survives_an_unload() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let unload = async || {
            for topic in place.broker.loaded_topics() {
                topic.unload().await;
            }
        };
        publish_disturbed(runtime, front_end, unload).await;
    });
}

#[test]
fn a_pipeline_survives_a_restart_of_the_front_end() {
    on_node(async |place| {
        let (runtime, broker) = (&place.runtime, &place.broker);
        let first = PulsarConfig::new("127.0.0.1:0");
        let first = PulsarFrontend::start(runtime.clone(), broker.clone(), first).await.unwrap();
        let address = first.local_address().to_owned();
        // Looked up by address, so that the client finds the second one there.
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let second = PulsarConfig::new(&address);
        let restarting = runtime.clone();
        let serving = PulsarFrontend::start(
            runtime.clone(),
            broker.clone(),
            PulsarConfig { advertised: Some(address.clone()), ..PulsarConfig::new("127.0.0.1:0") },
        )
        .await
        .unwrap();
        let restart = async || {
            first.stop().await;
            let front_end = PulsarFrontend::start(restarting.clone(), broker.clone(), second);
            let front_end = front_end.await.unwrap();
            restarting.tasks.spawn("second", async move {
                let _ = stopped.await;
                front_end.stop().await;
            });
        };
        publish_disturbed(runtime, &serving, restart).await;
        drop(stop);
        serving.stop().await;
    });
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_up() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let client = client(runtime, front_end).await;
        let producer = client.producer("slow", ProducerOptions::default()).await.unwrap();
        for _ in 0..200 {
            let message = OutgoingMessage::new(vec![7_u8; 50_000]);
            producer.send(message).await.unwrap().await.unwrap();
        }
        let mut sleeper = raw(runtime, front_end).await;
        sleeper.handshake().await.unwrap();
        let subscribe = proto::CommandSubscribe {
            topic: "slow".to_owned(),
            subscription: "sleeper".to_owned(),
            initial_position: Some(1),
            ..Default::default()
        };
        sleeper.send_command(&Command::Subscribe(subscribe)).await.unwrap();
        let flow = proto::CommandFlow { consumer_id: 0, message_permits: 1000 };
        assert!(matches!(sleeper.next_command().await.unwrap(), Command::Success(_)));
        sleeper.send_command(&Command::Flow(flow)).await.unwrap();
        is_served(runtime, front_end, "others").await;
        // When it wakes up it gets everything, in order.
        for index in 0..200 {
            match sleeper.next_command().await.unwrap() {
                Command::Message(message) => assert_eq!(message.message_id.entry_id, index),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn permits_are_given_once() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let client = client(runtime, front_end).await;
        publish(&client, "permits", ProducerOptions::default(), 20).await;
        let mut connection = raw(runtime, front_end).await;
        connection.handshake().await.unwrap();
        let subscribe = proto::CommandSubscribe {
            topic: "permits".to_owned(),
            subscription: "s".to_owned(),
            initial_position: Some(1),
            ..Default::default()
        };
        connection.send_command(&Command::Subscribe(subscribe)).await.unwrap();
        assert!(matches!(connection.next_command().await.unwrap(), Command::Success(_)));
        for message_permits in [0, 5] {
            let flow = proto::CommandFlow { consumer_id: 0, message_permits };
            connection.send_command(&Command::Flow(flow)).await.unwrap();
        }
        for _ in 0..5 {
            assert!(matches!(connection.next_command().await.unwrap(), Command::Message(_)));
        }
        runtime.clock.sleep(Duration::from_millis(200)).await;
        connection.send_command(&Command::Ping(proto::CommandPing {})).await.unwrap();
        assert!(matches!(connection.next_command().await.unwrap(), Command::Pong(_)));
    });
}

/// Reads until the front end closes the connection; gives what it said before.
async fn until_closed(connection: &mut RawConnection) -> Vec<Command> {
    let mut commands = Vec::new();
    loop {
        match connection.next_command().await {
            Ok(command) => commands.push(command),
            Err(ClientError::Disconnected(_)) => return commands,
            Err(error) => panic!("not closed: {error}"),
        }
    }
}

fn encoded(command: &Command) -> BytesMut {
    let mut frame = BytesMut::new();
    encode_command(command, &mut frame);
    frame
}

#[test]
fn broken_clients_are_closed_and_others_served() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let ping = encoded(&Command::Ping(proto::CommandPing {}));
        let success = encoded(&Command::Success(proto::CommandSuccess::default()));
        let send = publish_frame(99, 0, "x", 0, &OutgoingMessage::new("x"));
        let after_handshake: [&[u8]; 8] = [
            b"GET / HTTP/1.1\r\n\r\n",
            &[0, 0, 0, 0],
            &[0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff],
            &[0x7f, 0xff, 0xff, 0xff],
            &[0, 0, 0, 6, 0, 0, 0, 2, 0x08, 77],
            &[0, 0, 0, 7, 0, 0, 0, 3, 0x08, 0xff, 0xff],
            &success,
            &send,
        ];
        for bytes in after_handshake {
            let mut bad = raw(runtime, front_end).await;
            bad.handshake().await.unwrap();
            bad.send_bytes(bytes).await.unwrap();
            until_closed(&mut bad).await;
        }
        // Before the handshake nothing else is taken, and not much.
        for bytes in [&ping[..], b"\0\x01\x11\x70\0\0\0\x10", b"garbage garbage"] {
            let mut bad = raw(runtime, front_end).await;
            bad.send_bytes(bytes).await.unwrap();
            assert_eq!(until_closed(&mut bad).await, []);
        }
        let mut silent = raw(runtime, front_end).await;
        until_closed(&mut silent).await;
        let mut twice = raw(runtime, front_end).await;
        twice.handshake().await.unwrap();
        assert!(twice.handshake().await.is_err());
        is_served(runtime, front_end, "t").await;
        let counts = front_end.counters().read();
        assert!(counts.protocol_errors >= 12, "{counts:?}");
    });
}

#[test]
fn refusals_are_answers_and_come_in_their_turn() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let mut connection = raw(runtime, front_end).await;
        let connected = connection.handshake().await.unwrap();
        assert_eq!(connected.max_message_size, Some(256 * 1024));
        assert!(!connected.server_version.is_empty());
        let producer = |topic: &str, producer_id, mode| {
            Command::Producer(proto::CommandProducer {
                topic: topic.to_owned(),
                producer_id,
                request_id: producer_id,
                producer_access_mode: Some(mode),
                ..Default::default()
            })
        };
        for (command, code) in [
            (producer("a/b", 1, 0), proto::ServerError::InvalidTopicName),
            (producer("t", 2, 1), proto::ServerError::NotAllowedError),
        ] {
            connection.send_command(&command).await.unwrap();
            match connection.next_command().await.unwrap() {
                Command::Error(error) => assert_eq!(error.error, i32::from(code)),
                other => panic!("{other:?}"),
            }
        }
        connection.send_command(&producer("t", 3, 0)).await.unwrap();
        assert!(matches!(connection.next_command().await.unwrap(), Command::ProducerSuccess(_)));
        // Good, damaged, good, too large, good: five answers in this order.
        let mut stream = Vec::new();
        for sequence_id in 0..5 {
            let size = if sequence_id == 3 { 260 * 1024 } else { 10 };
            let message = OutgoingMessage::new(vec![1_u8; size]);
            let mut frame = publish_frame(3, sequence_id, "p", 0, &message).to_vec();
            if sequence_id == 1 {
                *frame.last_mut().unwrap() ^= 1;
            }
            stream.extend_from_slice(&frame);
        }
        connection.send_bytes(&stream).await.unwrap();
        for sequence_id in 0..5 {
            match connection.next_command().await.unwrap() {
                Command::SendReceipt(receipt) => {
                    assert_eq!(receipt.sequence_id, sequence_id);
                    assert!(![1, 3].contains(&sequence_id), "{sequence_id} is stored");
                }
                Command::SendError(error) => {
                    assert_eq!(error.sequence_id, sequence_id);
                    let code = match sequence_id {
                        1 => proto::ServerError::ChecksumError,
                        _ => proto::ServerError::NotAllowedError,
                    };
                    assert_eq!(error.error, i32::from(code));
                    assert!([1, 3].contains(&sequence_id));
                }
                other => panic!("{other:?}"),
            }
        }
        let client = client(runtime, front_end).await;
        let small = client.producer("t2", ProducerOptions::default()).await.unwrap();
        let ticket = small.send(OutgoingMessage::new(vec![0_u8; 300 * 1024])).await.unwrap();
        assert!(matches!(ticket.await, Err(SendError::Rejected(_))));
    });
}

#[test]
fn random_clients_do_not_hurt() {
    on_node(async |place| {
        let (runtime, front_end) = (&place.runtime, &place.front_end);
        let random = runtime.random.fork("hostile");
        for round in 0..60 {
            let mut bad = raw(runtime, front_end).await;
            if round % 2 == 0 {
                bad.handshake().await.unwrap();
            }
            let good = publish_frame(0, 0, "p", 0, &OutgoingMessage::new("x"));
            let mut bytes = if round % 3 == 0 { good.to_vec() } else { Vec::new() };
            bytes.extend((0..random.below(300)).map(|_| random.next() as u8));
            if bytes.len() > 4 && round % 5 == 0 {
                bytes[..2].fill(0);
            }
            // It may be closed before everything is written.
            let _ = bad.send_bytes(&Bytes::from(bytes)).await;
        }
        is_served(runtime, front_end, "t").await;
    });
}
