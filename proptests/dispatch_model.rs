//! The dispatch machine against random events. It must never overdraw permits by more than one entry, never
//! give an entry that one consumer holds to another, never give out what is acknowledged, and once someone
//! reads on, deliver everything that is not.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use seawall::broker::SubscriptionType;
use seawall::broker::dispatch::{
    ConsumerKey, Effect, Event, Fact, IdleReason, Machine, ReadId, after,
};
use seawall::domain::{EntryId, LedgerId, Position};

const UNACKED_MAX: u32 = 12;
/// Entries a ledger of the model's log holds.
const LEDGER_ENTRIES: usize = 7;

#[derive(Clone, Debug)]
enum Step {
    Append { messages: u32 },
    Join { priority: i32 },
    Leave { who: usize },
    Flow { who: usize, permits: u32 },
    Room { who: usize, has_room: bool },
    Answer { which: usize },
    Fail { which: usize },
    Retry,
    Acknowledge { who: usize, which: usize },
    AcknowledgePart { who: usize, which: usize },
    RedeliverAll { who: usize },
    RedeliverSome { who: usize, which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4_usize;
    let which = 0..64_usize;
    prop_oneof![
        4 => (1..6_u32).prop_map(|messages| Step::Append { messages }),
        2 => (0..2_i32).prop_map(|priority| Step::Join { priority }),
        1 => who.clone().prop_map(|who| Step::Leave { who }),
        4 => (who.clone(), 1..12_u32).prop_map(|(who, permits)| Step::Flow { who, permits }),
        1 => (who.clone(), any::<bool>()).prop_map(|(who, has_room)| Step::Room { who, has_room }),
        6 => which.clone().prop_map(|which| Step::Answer { which }),
        1 => which.clone().prop_map(|which| Step::Fail { which }),
        1 => Just(Step::Retry),
        4 => (who.clone(), which.clone()).prop_map(|(who, which)| Step::Acknowledge { who, which }),
        2 => (who.clone(), which.clone())
            .prop_map(|(who, which)| Step::AcknowledgePart { who, which }),
        1 => who.clone().prop_map(|who| Step::RedeliverAll { who }),
        1 => (who, which).prop_map(|(who, which)| Step::RedeliverSome { who, which }),
    ]
}

#[derive(Debug, Default)]
struct Member {
    permits: i64,
    has_room: bool,
    active: bool,
    /// Entries given out and neither acknowledged nor taken back.
    holds: BTreeSet<Position>,
    /// The last entry given in order since the last rewind (Exclusive and Failover).
    last: Option<Position>,
}

struct World {
    kind: SubscriptionType,
    machine: Machine,
    /// Messages and open messages of each entry.
    log: BTreeMap<Position, (u32, u32)>,
    members: BTreeMap<ConsumerKey, Member>,
    /// Reads asked for and not answered, cancelled ones too: storage may answer them all.
    reads: Vec<(ReadId, Vec<Position>)>,
    cancelled: BTreeSet<ReadId>,
    delivered: BTreeSet<Position>,
    next_key: u64,
}

impl World {
    fn new(kind: SubscriptionType) -> Self {
        let start = place(0);
        let before = Position::new(LedgerId(1), EntryId::NONE);
        Self {
            kind,
            machine: Machine::new(kind, start, before, UNACKED_MAX),
            log: BTreeMap::new(),
            members: BTreeMap::new(),
            reads: Vec::new(),
            cancelled: BTreeSet::new(),
            delivered: BTreeSet::new(),
            next_key: 0,
        }
    }

    fn shared(&self) -> bool {
        self.kind == SubscriptionType::Shared
    }

    fn first_unacked(&self) -> Position {
        let first = self.log.iter().find(|(_, (_, open))| *open > 0).map(|(position, _)| *position);
        first.unwrap_or_else(|| place(self.log.len()))
    }

    fn member(&self, who: usize) -> Option<ConsumerKey> {
        let count = self.members.len();
        if count == 0 { None } else { self.members.keys().nth(who % count).copied() }
    }

    fn send(&mut self, event: Event) {
        for effect in self.machine.on(event) {
            self.perform(effect);
        }
        if self.machine.idle_reason() == IdleReason::Reading {
            let pending = self.machine.pending_read().expect("a read is pending when it says so");
            assert!(self.reads.iter().any(|(id, _)| *id == pending), "a read nobody performs");
            assert!(!self.cancelled.contains(&pending), "a cancelled read is waited for");
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Read { id, from, entries_max } => {
                let count = usize::try_from(entries_max).expect("small");
                assert!(count > 0);
                let found = self.log.range(from..).take(count).map(|(p, _)| *p).collect();
                self.reads.push((id, found));
            }
            Effect::ReadReplay { id, positions } => {
                assert!(self.shared() && !positions.is_empty());
                self.reads.push((id, positions));
            }
            Effect::CancelRead { id } => {
                self.cancelled.insert(id);
            }
            Effect::Deliver { consumer, entries, .. } => {
                for entry in entries {
                    self.deliver(consumer, entry.position);
                }
            }
            Effect::ActiveChanged { consumer, is_active } => {
                assert_eq!(self.kind, SubscriptionType::Failover);
                if let Some(member) = self.members.get_mut(&consumer) {
                    member.active = is_active;
                }
                assert!(self.members.values().filter(|member| member.active).count() <= 1);
            }
            Effect::RetryLater => {}
        }
    }

    fn deliver(&mut self, key: ConsumerKey, position: Position) {
        let (_, open) = self.log[&position];
        assert!(open > 0, "an acknowledged entry was given out");
        if self.shared() {
            for (holder, member) in &self.members {
                assert!(!member.holds.contains(&position), "{holder:?} holds {position} already");
            }
        }
        let held = self.held_messages(key);
        let shared = self.shared();
        let member = self.members.get_mut(&key).expect("a consumer that is connected");
        assert!(member.permits > 0, "permits overdrawn by more than one entry");
        assert!(member.has_room, "no room");
        if shared {
            assert!(held < u64::from(UNACKED_MAX), "too much unacknowledged");
        } else {
            assert!(member.last.is_none_or(|last| last < position), "out of order");
            member.last = Some(position);
        }
        if self.kind == SubscriptionType::Failover {
            assert!(member.active, "not the active consumer");
        }
        member.permits -= i64::from(open);
        member.holds.insert(position);
        self.delivered.insert(position);
    }

    fn held_messages(&self, key: ConsumerKey) -> u64 {
        self.members[&key].holds.iter().map(|position| u64::from(self.log[position].1)).sum()
    }

    /// Order begins anew for everyone.
    fn rewound(&mut self) {
        for member in self.members.values_mut() {
            member.last = None;
        }
    }

    fn join(&mut self, priority: i32) -> Option<ConsumerKey> {
        if self.kind == SubscriptionType::Exclusive && !self.members.is_empty() {
            return None;
        }
        let consumer = ConsumerKey(self.next_key);
        self.next_key += 1;
        self.members.insert(consumer, Member { has_room: true, ..Member::default() });
        let first_unacked = self.first_unacked();
        self.rewound();
        self.send(Event::Joined { consumer, priority, epoch: None, first_unacked });
        Some(consumer)
    }

    fn leave(&mut self, consumer: ConsumerKey) {
        self.members.remove(&consumer);
        let first_unacked = self.first_unacked();
        self.rewound();
        self.send(Event::Left { consumer, first_unacked });
    }

    fn answer(&mut self, which: usize) {
        if self.reads.is_empty() {
            return;
        }
        let (id, positions) = self.reads.remove(which % self.reads.len());
        let fact =
            |position: &Position| Fact { position: *position, remaining: self.log[position].1 };
        let entries = positions.iter().map(fact).collect();
        self.send(Event::ReadDone { id, entries, gone: Vec::new() });
    }

    fn acknowledge(&mut self, consumer: ConsumerKey, position: Position, part: bool) {
        let entry = self.log.get_mut(&position).expect("an entry of the log");
        entry.1 = if part { entry.1.min((entry.1 / 2).max(1)) } else { 0 };
        let open = entry.1;
        if open == 0 {
            for member in self.members.values_mut() {
                member.holds.remove(&position);
            }
        }
        if self.shared() {
            self.send(Event::Acked { consumer, entries: vec![(position, open)] });
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append { messages } => {
                let end = place(self.log.len());
                self.log.insert(end, (messages, messages));
                self.send(Event::NewData { end });
            }
            Step::Join { priority } => {
                if self.members.len() < 4 {
                    self.join(priority);
                }
            }
            Step::Leave { who } => {
                if let Some(consumer) = self.member(who) {
                    self.leave(consumer);
                }
            }
            Step::Flow { who, permits } => {
                if let Some(consumer) = self.member(who) {
                    self.members.get_mut(&consumer).expect("it").permits += i64::from(permits);
                    self.send(Event::Flow { consumer, permits });
                }
            }
            Step::Room { who, has_room } => {
                if let Some(consumer) = self.member(who) {
                    self.members.get_mut(&consumer).expect("it").has_room = has_room;
                    self.send(Event::Room { consumer, has_room });
                }
            }
            Step::Answer { which } => self.answer(which),
            Step::Fail { which } => {
                if !self.reads.is_empty() {
                    let (id, _) = self.reads.remove(which % self.reads.len());
                    self.send(Event::ReadFailed { id });
                }
            }
            Step::Retry => self.send(Event::Retry),
            Step::Acknowledge { who, which } | Step::AcknowledgePart { who, which } => {
                let part = matches!(step, Step::AcknowledgePart { .. });
                // What was ever delivered may be acknowledged, by anyone.
                let position =
                    self.delivered.iter().nth(which % self.delivered.len().max(1)).copied();
                if let (Some(consumer), Some(position)) = (self.member(who), position) {
                    self.acknowledge(consumer, position, part);
                }
            }
            Step::RedeliverAll { who } => {
                if let Some(consumer) = self.member(who) {
                    self.redeliver(consumer, None);
                }
            }
            Step::RedeliverSome { who, which } => {
                if let Some(consumer) = self.member(who) {
                    let positions: Vec<_> =
                        self.delivered.iter().skip(which % 8).step_by(3).copied().collect();
                    self.redeliver(consumer, Some(positions));
                }
            }
        }
    }

    fn redeliver(&mut self, consumer: ConsumerKey, positions: Option<Vec<Position>>) {
        let first_unacked = self.first_unacked();
        let member = self.members.get_mut(&consumer).expect("it");
        match &positions {
            Some(positions) if self.kind == SubscriptionType::Shared => {
                member.holds.retain(|position| !positions.contains(position));
            }
            _ => member.holds.clear(),
        }
        self.rewound();
        self.send(Event::Redeliver { consumer, positions, epoch: None, first_unacked });
    }

    /// One consumer reads and acknowledges until nothing is left.
    fn drain(&mut self) {
        for consumer in self.members.keys().copied().collect::<Vec<_>>() {
            self.leave(consumer);
        }
        self.send(Event::Retry);
        let consumer = self.join(0).expect("alone");
        for _ in 0..10_000 {
            if self.log.values().all(|(_, open)| *open == 0) {
                return;
            }
            self.members.get_mut(&consumer).expect("it").permits += 3;
            self.send(Event::Flow { consumer, permits: 3 });
            while !self.reads.is_empty() {
                self.answer(0);
                let held: Vec<_> = self.members[&consumer].holds.iter().copied().collect();
                for position in held {
                    self.acknowledge(consumer, position, false);
                }
            }
        }
        panic!("not everything was delivered; idle because {:?}", self.machine.idle_reason());
    }
}

/// The position of the n-th entry of the model's log, which rolls over now and then.
fn place(index: usize) -> Position {
    let ledger = LedgerId((index / LEDGER_ENTRIES) as u64 * 2 + 1);
    Position::new(ledger, EntryId((index % LEDGER_ENTRIES) as i64))
}

fn run(kind: SubscriptionType, steps: Vec<Step>) {
    let mut world = World::new(kind);
    for step in steps {
        world.step(step);
    }
    world.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn shared_delivers_everything_once_at_a_time(steps in prop::collection::vec(step(), 1..150)) {
        run(SubscriptionType::Shared, steps);
    }

    #[test]
    fn exclusive_delivers_everything_in_order(steps in prop::collection::vec(step(), 1..150)) {
        run(SubscriptionType::Exclusive, steps);
    }

    #[test]
    fn failover_delivers_everything_to_one(steps in prop::collection::vec(step(), 1..150)) {
        run(SubscriptionType::Failover, steps);
    }
}

#[test]
fn the_place_after_a_ledgers_end_is_before_the_next_ledger() {
    assert!(after(place(LEDGER_ENTRIES - 1)) < place(LEDGER_ENTRIES));
}
