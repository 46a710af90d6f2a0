//! What connected consumers ask for: permits, acknowledgements, redelivery, the end of the topic, leaving.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot::error::TryRecvError;

use super::command::{ConsumerAddress, Reply};
use super::dispatching::identity;
use super::job::Finished;
use super::task::TopicTask;
use crate::broker::dispatch::Event;
use crate::broker::messages::{AckError, AckRequest, AckType, CloseReason, LastMessage};
use crate::broker::service::BrokerError;
use crate::broker::subscription::{ConnectedConsumer, Subscription};
use crate::domain::{EntryId, Position};
use crate::mutant;

impl TopicTask {
    /// The subscription of a consumer that is still connected.
    pub(super) fn subscription_of(
        &mut self,
        consumer: &ConsumerAddress,
    ) -> Option<&mut Subscription> {
        self.subscriptions
            .get_mut(&consumer.subscription)
            .filter(|subscription| subscription.consumers.contains_key(&consumer.key))
    }

    pub(super) fn flow(&mut self, address: &ConsumerAddress) {
        let wall = self.wall;
        let Some(subscription) = self.subscription_of(address) else { return };
        subscription.seen.flow = wall;
        let Some(consumer) = subscription.consumers.get_mut(&address.key) else { return };
        consumer.seen.flow = wall;
        let permits = match mutant!("D14") {
            true => consumer.permits.load(Ordering::Acquire),
            false => consumer.permits.swap(0, Ordering::AcqRel),
        };
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        self.drive(&address.subscription, Event::Flow { consumer: address.key, permits });
    }

    pub(super) fn resume(&mut self, address: &ConsumerAddress) {
        let Some(subscription) = self.subscription_of(address) else { return };
        let Some(consumer) = subscription.consumers.get(&address.key) else { return };
        let has_room = consumer.sink.has_room();
        if has_room != subscription.machine.consumer_has_room(address.key) {
            let consumer = address.key;
            self.drive(&address.subscription, Event::Room { consumer, has_room });
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        address: &ConsumerAddress,
        request: AckRequest,
        reply: Reply<Result<(), AckError>>,
    ) {
        let (now, wall) = (self.now, self.wall);
        let Some(subscription) = self.subscription_of(address) else {
            let _ = reply.send(Err(AckError::ConsumerClosed));
            return;
        };
        let shared = subscription.is_shared();
        if shared && request.ack_type == AckType::Cumulative {
            let _ = reply.send(Err(AckError::NotAllowed));
            return;
        }
        let positions: Vec<Position> = if shared {
            request.targets.iter().map(|target| target.position).collect()
        } else {
            Vec::new()
        };
        // Rates count entries: the number of messages of an entry is not known here.
        let acked = request.targets.len() as u64;
        let mut answer = subscription.cursor.acknowledge(request);
        subscription.acked.add(acked, 0, now);
        subscription.seen.acked = wall;
        if let Some(consumer) = subscription.consumers.get_mut(&address.key) {
            consumer.acked.add(acked, 0, now);
            consumer.seen.acked = wall;
        }
        if shared {
            let entries = settled(subscription, positions);
            let event = Event::Acked { consumer: address.key, entries };
            self.drive(&address.subscription, event);
        }
        if reply.is_closed() {
            return;
        }
        match answer.try_recv() {
            Ok(result) => {
                let _ = reply.send(result);
            }
            Err(TryRecvError::Closed) => {
                let _ = reply.send(Err(AckError::ConsumerClosed));
            }
            Err(TryRecvError::Empty) => self.jobs.push(Box::pin(async move {
                let _ = reply.send(answer.await.unwrap_or(Err(AckError::ConsumerClosed)));
                Finished::Nothing
            })),
        }
    }

    pub(super) fn redeliver(
        &mut self,
        address: &ConsumerAddress,
        positions: Option<Vec<Position>>,
        epoch: Option<u64>,
    ) {
        let Some(subscription) = self.subscription_of(address) else { return };
        let first_unacked = subscription.first_unacked();
        let consumer = address.key;
        let event = Event::Redeliver { consumer, positions, epoch, first_unacked };
        self.drive(&address.subscription, event);
    }

    pub(super) fn last_message(
        &mut self,
        address: &ConsumerAddress,
        reply: Reply<Result<LastMessage, BrokerError>>,
    ) {
        let Some(subscription) = self.subscription_of(address) else {
            let _ = reply.send(Err(BrokerError::NotReady("the consumer is closed".to_owned())));
            return;
        };
        let cursor = subscription.cursor.clone();
        let ledger = self.ledger.clone();
        let last = ledger.last_confirmed();
        self.jobs.push(Box::pin(async move {
            let found = if last.entry == EntryId::NONE {
                Ok(Vec::new())
            } else {
                ledger.read(last, 1, 1).await
            };
            let _ = reply.send(found.map_err(BrokerError::from).map(|found| {
                let entry = found.first();
                LastMessage {
                    position: entry.map(|entry| entry.position),
                    batch_size: entry
                        .filter(|entry| entry.is_batch)
                        .map(|entry| entry.message_count),
                    mark_delete: cursor.mark_delete(),
                }
            }));
            Finished::Nothing
        }));
    }

    /// Takes a consumer out, if it is still there; what it holds goes to others. A reader's subscription
    /// ends with its last consumer.
    pub(super) fn remove_consumer(
        &mut self,
        address: &ConsumerAddress,
    ) -> Option<ConnectedConsumer> {
        let subscription = self.subscription_of(address)?;
        let first_unacked = subscription.first_unacked();
        let key = match mutant!("D16") {
            true => *subscription.consumers.last_key_value()?.0,
            false => address.key,
        };
        let removed = subscription.consumers.remove(&key);
        let ends = !subscription.durable
            && subscription.consumers.is_empty()
            && subscription.fenced.is_none();
        if ends {
            let identity = identity(subscription);
            self.reads.abort_of(&identity);
            self.subscriptions.remove(&address.subscription);
        } else {
            self.drive(&address.subscription, Event::Left { consumer: key, first_unacked });
        }
        let topic = &self.shared.name;
        tracing::debug!(%topic, subscription = %address.subscription, consumer = key.0, "consumer left");
        removed
    }

    /// Takes all consumers of a subscription out and tells them why, but for one that knows.
    pub(super) fn close_consumers(
        &mut self,
        name: &Arc<str>,
        reason: &CloseReason,
        but_not: Option<&ConsumerAddress>,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(name) else { return };
        let first_unacked = subscription.first_unacked();
        for (key, consumer) in std::mem::take(&mut subscription.consumers) {
            if but_not.is_none_or(|address| address.key != key) {
                consumer.sink.closed(reason.clone());
            }
            self.drive(name, Event::Left { consumer: key, first_unacked });
        }
    }
}

/// What is open of the acknowledged entries now.
fn settled(subscription: &Subscription, positions: Vec<Position>) -> Vec<(Position, u32)> {
    let open = |position| {
        let state = subscription.cursor.entry_state(position);
        (position, Subscription::remaining(&state, u32::MAX))
    };
    positions.into_iter().map(open).collect()
}
