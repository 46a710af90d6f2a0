//! Joining a subscription, opening its cursor first if it is not open.

use std::sync::Arc;
use std::time::Duration;

use super::command::{ConsumerAddress, SubscribeRequest};
use super::handle::{Consumer, ConsumerShared};
use super::job::Finished;
use super::task::TopicTask;
use crate::broker::cursor::Cursor;
use crate::broker::dispatch::{ConsumerKey, Event};
use crate::broker::managed_ledger::{ManagedLedger, ManagedLedgerError};
use crate::broker::messages::{InitialPosition, SubscribeOptions, SubscriptionType};
use crate::broker::service::BrokerError;
use crate::broker::subscription::{ConnectedConsumer, Subscription};
use crate::domain::WallTime;

/// Subscriptions of one topic; more are refused with `NotAllowed`.
const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Consumers of one topic for whom it is being proven that it is served here; more get `NotReady`.
const PROVING_MAX: usize = 10_000;
/// Consumers waiting for one cursor to open; more get `NotReady`.
const OPENING_MAX: usize = 1000;

impl TopicTask {
    /// A consumer of a stored subscription is let in once it is proven that the topic is still served here: what was
    /// acknowledged at another owner is not known here.
    pub(super) fn subscribe(&mut self, request: SubscribeRequest) {
        if let Err(error) = self.check_subscribe(&request.options) {
            let _ = request.reply.send(Err(error));
            return;
        }
        if !request.options.durable {
            self.join(request);
            return;
        }
        self.proving += 1;
        let ledger = self.ledger.clone();
        self.jobs.push(Box::pin(async move {
            let result = ledger.prove_owned().await;
            Finished::Proven { request, result }
        }));
    }

    pub(super) fn proven(
        &mut self,
        request: SubscribeRequest,
        result: Result<(), ManagedLedgerError>,
    ) {
        self.proving -= 1;
        // What was checked before may be otherwise by now.
        let allowed = result.map_err(BrokerError::from);
        match allowed.and_then(|()| self.check_subscribe(&request.options)) {
            Ok(()) => self.join(request),
            Err(error) => drop(request.reply.send(Err(error))),
        }
    }

    fn join(&mut self, request: SubscribeRequest) {
        let name = request.options.subscription.clone();
        if self.subscriptions.contains_key(name.as_str()) {
            self.admit(request);
            return;
        }
        if let Some(waiting) = self.opening.get_mut(&name) {
            waiting.push(request);
            return;
        }
        let options = &request.options;
        let ledger = self.ledger.clone();
        let since = Duration::from_secs(options.rollback_seconds);
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let rollback = (since > 0).then(|| WallTime(self.wall.0.saturating_sub(since)));
        let (initial, durable) = (options.initial_position, options.durable);
        let properties = options.subscription_properties.clone();
        let cursor_name = name.clone();
        self.jobs.push(Box::pin(async move {
            let result =
                open_cursor(&ledger, &cursor_name, initial, rollback, durable, properties).await;
            Finished::CursorOpened { name: cursor_name, result }
        }));
        self.opening.insert(name, vec![request]);
    }

    fn check_subscribe(&self, options: &SubscribeOptions) -> Result<(), BrokerError> {
        if self.closing.is_some() {
            return Err(BrokerError::NotReady("the topic is closing".to_owned()));
        }
        let name_bytes_max = self.config.name_bytes_max;
        let name = &options.subscription;
        if name.is_empty() || name.len() > name_bytes_max {
            let rule = format!("a subscription's name has 1 to {name_bytes_max} bytes");
            return Err(BrokerError::Invalid(rule));
        }
        if options.consumer_name.len() > name_bytes_max {
            let rule = format!("a consumer's name has up to {name_bytes_max} bytes");
            return Err(BrokerError::Invalid(rule));
        }
        if options.subscription_type == SubscriptionType::KeyShared {
            return Err(BrokerError::NotAllowed("Key_Shared comes later".to_owned()));
        }
        let known = self.subscriptions.contains_key(name.as_str());
        if !known && self.subscriptions.len() + self.opening.len() >= SUBSCRIPTIONS_MAX {
            let rule = format!("a topic has up to {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(BrokerError::NotAllowed(rule));
        }
        if self.proving >= PROVING_MAX {
            return Err(BrokerError::NotReady("too many consumers are joining".to_owned()));
        }
        if self.opening.get(name).is_some_and(|waiting| waiting.len() >= OPENING_MAX) {
            return Err(BrokerError::NotReady("the subscription is opening".to_owned()));
        }
        Ok(())
    }

    pub(super) fn cursor_opened(&mut self, name: &str, result: Result<Cursor, ManagedLedgerError>) {
        // Without waiters the topic is closing.
        let Some(waiting) = self.opening.remove(name) else { return };
        let cursor = match result {
            Ok(cursor) => cursor,
            Err(error) => {
                for request in waiting {
                    let _ = request.reply.send(Err(error.clone().into()));
                }
                return;
            }
        };
        let Some(first) = waiting.first() else { return };
        let name: Arc<str> = name.into();
        let subscription = Subscription::new(
            Arc::clone(&name),
            self.take_number(),
            first.options.subscription_type,
            cursor,
            self.ledger.last_confirmed(),
            self.config.unacked_per_consumer_max,
            self.now,
        );
        self.subscriptions.insert(name, subscription);
        for request in waiting {
            self.admit(request);
        }
    }

    pub(super) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Lets a consumer into a subscription that is open, or tells it why not.
    fn admit(&mut self, request: SubscribeRequest) {
        let SubscribeRequest { options, sink, reply } = request;
        let key = ConsumerKey(self.take_number());
        let Some(subscription) = self.subscriptions.get_mut(options.subscription.as_str()) else {
            return;
        };
        if let Err(error) = subscription.check_admission(&options) {
            let _ = reply.send(Err(error));
            return;
        }
        let name = Arc::clone(&subscription.name);
        let first_unacked = subscription.first_unacked();
        if subscription.machine.kind() != options.subscription_type {
            subscription.machine.change_kind(options.subscription_type);
            self.drive(&name, Event::Reset { next: first_unacked });
        }
        let Some(subscription) = self.subscriptions.get_mut(&name) else { return };
        let (priority, epoch) = (options.priority_level, options.consumer_epoch);
        let consumer = ConnectedConsumer::new(options, sink, self.now);
        let permits = Arc::clone(&consumer.permits);
        tracing::debug!(
            topic = %self.shared.name, subscription = %name, consumer = key.0, id = consumer.options.consumer_id,
            address = consumer.options.connection.address, "consumer joined"
        );
        subscription.consumers.insert(key, consumer);
        subscription.expires_at = None;
        let address = ConsumerAddress { subscription: Arc::clone(&name), key };
        let topic = Arc::clone(&self.shared);
        let handle = Consumer { inner: Arc::new(ConsumerShared { address, topic, permits }) };
        // If the caller is gone, dropping its handle closes the consumer again.
        let _ = reply.send(Ok(handle));
        self.drive(&name, Event::Joined { consumer: key, priority, epoch, first_unacked });
    }
}

async fn open_cursor(
    ledger: &ManagedLedger,
    name: &str,
    initial: InitialPosition,
    rollback: Option<WallTime>,
    durable: bool,
    properties: Vec<(String, String)>,
) -> Result<Cursor, ManagedLedgerError> {
    let initial = match rollback {
        None => initial,
        Some(time) => match ledger.last_before(time).await? {
            Some(last) => InitialPosition::At(ledger.next_position(last)),
            None => InitialPosition::Earliest,
        },
    };
    if durable {
        ledger.open_cursor(name, initial, properties).await
    } else {
        Ok(ledger.open_transient_cursor(name, initial))
    }
}
