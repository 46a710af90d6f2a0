//! Receipts that a producer does not expect, from a broker that is only a script.

use std::time::Duration;

use crate::client::scripted_broker::{self, BROKER, Open};
use crate::client::{ClientOptions, OutgoingMessage, ProducerOptions, PulsarClient, SendError};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::runtime::sim::{World, WorldSettings};

const LEDGER: u64 = 7;

/// The sequence ids that get a receipt when a message of this one comes.
type Receipts = fn(u64) -> Vec<u64>;

/// Each receipt says that the message is the entry of its sequence id.
fn receipts_for(command: &Command, receipts: Receipts) -> Option<Vec<Command>> {
    let Command::Send(send) = command else { return None };
    let receipt = |sequence_id| {
        let id =
            proto::MessageIdData { ledger_id: LEDGER, entry_id: sequence_id, ..Default::default() };
        Command::SendReceipt(proto::CommandSendReceipt {
            producer_id: send.producer_id,
            sequence_id,
            message_id: Some(id),
            ..Default::default()
        })
    };
    Some(receipts(send.sequence_id).into_iter().map(receipt).collect())
}

/// Sends one message after the other, each when the one before has its outcome: the entry, or why there is none.
fn outcomes(messages: usize, receipts: Receipts) -> Vec<Result<i64, SendError>> {
    World::run(1, WorldSettings::default(), move |world| async move {
        let node = world.create_node("broker", "broker");
        let script = move |command: &Command| receipts_for(command, receipts);
        node.start(move |runtime| scripted_broker::serve(runtime, script, Open::default()));
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
