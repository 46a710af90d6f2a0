//! One subscription of a topic: its cursor, its dispatch and its connected consumers; who may join.

mod consumer;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cursor::{Cursor, EntryState};
use super::dispatch::{ConsumerKey, Machine, after};
use super::messages::{SubscribeOptions, SubscriptionType};
use super::meter::Meter;
use super::service::BrokerError;
use super::stats::SubscriptionStats;
use crate::domain::{Instant, Position, WallTime};

pub(super) use consumer::{ConnectedConsumer, Seen};

/// Consumers of one subscription; more are refused with `ConsumerBusy`.
const CONSUMERS_MAX: usize = 10_000;

/// A subscription that is open here.
pub(super) struct Subscription {
    /// Its name.
    pub(super) name: Arc<str>,
    /// Unique in the topic: tells it from an earlier one of the same name.
    pub(super) number: u64,
    pub(super) durable: bool,
    pub(super) cursor: Cursor,
    pub(super) machine: Machine,
    pub(super) consumers: BTreeMap<ConsumerKey, ConnectedConsumer>,
    /// Why nobody may join for the moment.
    pub(super) fenced: Option<&'static str>,
    /// When a failed read is tried again.
    pub(super) retry_at: Option<Instant>,
    /// A reader's subscription outlives a seek, which closes its consumer, until then.
    pub(super) expires_at: Option<Instant>,
    pub(super) outward: Meter,
    pub(super) redelivered: Meter,
    pub(super) acked: Meter,
    pub(super) seen: Seen,
}

impl Subscription {
    /// A subscription without consumers over an open cursor.
    pub(super) fn new(
        name: Arc<str>,
        number: u64,
        kind: SubscriptionType,
        cursor: Cursor,
        end: Position,
        unacked_max: u32,
        now: Instant,
    ) -> Self {
        let machine = Machine::new(kind, after(cursor.mark_delete()), end, unacked_max);
        Self {
            name,
            number,
            durable: cursor.is_durable(),
            cursor,
            machine,
            consumers: BTreeMap::new(),
            fenced: None,
            retry_at: None,
            expires_at: None,
            outward: Meter::new(now),
            redelivered: Meter::new(now),
            acked: Meter::new(now),
            seen: Seen::default(),
        }
    }

    /// The first entry that may need delivery.
    pub(super) fn first_unacked(&self) -> Position {
        after(self.cursor.mark_delete())
    }

    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.machine.kind(), SubscriptionType::Shared | SubscriptionType::KeyShared)
    }

    /// Messages of an entry of `message_count` that are not acknowledged.
    pub(super) fn remaining(state: &EntryState, message_count: u32) -> u32 {
        match state {
            EntryState::Unacknowledged => message_count,
            EntryState::Acknowledged => 0,
            EntryState::Partly(words) => {
                let open: u32 = words.iter().map(|word| word.count_ones()).sum();
                open.min(message_count)
            }
        }
    }

    /// Fails if a consumer with these options may not join.
    pub(super) fn check_admission(&self, options: &SubscribeOptions) -> Result<(), BrokerError> {
        if let Some(reason) = self.fenced {
            return Err(BrokerError::NotReady(format!("the subscription is {reason}")));
        }
        if options.durable != self.durable {
            let (is, asked) = if self.durable { ("", "non-") } else { ("non-", "") };
            return Err(BrokerError::NotAllowed(format!(
                "subscription {} is {is}durable, {asked}durable was asked for",
                self.name
            )));
        }
        if self.consumers.is_empty() {
            return Ok(());
        }
        let kind = self.machine.kind();
        if options.subscription_type != kind {
            return Err(BrokerError::ConsumerBusy(format!(
                "subscription {} has connected consumers of type {kind:?}",
                self.name
            )));
        }
        if kind == SubscriptionType::Exclusive {
            return Err(BrokerError::ConsumerBusy(format!(
                "subscription {} is exclusive and has a consumer",
                self.name
            )));
        }
        if self.consumers.len() >= CONSUMERS_MAX {
            return Err(BrokerError::ConsumerBusy(format!(
                "subscription {} has {CONSUMERS_MAX} consumers",
                self.name
            )));
        }
        Ok(())
    }

    /// Its figures.
    pub(super) fn stats(&self, now: Instant) -> SubscriptionStats {
        let consumers: Vec<_> =
            self.consumers.iter().map(|(key, one)| one.stats(*key, &self.machine, now)).collect();
        let active = self.machine.active().and_then(|key| self.consumers.get(&key));
        SubscriptionStats {
            name: self.name.to_string(),
            subscription_type: self.machine.kind(),
            is_durable: self.durable,
            outward: self.outward.flow(now),
            redeliver_rate: self.redelivered.flow(now).message_rate,
            ack_rate: self.acked.flow(now).message_rate,
            backlog_entries: self.cursor.backlog(),
            unacked_messages: consumers.iter().map(|one| one.unacked_messages).sum(),
            blocked_on_unacked: consumers.iter().any(|one| one.blocked_on_unacked),
            active_consumer: active.map(|one| one.options.consumer_name.clone()),
            mark_delete: self.cursor.mark_delete(),
            read_position: self.machine.read_position(),
            in_replay: self.machine.in_replay(),
            last_flow: self.seen.flow,
            last_consumed: self.seen.consumed,
            last_acked: self.seen.acked,
            idle_reason: match self.fenced {
                Some(reason) => format!("the subscription is {reason}"),
                None => self.machine.idle_reason().as_str().to_owned(),
            },
            properties: self.cursor.properties(),
            consumers,
        }
    }

    /// Notes a delivery.
    pub(super) fn note_delivered(
        &mut self,
        messages: u64,
        bytes: u64,
        now: Instant,
        wall: WallTime,
    ) {
        self.outward.add(messages, bytes, now);
        self.seen.consumed = wall;
    }
}
