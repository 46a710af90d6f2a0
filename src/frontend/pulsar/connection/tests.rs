//! Receipts keep their order, failures stop a producer, and bounds are given back.

use std::sync::Arc;

use bytes::BytesMut;

use super::handles::{BeginError, HandleTable, Handles};
use super::inflight::Inflight;
use super::outbox::{Outbox, Outgoing};
use super::publish_sink::{PublishSink, Refusal};
use crate::broker::{CloseReason, ProducerSink, PublishError, PublishOutcome};
use crate::domain::{EntryId, LedgerId, Position};
use crate::frontend::pulsar::codec::{Command, next_frame, proto};
use crate::runtime::{Mailbox, mailbox, real};

struct World {
    sink: PublishSink,
    inflight: Arc<Inflight>,
    handles: Arc<Handles>,
    outgoing: Mailbox<Outgoing>,
}

fn world() -> World {
    let (sender, outgoing) = mailbox(16);
    let outbox = Arc::new(Outbox::new(sender, 1000));
    let inflight = Arc::new(Inflight::new(4, 1000));
    let handles = Arc::new(Handles::new(8, 8));
    let sink = PublishSink::new(
        3,
        1,
        outbox,
        Arc::clone(&inflight),
        Arc::clone(&handles),
        real::runtime().tasks,
    );
    assert!(sink.announce(&Command::Pong(proto::CommandPong {})));
    let mut world = World { sink, inflight, handles, outgoing };
    world.said();
    world
}

impl World {
    /// What was said to the client, in short.
    fn said(&mut self) -> Vec<String> {
        let mut buffer = BytesMut::new();
        for item in self.outgoing.take_ready() {
            if let Outgoing::Frames(head, _) = item {
                buffer.extend_from_slice(&head);
            }
        }
        let mut said = Vec::new();
        while let Some(frame) = next_frame(&mut buffer, 1000).unwrap() {
            said.push(match Command::decode(&frame.command).unwrap() {
                Command::SendReceipt(receipt) => format!("receipt {}", receipt.sequence_id),
                Command::SendError(error) => {
                    format!("{:?} {}", error.error(), error.sequence_id)
                }
                other => other.name().to_owned(),
            });
        }
        said
    }

    fn send(&self, sequence_id: u64) {
        self.sink.register(sequence_id, None, 10, None);
    }

    fn refuse(&self, sequence_id: u64) {
        let refusal = Refusal { error: proto::ServerError::ChecksumError, message: String::new() };
        self.sink.register(sequence_id, None, 10, Some(refusal));
    }
}

fn outcome(sequence_id: u64, error: Option<PublishError>) -> PublishOutcome {
    let position = Position::new(LedgerId(1), EntryId(sequence_id as i64));
    PublishOutcome {
        number: 0,
        sequence_id,
        highest_sequence_id: None,
        result: error.map_or(Ok(position), Err),
    }
}

#[tokio::test]
async fn refusals_wait_for_their_turn() {
    let mut world = world();
    world.refuse(0);
    assert_eq!(world.said(), ["ChecksumError 0"]);
    world.send(1);
    world.refuse(2);
    world.refuse(3);
    world.send(4);
    assert!(world.inflight.is_full());
    assert!(world.said().is_empty());
    world.sink.published(vec![outcome(1, None)]);
    assert_eq!(world.said(), ["receipt 1", "ChecksumError 2", "ChecksumError 3"]);
    assert!(!world.inflight.is_full());
    world.sink.published(vec![outcome(4, None)]);
    assert_eq!(world.said(), ["receipt 4"]);
}

#[tokio::test]
async fn nothing_overtakes_a_failure() {
    let mut world = world();
    for sequence_id in 0..4 {
        world.send(sequence_id);
    }
    let failure = Some(PublishError::TooManyPending);
    world.sink.published(vec![outcome(0, None), outcome(1, failure), outcome(2, None)]);
    assert_eq!(world.said(), ["receipt 0", "ServiceNotReady 1", "CloseProducer"]);
    world.sink.published(vec![outcome(3, None)]);
    world.sink.closed(CloseReason::TopicMoved);
    world.send(4);
    assert!(world.said().is_empty());
    assert!(world.handles.is_retired_producer(3));
    assert!(!world.inflight.is_full());
}

#[tokio::test]
async fn a_moved_topic_is_told_by_closing_the_producer() {
    let mut world = world();
    world.send(0);
    world.sink.published(vec![outcome(0, Some(PublishError::TopicMoved))]);
    world.sink.closed(CloseReason::TopicMoved);
    assert_eq!(world.said(), ["CloseProducer"]);
    assert!(!world.sink.announce(&Command::Pong(proto::CommandPong {})));
}

#[tokio::test]
async fn a_client_that_leaves_gets_its_receipts_and_no_close() {
    let mut world = world();
    world.send(0);
    world.sink.leave();
    world.sink.published(vec![outcome(0, None)]);
    world.sink.closed(CloseReason::Replaced);
    assert_eq!(world.said(), ["receipt 0"]);
}

#[test]
fn a_handle_closed_while_it_opens_is_not_opened() {
    let mut table = HandleTable::new(2);
    let first = table.begin(1).ok().unwrap();
    assert!(matches!(table.begin(1), Err(BeginError::Pending)));
    assert!(table.remove(1).is_none());
    let second = table.begin(1).ok().unwrap();
    assert!(!table.open(1, first, "first"));
    assert!(table.open(1, second, "second"));
    assert!(matches!(table.begin(1), Err(BeginError::Open("second"))));
    table.remove_generation(1, first);
    assert_eq!(table.get(1), Some("second"));
    assert!(table.begin(2).is_ok());
    assert!(matches!(table.begin(3), Err(BeginError::Refused)));
}

#[test]
fn a_refused_consumer_is_resumed_when_half_is_written() {
    let (sender, _outgoing) = mailbox(16);
    let outbox = Outbox::new(sender, 100);
    assert!(outbox.has_room(1));
    outbox.push(vec![0; 120].into(), None);
    assert!(!outbox.has_room(1));
    assert!(outbox.written(60).is_empty());
    assert!(outbox.has_room(2));
    outbox.push(vec![0; 140].into(), None);
    assert!(!outbox.has_room(2));
    assert!(!outbox.is_clogged());
    assert_eq!(outbox.written(160).into_iter().collect::<Vec<_>>(), [1, 2]);
    assert!(outbox.has_room(1));
}
