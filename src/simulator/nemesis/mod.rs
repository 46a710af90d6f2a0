//! Injects the plan's faults, one strike at a time but overlapping, and heals them. When a strike comes and what it does
//! is a pure function of the seed and of its number, so that one that is left out changes no other; every fault goes
//! on the decision tape.
//!
//! Bounds: nothing is done that the promises exclude. Bits rot, in entry logs, and disks are lost on one
//! chosen bookie only (with one copy there is nothing to read instead, so never where an ack quorum is one).

mod ambush;
mod estrange;
mod inject;
mod metadata_leader;
mod move_topics;
mod replace_member;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use ambush::Ambush;
use replace_member::Replacement;

use super::clock_fault::ClockFault;
use super::cluster::Cluster;
use super::noted::Noted;
use super::plan::{FaultKind, Plan};
use crate::invariant::states::{fault_begins, fault_ends};
use crate::runtime::sim::{ClockFace, Note, SimNode, World};

/// Draws of one strike, at most: far more than any needs.
const STRIKE_DRAWS_MAX: u64 = 1 << 16;

/// One time that the nemesis struck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    /// Counted from 1; the same in every run of the seed, whatever is left out.
    pub number: u64,
    /// Virtual milliseconds from the beginning of the run.
    pub at_ms: u64,
    /// What kind of fault; whether there was anything to hit is on the tape.
    pub kind: FaultKind,
}

/// A fault that lasts, and when it ends.
struct Lasting {
    until: Duration,
    kind: FaultKind,
    heal: Heal,
}

/// How a lasting fault ends.
enum Heal {
    Resume(SimNode),
    Links(SimNode, SimNode),
    Everywhere,
    Disk(SimNode),
    Clock(SimNode),
    /// By itself: a node that is down is started again by its supervisor.
    Nothing,
}

/// The nemesis of one run.
pub struct Nemesis {
    world: World,
    /// Machines of clients: they can be cut off, but are never killed.
    clients: Vec<SimNode>,
    kinds: Vec<FaultKind>,
    interval: Duration,
    /// The one way in which clocks are wrong, if not all of them come.
    clock: Option<ClockFault>,
    /// When the next strike is due.
    next: Duration,
    /// Strikes so far, those left out included.
    number: u64,
    /// Draws of this strike so far.
    drawn: u64,
    /// The only strikes that happen, if not all do.
    kept: Option<BTreeSet<u64>>,
    struck: Vec<Strike>,
    /// The record of the last of them, if the run is recorded.
    strike_record: u32,
    lasting: Vec<Lasting>,
    /// By node, what strikes it at the occasion its machine waits for.
    ambushes: BTreeMap<usize, Ambush>,
    /// The one bookie whose bits may rot and whose disk may be lost.
    rot_victim: Option<usize>,
    /// Its disk was lost.
    has_lost_disk: bool,
    /// The kind that strikes just now.
    striking: FaultKind,
    /// The one member of the metadata group that is being replaced.
    replacement: Option<Replacement>,
    /// Members that have joined so far; each has an id of its own.
    joined: u64,
}

impl Nemesis {
    /// The nemesis of a plan.
    pub fn new(world: &World, plan: &Plan, clients: Vec<SimNode>) -> Self {
        Self {
            world: world.clone(),
            clients,
            kinds: plan.faults.clone(),
            interval: plan.fault_interval,
            clock: plan.clock,
            next: world.now() + plan.fault_interval,
            number: 0,
            drawn: 0,
            kept: plan.strikes.clone(),
            struck: Vec::new(),
            strike_record: 0,
            lasting: Vec::new(),
            ambushes: BTreeMap::new(),
            rot_victim: plan.rot_victim(world),
            has_lost_disk: false,
            striking: FaultKind::Crash,
            replacement: None,
            joined: 0,
        }
    }

    /// Heals what is due and injects what is due.
    pub fn tick(&mut self, cluster: &mut Cluster) {
        let now = self.world.now();
        let (due, later): (Vec<Lasting>, Vec<Lasting>) =
            std::mem::take(&mut self.lasting).into_iter().partition(|lasting| lasting.until <= now);
        self.lasting = later;
        for lasting in due {
            fault_ends(lasting.kind as usize);
            self.heal(lasting.heal);
        }
        self.spring(cluster);
        self.operate(cluster);
        while now >= self.next && !self.kinds.is_empty() {
            self.strike(cluster);
        }
    }

    /// The next strike, unless it is left out.
    fn strike(&mut self, cluster: &mut Cluster) {
        self.number += 1;
        self.drawn = 0;
        let mean = u64::try_from(self.interval.as_millis()).unwrap_or(1000);
        // From when it was due, not from when it came: that depends on what else happened.
        let pause = Duration::from_millis(self.below(2 * mean) + 1);
        self.next += pause;
        let chosen = self.below(self.kinds.len() as u64) as usize;
        let (number, kind) = (self.number, self.kinds[chosen]);
        if self.kept.as_ref().is_some_and(|kept| !kept.contains(&number)) {
            return;
        }
        let at_ms = u64::try_from(self.world.now().as_millis()).unwrap_or(u64::MAX);
        self.struck.push(Strike { number, at_ms, kind });
        self.striking = kind;
        let record = self
            .world
            .recorder()
            .note(|| Note::from(Noted::Strike).facts([number as i64, 0, 0]).text(kind.as_str()));
        self.strike_record = record;
        let recorder = self.world.recorder().clone();
        // What it meets now, and again whatever begins while it lasts.
        fault_begins(kind as usize);
        recorder.owing(record, || self.inject(kind, cluster));
        fault_ends(kind as usize);
    }

    /// Every strike so far.
    pub fn struck(&self) -> &[Strike] {
        &self.struck
    }

    /// Ends every fault: all nodes may run, all links carry, all disks and clocks are sound.
    pub fn heal_everything(&mut self, cluster: &mut Cluster) {
        for lasting in self.lasting.drain(..) {
            fault_ends(lasting.kind as usize);
        }
        self.ambushes.clear();
        self.world.heal_all();
        let machines: Vec<SimNode> = self.world.nodes();
        for one in &machines {
            one.leave_ambush();
            one.resume();
            one.release_disk();
            one.heal_disk();
            one.freeze_clock(ClockFace::Monotonic, false);
            one.set_clock_drift(ClockFace::Monotonic, 0);
            one.correct_wall_clock();
            for other in &machines {
                if one.id() < other.id() {
                    self.mend_links(one, other);
                }
            }
        }
        for index in 0..cluster.nodes.len() {
            cluster.keep_down(index, self.world.now());
        }
    }

    fn mend_links(&self, one: &SimNode, other: &SimNode) {
        self.world.heal(one, other);
        self.world.release_streams(one, other);
        self.world.set_link(one, other, None);
        self.world.set_link(other, one, None);
    }

    fn heal(&self, heal: Heal) {
        match heal {
            Heal::Resume(node) => node.resume(),
            Heal::Links(one, other) => self.mend_links(&one, &other),
            Heal::Everywhere => self.world.heal_all(),
            Heal::Disk(node) => {
                node.release_disk();
                node.heal_disk();
            }
            Heal::Nothing => {}
            Heal::Clock(node) => {
                node.freeze_clock(ClockFace::Monotonic, false);
                node.freeze_clock(ClockFace::Wall, false);
                node.set_clock_drift(ClockFace::Monotonic, 0);
            }
        }
    }

    /// A value below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        crate::invariant!(self.drawn < STRIKE_DRAWS_MAX, "a strike draws for ever");
        let index = self.number * STRIKE_DRAWS_MAX + self.drawn;
        self.world.random("nemesis", index) % bound.max(1)
    }

    fn between(&mut self, low_ms: u64, high_ms: u64) -> Duration {
        Duration::from_millis(low_ms + self.below(high_ms - low_ms + 1))
    }

    fn lasts(&mut self, low_ms: u64, high_ms: u64, heal: Heal) {
        let until = self.world.now() + self.between(low_ms, high_ms);
        self.last_until(until, self.striking, heal);
    }

    fn last_until(&mut self, until: Duration, kind: FaultKind, heal: Heal) {
        fault_begins(kind as usize);
        self.lasting.push(Lasting { until, kind, heal });
    }

    /// Leaves a node that is down until then.
    fn keep_down(&mut self, index: usize, down: Duration, kind: FaultKind, cluster: &mut Cluster) {
        let until = self.world.now() + down;
        cluster.keep_down(index, until);
        self.last_until(until, kind, Heal::Nothing);
    }
}
