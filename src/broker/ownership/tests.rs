//! Three brokers, one record, every order of answers that a seed draws: what must hold of ownership whatever
//! happens, and that it comes to something.

use std::collections::{BTreeMap, BTreeSet};

use super::bundle::Bundle;
use super::machine::{Answer, ClaimError, Effect, Event, Looked, Machine};
use super::record::{BrokerInstance, OwnershipRecord};
use crate::domain::NamespaceName;
use crate::metadata::{Expect, Revision};
use crate::runtime::mix;

/// Steps of one run.
const STEPS: u64 = 400;
/// Runs.
const SEEDS: u64 = 300;

/// The store, the brokers and everything under way between them.
struct World {
    bundle: Bundle,
    machines: Vec<Machine>,
    alive: Vec<bool>,
    record: Option<(OwnershipRecord, u64)>,
    revision: u64,
    /// Answers on their way, each to a broker.
    answers: Vec<(usize, Event)>,
    /// Changes each watch has not told yet, in order.
    watched: Vec<Vec<Event>>,
    /// Topics open at each broker under this epoch.
    open: Vec<Option<u64>>,
    /// Who claimed each epoch.
    claimed: BTreeMap<u64, usize>,
    answered: BTreeSet<u64>,
    tokens: u64,
    random: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let namespace = NamespaceName::parse("public/default").unwrap();
        Self {
            bundle: Bundle::all(&namespace, 1).remove(0),
            machines: (1..=3).map(|number| Machine::new(BrokerInstance(number))).collect(),
            alive: vec![true; 3],
            record: None,
            revision: 0,
            answers: Vec::new(),
            watched: vec![Vec::new(); 3],
            open: vec![None; 3],
            claimed: BTreeMap::new(),
            answered: BTreeSet::new(),
            tokens: 0,
            random: mix(seed),
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = mix(self.random);
        self.random % bound
    }

    fn give(&mut self, broker: usize, event: Event) {
        for effect in self.machines[broker].on(event) {
            self.perform(broker, effect);
        }
    }

    fn put(&mut self, record: OwnershipRecord, expect: Expect) -> Result<Revision, ClaimError> {
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => self.record.is_none(),
            Expect::Version(version) => {
                self.record.as_ref().is_some_and(|(_, found)| *found == version.0)
            }
        };
        if !holds {
            return Err(ClaimError::Conflict);
        }
        self.revision += 1;
        self.record = Some((record.clone(), self.revision));
        let version = Revision(self.revision);
        for watch in &mut self.watched {
            watch.push(Event::Seen(self.bundle.clone(), version, Some(record.clone())));
        }
        Ok(version)
    }

    fn perform(&mut self, broker: usize, effect: Effect) {
        let bundle = self.bundle.clone();
        match effect {
            Effect::Look(_, attempt) => {
                let found = self.record.clone().map(|(record, v)| (record, Revision(v)));
                let owner = found.as_ref().and_then(|(record, _)| record.owner);
                let owner_lives = owner.is_some_and(|owner| self.alive[owner.0 as usize - 1]);
                let looked = Ok(Looked { found, owner_lives });
                self.answers.push((broker, Event::Looked(bundle, attempt, looked)));
            }
            Effect::Claim(_, attempt, record, expect) => {
                let epoch = record.epoch;
                let mut result = self.put(record, expect);
                if result.is_ok() {
                    let before = self.claimed.insert(epoch, broker);
                    assert_eq!(before, None, "epoch {epoch} was claimed twice");
                    if self.below(8) == 0 {
                        result = Err(ClaimError::Unknown("the answer was lost".to_owned()));
                    }
                }
                self.answers.push((broker, Event::Claimed(bundle, attempt, result)));
            }
            Effect::Open(_, epoch) => {
                assert_eq!(self.open[broker], None, "opened twice");
                assert_eq!(self.claimed.get(&epoch), Some(&broker), "opened without a claim");
                self.open[broker] = Some(epoch);
            }
            Effect::Close(_, attempt) => {
                self.answers.push((broker, Event::Closed(bundle, attempt)));
            }
            Effect::Release(_, attempt, record, expect) => {
                assert_eq!(self.open[broker], None, "released before its topics were closed");
                // Lost or refused, the machine goes on.
                let _ = self.put(record, expect);
                self.answers.push((broker, Event::Released(bundle, attempt)));
            }
            Effect::Answer(token, answer) => {
                assert!(self.answered.insert(token), "answered twice");
                if answer == Answer::Here {
                    assert!(self.open[broker].is_some(), "told to be here and is not");
                }
            }
        }
    }

    fn deliver(&mut self, number: usize) {
        let (broker, event) = self.answers.swap_remove(number);
        if matches!(event, Event::Closed(..)) {
            self.open[broker] = None;
        }
        self.give(broker, event);
    }

    fn step(&mut self) {
        let broker = self.below(3) as usize;
        let bundle = self.bundle.clone();
        match self.below(10) {
            0 | 1 => {
                self.tokens += 1;
                let token = self.tokens;
                self.give(broker, Event::Acquire(bundle, token));
            }
            2 => {
                self.tokens += 1;
                let token = self.tokens;
                self.give(broker, Event::Release(bundle, token));
            }
            3 if self.below(3) == 0 => self.alive[broker] = !self.alive[broker],
            4 | 5 if !self.watched[broker].is_empty() => {
                let event = self.watched[broker].remove(0);
                self.give(broker, event);
            }
            _ if !self.answers.is_empty() => {
                let number = self.below(self.answers.len() as u64) as usize;
                self.deliver(number);
            }
            _ => {}
        }
    }

    /// Everything under way arrives.
    fn settle(&mut self) {
        loop {
            if !self.answers.is_empty() {
                self.deliver(0);
            } else if let Some(broker) = (0..3).find(|broker| !self.watched[*broker].is_empty()) {
                let event = self.watched[broker].remove(0);
                self.give(broker, event);
            } else {
                return;
            }
        }
    }
}

#[test]
fn owners_never_share_an_epoch_and_deposed_ones_close() {
    let mut takeovers = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.settle();
        assert_eq!(world.answered.len() as u64, world.tokens, "seed {seed}: all are answered");
        let open: Vec<_> = (0..3).filter(|broker| world.open[*broker].is_some()).collect();
        assert!(open.len() <= 1, "seed {seed}: {open:?} serve at once, with all news told");
        if let [only] = open[..] {
            let (record, _) = world.record.clone().expect("a record");
            assert_eq!(record.owner, Some(BrokerInstance(only as u64 + 1)), "seed {seed}");
            assert_eq!(Some(record.epoch), world.open[only], "seed {seed}");
        }
        // Whoever is asked once all is quiet is the owner, or says who is.
        world.alive = vec![true; 3];
        world.tokens += 1;
        world.give(1, Event::Acquire(world.bundle.clone(), world.tokens));
        world.settle();
        assert!(world.open.iter().any(Option::is_some) || world.record.is_some(), "seed {seed}");
        takeovers += world.claimed.len();
    }
    assert!(takeovers > 3 * SEEDS as usize, "only {takeovers} claims: nothing was compared");
}

#[test]
fn a_stop_hands_over_what_is_held_and_what_is_being_taken() {
    for order in 0..2 {
        let mut world = World::new(order);
        world.give(0, Event::Acquire(world.bundle.clone(), 1));
        if order == 0 {
            world.settle();
            assert!(world.open[0].is_some());
        }
        world.give(0, Event::Stop(2));
        assert!(!world.answered.contains(&2), "not before everything is given up");
        world.settle();
        assert!(world.answered.contains(&1) && world.answered.contains(&2));
        let (record, _) = world.record.clone().expect("a record");
        assert_eq!((record.owner, record.epoch), (None, 1));
        world.give(1, Event::Acquire(world.bundle.clone(), 3));
        world.settle();
        assert_eq!(world.open, [None, Some(2), None]);
    }
}
