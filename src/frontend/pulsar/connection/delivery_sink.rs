//! MESSAGE frames of one consumer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;

use super::handles::Handles;
use super::outbox::Outbox;
use crate::broker::{CloseReason, ConsumerSink, Delivery};
use crate::frontend::pulsar::codec::{Command, MessageHead, encode_message_head, proto};

/// The request id of what the broker does unasked.
const UNASKED: u64 = u64::MAX;
/// Entries up to this size are copied behind their heads, larger ones are handed on as they are.
const COPIED_MAX: usize = 32 * 1024;

#[derive(Default)]
struct State {
    /// The client knows the consumer is open.
    announced: bool,
    /// The broker closed it: nothing more is said about it.
    closed: bool,
    /// A change of the active consumer that came before the client knows this one.
    active: Option<bool>,
}

/// Where the broker gives entries for one consumer.
pub(in crate::frontend::pulsar) struct DeliverySink {
    consumer_id: u64,
    generation: u64,
    partition: Option<u32>,
    outbox: Arc<Outbox>,
    handles: Arc<Handles>,
    state: Mutex<State>,
}

impl DeliverySink {
    pub(in crate::frontend::pulsar) fn new(
        consumer_id: u64,
        generation: u64,
        partition: Option<u32>,
        outbox: Arc<Outbox>,
        handles: Arc<Handles>,
    ) -> Self {
        let state = Mutex::new(State::default());
        Self { consumer_id, generation, partition, outbox, handles, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the client's request to subscribe, unless the broker has closed the consumer already.
    pub(in crate::frontend::pulsar) fn announce(&self, request_id: u64) -> bool {
        let mut state = self.state();
        if state.closed {
            return false;
        }
        state.announced = true;
        self.outbox.success(request_id);
        if let Some(is_active) = state.active.take() {
            self.tell_active(is_active);
        }
        true
    }

    /// The topic's partition index, if it is one.
    pub(in crate::frontend::pulsar) const fn partition(&self) -> Option<u32> {
        self.partition
    }

    /// Tells the client nothing until [`DeliverySink::speak_again`]: the client is closing the consumer
    /// itself, and would open it again if it were told of the close.
    pub(in crate::frontend::pulsar) fn silence(&self) {
        self.state().announced = false;
    }

    /// Ends [`DeliverySink::silence`]; a close that came meanwhile is told now.
    pub(in crate::frontend::pulsar) fn speak_again(&self) {
        let mut state = self.state();
        state.announced = true;
        if state.closed {
            self.tell_closed();
        }
    }

    fn tell_closed(&self) {
        self.outbox.command(&Command::CloseConsumer(proto::CommandCloseConsumer {
            consumer_id: self.consumer_id,
            request_id: UNASKED,
            ..Default::default()
        }));
    }

    fn tell_active(&self, is_active: bool) {
        self.outbox.command(&Command::ActiveConsumerChange(proto::CommandActiveConsumerChange {
            consumer_id: self.consumer_id,
            is_active: Some(is_active),
        }));
    }
}

impl ConsumerSink for DeliverySink {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        // Held to the end, so that nothing is delivered after the close.
        let state = self.state();
        if state.closed {
            return;
        }
        let copied = |delivery: &Delivery| delivery.client_bytes.len() <= COPIED_MAX;
        let bytes = deliveries
            .iter()
            .map(|delivery| if copied(delivery) { delivery.client_bytes.len() + 64 } else { 64 })
            .sum();
        let mut buffer = BytesMut::with_capacity(bytes);
        for delivery in deliveries {
            let head = MessageHead {
                consumer_id: self.consumer_id,
                position: delivery.position,
                partition: self.partition,
                redelivery_count: delivery.redelivery_count,
                ack_set: delivery.ack_set.as_deref().unwrap_or_default(),
                consumer_epoch: delivery.consumer_epoch,
            };
            encode_message_head(&head, delivery.client_bytes.len(), &mut buffer);
            if copied(&delivery) {
                buffer.extend_from_slice(&delivery.client_bytes);
            } else {
                self.outbox.push(buffer.split().freeze(), Some(delivery.client_bytes));
            }
        }
        if !buffer.is_empty() {
            self.outbox.push(buffer.freeze(), None);
        }
    }

    fn has_room(&self) -> bool {
        self.outbox.has_room(self.consumer_id)
    }

    fn active_changed(&self, is_active: bool) {
        let mut state = self.state();
        if state.announced && !state.closed {
            self.tell_active(is_active);
        } else {
            state.active = Some(is_active);
        }
    }

    fn closed(&self, _reason: CloseReason) {
        {
            let mut state = self.state();
            if state.closed {
                return;
            }
            state.closed = true;
            if state.announced {
                self.tell_closed();
            }
        }
        self.handles.consumers().remove_generation(self.consumer_id, self.generation);
    }
}
