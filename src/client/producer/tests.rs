//! Receipts that a producer does not expect, from a broker that is only a script.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{ClientOptions, OutgoingMessage, ProducerOptions, PulsarClient, SendError};
use crate::frontend::pulsar::codec::{Command, encode_command, next_frame, proto};
use crate::runtime::sim::{World, WorldSettings};
use crate::runtime::{ByteStream, Runtime};

const BROKER: &str = "broker:6650";
const LEDGER: u64 = 7;

/// The sequence ids that get a receipt when a message of this one comes.
type Receipts = fn(u64) -> Vec<u64>;

async fn broker(runtime: Runtime, receipts: Receipts) {
    let listener = runtime.network.listen(BROKER).await.unwrap();
    loop {
        let accepted = listener.accept().await.unwrap();
        runtime.tasks.spawn("connection", answer_all(accepted.stream, receipts));
    }
}

async fn answer_all(mut stream: ByteStream, receipts: Receipts) {
    let (mut buffer, mut answers) = (BytesMut::new(), BytesMut::new());
    while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        while let Some(frame) = next_frame(&mut buffer, 1 << 20).unwrap() {
            for answer in answers_to(Command::decode(&frame.command).unwrap(), receipts) {
                encode_command(&answer, &mut answers);
            }
        }
        stream.write_all(&answers.split()).await.unwrap();
    }
}

/// What opens a producer works; each receipt says that the message is the entry of its sequence id.
fn answers_to(command: Command, receipts: Receipts) -> Vec<Command> {
    let answer = match command {
        Command::Connect(_) => Command::Connected(proto::CommandConnected::default()),
        Command::Lookup(lookup) => Command::LookupResponse(proto::CommandLookupTopicResponse {
            broker_service_url: Some(format!("pulsar://{BROKER}")),
            response: Some(proto::command_lookup_topic_response::LookupType::Connect.into()),
            request_id: lookup.request_id,
            ..Default::default()
        }),
        Command::Producer(producer) => Command::ProducerSuccess(proto::CommandProducerSuccess {
            request_id: producer.request_id,
            producer_name: "scripted".to_owned(),
            last_sequence_id: Some(-1),
            ..Default::default()
        }),
        Command::Send(send) => {
            let receipt = |sequence_id| {
                let id = proto::MessageIdData {
                    ledger_id: LEDGER,
                    entry_id: sequence_id,
                    ..Default::default()
                };
                Command::SendReceipt(proto::CommandSendReceipt {
                    producer_id: send.producer_id,
                    sequence_id,
                    message_id: Some(id),
                    ..Default::default()
                })
            };
            return receipts(send.sequence_id).into_iter().map(receipt).collect();
        }
        _ => return Vec::new(),
    };
    vec![answer]
}

/// Sends one message after the other, each when the one before has its outcome: the entry, or why there is none.
fn outcomes(messages: usize, receipts: Receipts) -> Vec<Result<i64, SendError>> {
    World::run(1, WorldSettings::default(), move |world| async move {
        let node = world.create_node("broker", "broker");
        node.start(move |runtime| broker(runtime, receipts));
        let client_node = world.create_node("client", "client");
        let runtime = client_node.runtime();
        let sending = async move {
            let client = PulsarClient::connect(&runtime, BROKER, ClientOptions::default());
            let client = client.await.unwrap();
            let options = ProducerOptions {
                batch_messages_max: 1,
                send_limit: Duration::from_secs(1),
                ..ProducerOptions::default()
            };
            let producer = client.producer("topic", options).await.unwrap();
            let mut outcomes = Vec::new();
            for _ in 0..messages {
                let sent = producer.send(OutgoingMessage::new(vec![1])).await.unwrap();
                outcomes.push(sent.await.map(|id| id.position.entry.0));
            }
            outcomes
        };
        client_node.spawn("client", sending).await.unwrap()
    })
}

/// The first message has been given up when its receipt comes, and the second one waits.
#[test]
fn a_late_receipt_is_for_no_other_message() {
    let told = outcomes(2, |sequence_id| match sequence_id {
        0 => Vec::new(),
        other => vec![other - 1, other],
    });
    assert!(matches!(told[..], [Err(SendError::Unknown(_)), Ok(1)]), "{told:?}");
}

/// A receipt of what was not sent yet: nobody knows what else this broker has mixed up.
#[test]
fn a_receipt_from_nowhere_ends_the_producer() {
    let told = outcomes(2, |sequence_id| vec![sequence_id + 5]);
    assert!(
        matches!(told[..], [Err(SendError::Violation(_)), Err(SendError::Rejected(_))]),
        "{told:?}"
    );
}
