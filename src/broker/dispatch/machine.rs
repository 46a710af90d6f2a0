//! Dispatch of one subscription: events in, effects out. Owns the read position, the replay set, the
//! permits and the entries given out.
//!
//! Rules that hold after every event:
//! - at most one read is pending; it has an id, and only the completion with that id counts;
//! - an entry is at one place: before the read position and acknowledged, given out to one consumer, or in
//!   the replay set; or else at or after the read position;
//! - something to deliver, an available consumer and no pause mean that a read is pending.

use std::collections::{BTreeMap, BTreeSet};

use super::average::MessagesPerEntry;
use super::consumers::{ConsumerKey, DispatchConsumer};
use super::event::{Assigned, Effect, Event, Fact, ReadId};
use crate::broker::messages::SubscriptionType;
use crate::domain::Position;
use crate::{invariant, mutant, reached};

/// Entries asked for in one read at most. With the byte limit of the driver this bounds a turn.
pub const READ_ENTRIES_MAX: u64 = 4096;
/// Entries one consumer of a Shared subscription is given in a row while others wait.
const ROUND_ENTRIES_MAX: u32 = 20;

/// The place right after an entry. The log skips from there to the next ledger if need be.
pub const fn after(position: Position) -> Position {
    Position::new(position.ledger, position.entry.next())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRead {
    pub(super) id: ReadId,
    pub(super) replay: bool,
    /// The log's end when it was asked for.
    pub(super) end: Position,
}

/// Dispatch of one subscription.
#[derive(Debug)]
pub struct Machine {
    pub(super) kind: SubscriptionType,
    pub(super) unacked_max: u32,
    pub(super) consumers: BTreeMap<ConsumerKey, DispatchConsumer>,
    /// Exclusive and Failover: who is served.
    pub(super) active: Option<ConsumerKey>,
    /// Shared: who was served last and how many more in a row.
    pub(super) turn: Option<(ConsumerKey, u32)>,
    /// Shared: entries in a row for each, in the read being given out.
    pub(super) round: u32,
    pub(super) read_position: Position,
    pub(super) end: Position,
    /// The log's end at the last read that found nothing: no use reading again before it grows.
    pub(super) drained_at: Option<Position>,
    pub(super) read: Option<PendingRead>,
    pub(super) next_read: u64,
    pub(super) paused: bool,
    pub(super) replay: BTreeSet<Position>,
    pub(super) redeliveries: BTreeMap<Position, u32>,
    pub(super) average: MessagesPerEntry,
}

impl Machine {
    /// Dispatch that begins at `next`, over a log that ends at `end`. `unacked_max` is the messages one
    /// consumer of a Shared subscription may hold before it is left out.
    pub fn new(kind: SubscriptionType, next: Position, end: Position, unacked_max: u32) -> Self {
        Self {
            kind,
            unacked_max: unacked_max.max(1),
            consumers: BTreeMap::new(),
            active: None,
            turn: None,
            round: 1,
            read_position: next,
            end,
            drained_at: None,
            read: None,
            next_read: 0,
            paused: false,
            replay: BTreeSet::new(),
            redeliveries: BTreeMap::new(),
            average: MessagesPerEntry::default(),
        }
    }

    /// Takes an event, answers what to do, in order.
    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::NewData { end } => self.end = self.end.max(end),
            Event::Flow { consumer, permits } => {
                if let Some(consumer) = self.consumers.get_mut(&consumer) {
                    consumer.add_permits(permits);
                }
            }
            Event::Room { consumer, has_room } => {
                if let Some(consumer) = self.consumers.get_mut(&consumer) {
                    consumer.has_room = has_room;
                }
                if self.permits() == 0 {
                    // Nobody could be given what a pending read finds.
                    self.cancel_read(&mut effects);
                }
            }
            Event::Acked { consumer, entries } => self.acked(consumer, &entries),
            Event::Redeliver { consumer, positions, epoch, first_unacked } => {
                self.redeliver(consumer, positions, epoch, first_unacked, &mut effects);
            }
            Event::Joined { consumer, priority, epoch, first_unacked } => {
                self.joined(consumer, priority, epoch, first_unacked, &mut effects);
            }
            Event::Left { consumer, first_unacked } => {
                self.left(consumer, first_unacked, &mut effects);
            }
            Event::ReadDone { id, entries, gone } => {
                self.read_done(id, &entries, &gone, &mut effects);
            }
            Event::ReadFailed { id } => {
                if self.take_read(id).is_some() {
                    self.paused = true;
                    effects.push(Effect::RetryLater);
                }
            }
            Event::Retry => self.paused = false,
            Event::Reset { next } => {
                invariant!(self.consumers.is_empty(), "a cursor is reset under its consumers");
                self.replay.clear();
                self.redeliveries.clear();
                self.rewind(next, &mut effects);
            }
        }
        self.arm(&mut effects);
        effects
    }

    pub(super) fn is_shared(&self) -> bool {
        matches!(self.kind, SubscriptionType::Shared | SubscriptionType::KeyShared)
    }

    fn acked(&mut self, consumer: ConsumerKey, entries: &[(Position, u32)]) {
        let unacked_max = self.unacked_max;
        for &(position, remaining) in entries {
            let held = self
                .consumers
                .get_mut(&consumer)
                .is_some_and(|acker| acker.settle(position, remaining, unacked_max));
            if !held {
                // Any consumer of the subscription may acknowledge what another one holds.
                for holder in self.consumers.values_mut() {
                    if holder.settle(position, remaining, unacked_max) {
                        reached!("dispatch: entry acknowledged by another consumer");
                        break;
                    }
                }
            }
            if mutant!("D13") {
                let kept = |holder: &mut DispatchConsumer| holder.unacked.split_off(&position);
                self.consumers.values_mut().for_each(|holder| holder.unacked = kept(holder));
            }
            if remaining == 0 {
                self.replay.remove(&position);
                self.redeliveries.remove(&position);
            }
        }
    }

    fn redeliver(
        &mut self,
        key: ConsumerKey,
        positions: Option<Vec<Position>>,
        epoch: Option<u64>,
        first_unacked: Position,
        effects: &mut Vec<Effect>,
    ) {
        let unacked_max = self.unacked_max;
        let shared = self.is_shared();
        let Some(consumer) = self.consumers.get_mut(&key) else { return };
        if epoch.is_some() && !mutant!("D8") {
            consumer.epoch = epoch;
        }
        if !shared {
            // Positions are ignored: order allows only going back to the first not acknowledged.
            if self.active == Some(key) {
                self.rewind(first_unacked, effects);
            }
            return;
        }
        let wanted = positions.unwrap_or_else(|| consumer.unacked.keys().copied().collect());
        for position in wanted {
            if consumer.settle(position, 0, unacked_max) {
                self.replay.insert(position);
                let count = self.redeliveries.entry(position).or_insert(0);
                *count = count.saturating_add(1);
            }
        }
    }

    fn joined(
        &mut self,
        key: ConsumerKey,
        priority: i32,
        epoch: Option<u64>,
        first_unacked: Position,
        effects: &mut Vec<Effect>,
    ) {
        self.consumers.insert(key, DispatchConsumer::new(priority, epoch));
        if self.is_shared() {
            return;
        }
        let changed = self.choose_active(first_unacked, effects);
        if !changed && self.kind == SubscriptionType::Failover {
            effects.push(Effect::ActiveChanged { consumer: key, is_active: false });
        }
    }

    fn left(&mut self, key: ConsumerKey, first_unacked: Position, effects: &mut Vec<Effect>) {
        let Some(consumer) = self.consumers.remove(&key) else { return };
        if self.is_shared() {
            if !mutant!("D-lost") {
                self.replay.extend(consumer.unacked.keys().copied());
            }
            if self.consumers.is_empty() {
                self.cancel_read(effects);
            }
            return;
        }
        if self.active == Some(key) {
            self.active = None;
            let held = mutant!("D10").then_some(self.read_position);
            self.rewind(held.unwrap_or(first_unacked), effects);
            self.choose_active(first_unacked, effects);
        }
    }

    /// Chooses by priority, then order of joining; true if another consumer became active.
    fn choose_active(&mut self, first_unacked: Position, effects: &mut Vec<Effect>) -> bool {
        let best = self
            .consumers
            .iter()
            .min_by_key(|(key, consumer)| (consumer.priority, **key))
            .map(|(key, _)| *key);
        if best == self.active {
            return false;
        }
        if self.active.is_some() {
            reached!("dispatch: active consumer ousted by a better one");
            self.rewind(first_unacked, effects);
        }
        self.active = best;
        if self.kind == SubscriptionType::Failover {
            effects.extend(self.consumers.keys().map(|key| Effect::ActiveChanged {
                consumer: *key,
                is_active: Some(*key) == best,
            }));
        }
        best.is_some()
    }

    fn rewind(&mut self, to: Position, effects: &mut Vec<Effect>) {
        self.cancel_read(effects);
        self.read_position = to;
        self.drained_at = None;
    }

    fn cancel_read(&mut self, effects: &mut Vec<Effect>) {
        if let Some(read) = self.read {
            reached!("dispatch: pending read cancelled");
            effects.push(Effect::CancelRead { id: read.id });
            if !mutant!("D1") {
                self.read = None;
            }
        }
    }

    /// The pending read if this is its answer.
    fn take_read(&mut self, id: ReadId) -> Option<PendingRead> {
        let read = self.read?;
        if read.id != id && !mutant!("D2") {
            reached!("dispatch: answer of a disowned read dropped");
            return None;
        }
        self.read.take()
    }

    fn read_done(
        &mut self,
        id: ReadId,
        entries: &[Fact],
        gone: &[Position],
        effects: &mut Vec<Effect>,
    ) {
        let Some(read) = self.take_read(id) else { return };
        for position in gone {
            self.replay.remove(position);
            self.redeliveries.remove(position);
        }
        if !read.replay && entries.is_empty() {
            self.drained_at = Some(read.end);
        }
        self.begin_rounds(entries.len());
        let mut given: BTreeMap<ConsumerKey, Vec<Assigned>> = BTreeMap::new();
        for (index, fact) in entries.iter().enumerate() {
            let wanted =
                fact.remaining > 0 && (!read.replay || self.replay.contains(&fact.position));
            if wanted {
                let Some(key) = self.next_consumer() else { break };
                given.entry(key).or_default().push(self.give(key, index, fact));
            }
            if read.replay {
                self.replay.remove(&fact.position);
            } else {
                self.read_position = after(fact.position);
            }
        }
        for (consumer, entries) in given {
            let epoch = self.consumers.get(&consumer).and_then(|consumer| consumer.epoch);
            effects.push(Effect::Deliver { consumer, epoch, entries });
        }
    }

    fn give(&mut self, key: ConsumerKey, index: usize, fact: &Fact) -> Assigned {
        let keep = self.is_shared();
        let unacked_max = self.unacked_max;
        self.average.add(fact.remaining);
        if let Some(consumer) = self.consumers.get_mut(&key) {
            let cost = if mutant!("D-permit") { 1 } else { i64::from(fact.remaining) };
            consumer.permits -= cost;
            if keep {
                consumer.hold(fact.position, fact.remaining, unacked_max);
            }
        }
        let redelivery_count = self.redeliveries.get(&fact.position).copied().unwrap_or(0);
        Assigned { index, position: fact.position, redelivery_count }
    }

    /// Every read begins with the next consumer, and few entries are spread over all: a trickle alternates.
    fn begin_rounds(&mut self, entries: usize) {
        let available = self.consumers.values().filter(|consumer| consumer.is_available()).count();
        let share = u32::try_from(entries.div_ceil(available.max(1))).unwrap_or(u32::MAX);
        self.round = share.clamp(1, ROUND_ENTRIES_MAX);
        if let Some((_, left)) = &mut self.turn {
            *left = 0;
        }
    }

    /// Who gets the next entry, if anyone may.
    fn next_consumer(&mut self) -> Option<ConsumerKey> {
        if !self.is_shared() {
            return self.active.filter(|key| self.consumers[key].is_available());
        }
        if let Some((key, left)) = self.turn
            && left > 0
            && self.consumers.get(&key).is_some_and(DispatchConsumer::is_available)
        {
            self.turn = Some((key, left - 1));
            return Some(key);
        }
        let last = self.turn.map(|(key, _)| key);
        let available = || self.consumers.iter().filter(|(_, consumer)| consumer.is_available());
        let priority = available().map(|(_, consumer)| consumer.priority).min()?;
        let mut level =
            available().filter(|(_, consumer)| consumer.priority == priority).map(|(key, _)| *key);
        let first = level.next()?;
        let next = std::iter::once(first)
            .chain(level)
            .find(|key| last.is_none_or(|last| *key > last))
            .unwrap_or(first);
        self.turn = Some((next, self.round - 1));
        Some(next)
    }

    /// Messages that may be given out now.
    fn permits(&self) -> u64 {
        let of = |consumer: &DispatchConsumer| {
            if consumer.is_available() { consumer.permits.unsigned_abs() } else { 0 }
        };
        if self.is_shared() {
            self.consumers.values().map(of).fold(0, u64::saturating_add)
        } else {
            self.active.and_then(|key| self.consumers.get(&key)).map_or(0, of)
        }
    }

    pub(super) fn has_new(&self) -> bool {
        self.read_position <= self.end && self.drained_at != Some(self.end)
    }

    /// Asks for a read if there is something to deliver and someone to deliver it to.
    fn arm(&mut self, effects: &mut Vec<Effect>) {
        if self.read.is_some() || self.paused {
            return;
        }
        let permits = self.permits();
        if permits == 0 || (self.replay.is_empty() && !self.has_new()) {
            return;
        }
        let entries_max = self.average.entries_for(permits).min(READ_ENTRIES_MAX);
        let id = ReadId(self.next_read);
        self.next_read += 1;
        let replay = !self.replay.is_empty();
        self.read = Some(PendingRead { id, replay, end: self.end });
        effects.push(if replay {
            let count = usize::try_from(entries_max).unwrap_or(usize::MAX);
            let positions = self.replay.iter().take(count).copied().collect();
            Effect::ReadReplay { id, positions }
        } else {
            Effect::Read { id, from: self.read_position, entries_max }
        });
    }

    /// Shares messages another way from now on; nobody may be connected. To be followed by `Reset`.
    pub fn change_kind(&mut self, kind: SubscriptionType) {
        invariant!(
            self.consumers.is_empty(),
            "a subscription changes its type under its consumers"
        );
        self.kind = kind;
        self.active = None;
        self.turn = None;
    }
}
