//! Performs what the dispatch machines ask for: reads, deliveries, retries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};

use super::job::{Finished, SubscriptionIdentity};
use super::read::{ReadAnswer, read_new, read_replay};
use super::task::TopicTask;
use crate::broker::cursor::EntryState;
use crate::broker::dispatch::{Assigned, ConsumerKey, Effect, Event, Fact, ReadId};
use crate::broker::managed_ledger::{ManagedLedgerError, StoredEntry};
use crate::broker::messages::Delivery;
use crate::broker::subscription::Subscription;
use crate::domain::Instant;
use crate::{mutant, reached};

/// A read not answered after this is given up and asked for again.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed read.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Reads answered from memory within one turn, for each event of a subscription.
const INLINE_READS_MAX: usize = 4;

/// Reads that wait for storage, each with its own deadline.
#[derive(Default)]
pub(super) struct PendingReads(BTreeMap<(SubscriptionIdentity, ReadId), PendingRead>);

struct PendingRead {
    deadline: Instant,
    abort: AbortHandle,
}

impl PendingReads {
    /// When the first of them is given up. All are looked at: an old read can hang while newer ones are
    /// answered.
    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.0.values().map(|read| read.deadline).min()
    }

    pub(super) fn abort_all(&mut self) {
        for (_, read) in std::mem::take(&mut self.0) {
            read.abort.abort();
        }
    }

    fn abort(&mut self, subscription: &SubscriptionIdentity, id: ReadId) {
        if let Some(read) = self.0.remove(&(subscription.clone(), id)) {
            read.abort.abort();
        }
    }

    /// All reads of a subscription that ends.
    pub(super) fn abort_of(&mut self, subscription: &SubscriptionIdentity) {
        self.0.retain(|(of, _), read| {
            let keep = of != subscription;
            if !keep {
                read.abort.abort();
            }
            keep
        });
    }
}

/// What the last read of a subscription brought, until it is delivered.
#[derive(Default)]
struct ReadContent {
    entries: Vec<StoredEntry>,
    /// Bit sets of partly acknowledged batches, by index of the entry.
    ack_sets: BTreeMap<usize, Vec<u64>>,
}

impl TopicTask {
    /// Gives every subscription the same event.
    pub(super) fn drive_all(&mut self, event: &Event) {
        let names: Vec<Arc<str>> = self.subscriptions.keys().cloned().collect();
        for name in names {
            self.drive(&name, event.clone());
        }
    }

    /// Gives a subscription's machine an event and performs what it asks for, and so on while reads are
    /// answered from memory.
    pub(super) fn drive(&mut self, name: &str, event: Event) {
        self.drive_with(name, event, ReadContent::default());
    }

    fn drive_with(&mut self, name: &str, mut event: Event, mut content: ReadContent) {
        for round in 0..=INLINE_READS_MAX {
            let Some(read) = self.perform(name, event, &mut content) else { return };
            let inline = round < INLINE_READS_MAX;
            let Some((id, result)) = self.start_read(name, read, inline) else { return };
            (event, content) = self.read_event(name, id, result);
        }
    }

    /// Answers the read to start, if any is asked for.
    fn perform(&mut self, name: &str, event: Event, content: &mut ReadContent) -> Option<Effect> {
        let subscription = self.subscriptions.get_mut(name)?;
        let mut effects = VecDeque::from(subscription.machine.on(event));
        let mut held = None;
        while let Some(effect) = effects.pop_front() {
            let subscription = self.subscriptions.get_mut(name)?;
            match effect {
                Effect::Read { .. } | Effect::ReadReplay { .. } => held = Some(effect),
                Effect::CancelRead { id } => {
                    // Cancelled before it was started, when a delivery filled the last connection.
                    if held.as_ref().is_some_and(|read| read_id(read) == Some(id)) {
                        held = None;
                    } else {
                        let identity = identity(subscription);
                        self.reads.abort(&identity, id);
                    }
                }
                Effect::Deliver { consumer, epoch, entries } => {
                    let (now, wall) = (self.now, self.wall);
                    let (has_room, messages, bytes) =
                        deliver(subscription, consumer, epoch, &entries, content, (now, wall));
                    self.shared.carry(messages, bytes);
                    if !has_room {
                        let event = Event::Room { consumer, has_room };
                        effects.extend(subscription.machine.on(event));
                    }
                }
                Effect::ActiveChanged { consumer, is_active } => {
                    if let Some(consumer) = subscription.consumers.get(&consumer) {
                        consumer.sink.active_changed(is_active);
                    }
                }
                Effect::RetryLater => subscription.retry_at = Some(self.now + RETRY_DELAY),
            }
        }
        held
    }

    /// Starts a read; its answer if it is there at once.
    fn start_read(
        &mut self,
        name: &str,
        read: Effect,
        inline: bool,
    ) -> Option<(ReadId, Result<ReadAnswer, ManagedLedgerError>)> {
        let identity = identity(self.subscriptions.get(name)?);
        let ledger = self.ledger.clone();
        let (id, mut work): (_, BoxFuture<'static, _>) = match read {
            Effect::Read { id, from, entries_max } => {
                (id, Box::pin(read_new(ledger, from, entries_max)))
            }
            Effect::ReadReplay { id, positions } => (id, Box::pin(read_replay(ledger, positions))),
            _ => return None,
        };
        if inline {
            if let Some(result) = (&mut work).now_or_never() {
                return Some((id, result));
            }
        } else {
            self.yield_wanted = true;
        }
        let (abort, registration) = AbortHandle::new_pair();
        let deadline = self.now + READ_TIMEOUT;
        self.reads.0.insert((identity.clone(), id), PendingRead { deadline, abort });
        self.jobs.push(Box::pin(async move {
            match Abortable::new(work, registration).await {
                Ok(result) => Finished::Read { subscription: identity, id, result },
                Err(_) => Finished::Nothing,
            }
        }));
        None
    }

    /// A read that had to wait is answered.
    pub(super) fn read_finished(
        &mut self,
        subscription: &SubscriptionIdentity,
        id: ReadId,
        result: Result<ReadAnswer, ManagedLedgerError>,
    ) {
        self.reads.0.remove(&(subscription.clone(), id));
        if !self.is_current(subscription) {
            return;
        }
        let name = Arc::clone(&subscription.name);
        let (event, content) = self.read_event(&name, id, result);
        self.drive_with(&name, event, content);
    }

    /// The subscription is still the one meant, not a later one of the same name.
    pub(super) fn is_current(&self, subscription: &SubscriptionIdentity) -> bool {
        self.subscriptions
            .get(&subscription.name)
            .is_some_and(|current| current.number == subscription.number)
    }

    fn read_event(
        &self,
        name: &str,
        id: ReadId,
        result: Result<ReadAnswer, ManagedLedgerError>,
    ) -> (Event, ReadContent) {
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => {
                reached!("topic: a read for dispatch failed");
                tracing::warn!(topic = %self.shared.name, subscription = name, %error, "read failed");
                return (Event::ReadFailed { id }, ReadContent::default());
            }
        };
        if !answer.gone.is_empty() {
            tracing::warn!(
                topic = %self.shared.name, subscription = name, entries = answer.gone.len(),
                "entries to be delivered again are no longer stored"
            );
        }
        let mut content = ReadContent { entries: answer.entries, ack_sets: BTreeMap::new() };
        let mut facts = Vec::with_capacity(content.entries.len());
        if let Some(subscription) = self.subscriptions.get(name) {
            for (index, entry) in content.entries.iter().enumerate() {
                let state = subscription.cursor.entry_state(entry.position);
                let mut remaining = Subscription::remaining(&state, entry.message_count);
                if let EntryState::Partly(words) = state {
                    if mutant!("D-ackset") {
                        remaining = 0;
                    }
                    content.ack_sets.insert(index, words);
                }
                facts.push(Fact { position: entry.position, remaining });
            }
        }
        (Event::ReadDone { id, entries: facts, gone: answer.gone }, content)
    }

    /// Gives up reads that took too long, and tries again what failed.
    pub(super) fn dispatch_on_time(&mut self) {
        let now = self.now;
        let late: Vec<_> = self
            .reads
            .0
            .iter()
            .filter(|(_, read)| read.deadline <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for (subscription, id) in late {
            reached!("topic: a read for dispatch timed out");
            self.reads.abort(&subscription, id);
            if self.is_current(&subscription) {
                self.drive(&subscription.name, Event::ReadFailed { id });
            }
        }
        let due: Vec<_> = self
            .subscriptions
            .values_mut()
            .filter(|one| one.retry_at.is_some_and(|at| at <= now))
            .map(|one| {
                one.retry_at = None;
                Arc::clone(&one.name)
            })
            .collect();
        for name in due {
            self.drive(&name, Event::Retry);
        }
    }
}

pub(super) fn identity(subscription: &Subscription) -> SubscriptionIdentity {
    SubscriptionIdentity { name: Arc::clone(&subscription.name), number: subscription.number }
}

const fn read_id(read: &Effect) -> Option<ReadId> {
    match read {
        Effect::Read { id, .. } | Effect::ReadReplay { id, .. } => Some(*id),
        _ => None,
    }
}

/// Hands entries to a consumer's sink; whether its connection has room for more, and how many messages and
/// bytes they were.
fn deliver(
    subscription: &mut Subscription,
    key: ConsumerKey,
    epoch: Option<u64>,
    entries: &[Assigned],
    content: &mut ReadContent,
    (now, wall): (Instant, crate::domain::WallTime),
) -> (bool, u64, u64) {
    let Some(consumer) = subscription.consumers.get_mut(&key) else { return (true, 0, 0) };
    let (mut messages, mut bytes, mut redelivered) = (0_u64, 0_u64, 0_u64);
    let mut deliveries = Vec::with_capacity(entries.len());
    for assigned in entries {
        let Some(entry) = content.entries.get_mut(assigned.index) else { continue };
        messages += u64::from(entry.message_count);
        bytes += entry.client_bytes.len() as u64;
        if assigned.redelivery_count > 0 {
            redelivered += u64::from(entry.message_count);
        }
        deliveries.push(Delivery {
            position: entry.position,
            redelivery_count: assigned.redelivery_count,
            ack_set: content.ack_sets.remove(&assigned.index),
            message_count: entry.message_count,
            consumer_epoch: epoch,
            // Each entry of a read goes to one consumer.
            client_bytes: std::mem::take(&mut entry.client_bytes),
        });
    }
    consumer.entries += deliveries.len() as u64;
    consumer.outward.add(messages, bytes, now);
    consumer.seen.consumed = wall;
    if redelivered > 0 {
        consumer.redelivered.add(redelivered, 0, now);
        subscription.redelivered.add(redelivered, 0, now);
    }
    consumer.sink.deliver(deliveries);
    let has_room = consumer.sink.has_room();
    subscription.note_delivered(messages, bytes, now, wall);
    (has_room, messages, bytes)
}
