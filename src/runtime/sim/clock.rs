//! A node's two clocks, apart from each other and from virtual time, and the timers that hang on them.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use futures_util::future::BoxFuture;

use super::agenda::{Action, schedule};
use super::lock;
use super::node::NodeState;
use super::recorder::{Happening, Note};
use super::world::Shared;
use crate::domain::{Instant, WallTime};
use crate::runtime::ClockSource;

/// Which clock of a node a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockFace {
    /// Durations and timers.
    Monotonic,
    /// Time of day.
    Wall,
}

/// Parts per million.
const WHOLE: u64 = 1_000_000;

/// A clock that runs at a rate of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    base: u64,
    anchor: u64,
    drift_ppm: i64,
    frozen: bool,
}

impl Face {
    pub(super) fn new(base: u64, now: u64) -> Self {
        Self { base, anchor: now, drift_ppm: 0, frozen: false }
    }

    fn rate(&self) -> u64 {
        WHOLE.saturating_add_signed(self.drift_ppm).max(1)
    }

    pub(super) fn read(&self, now: u64) -> u64 {
        if self.frozen {
            return self.base;
        }
        let (passed, rate) = (now - self.anchor, self.rate());
        if rate == WHOLE {
            // Nearly every clock: a division of 128 bits costs more than all the rest.
            return self.base + passed;
        }
        self.base + (u128::from(passed) * u128::from(rate) / u128::from(WHOLE)) as u64
    }

    /// The virtual time at which it will read `reading`; `None` if it stands still.
    fn when(&self, reading: u64, now: u64) -> Option<u64> {
        if self.frozen {
            return None;
        }
        let (missing, rate) = (reading.saturating_sub(self.base), self.rate());
        let virtual_nanos = if rate == WHOLE {
            missing
        } else {
            let nanos = (u128::from(missing) * u128::from(WHOLE)).div_ceil(u128::from(rate));
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        Some(now.max(self.anchor.saturating_add(virtual_nanos)))
    }

    pub(super) fn change(&mut self, now: u64, drift_ppm: Option<i64>, frozen: Option<bool>) {
        self.base = self.read(now);
        self.anchor = now;
        self.drift_ppm = drift_ppm.unwrap_or(self.drift_ppm);
        self.frozen = frozen.unwrap_or(self.frozen);
    }

    pub(super) fn step(&mut self, now: u64, nanos: i64) {
        self.base = self.read(now).saturating_add_signed(nanos);
        self.anchor = now;
    }
}

/// Both faces and the timers.
pub(super) struct ClockState {
    pub(super) monotonic: Face,
    pub(super) wall: Face,
    sleepers: BTreeMap<(u64, u64), Option<Waker>>,
    next_sleeper: u64,
    armed: Option<u64>,
}

impl ClockState {
    pub(super) fn new(origin: u64, wall: u64, now: u64) -> Self {
        Self {
            monotonic: Face::new(origin, now),
            wall: Face::new(wall, now),
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            armed: None,
        }
    }

    /// A new start: another origin, no timers; drift and wall time stay.
    pub(super) fn restart(&mut self, origin: u64, now: u64) {
        let drift = self.monotonic.drift_ppm;
        let frozen = self.monotonic.frozen;
        self.monotonic = Face::new(origin, now);
        self.monotonic.change(now, Some(drift), Some(frozen));
        self.sleepers.clear();
        self.armed = None;
    }

    /// When to look at the timers, if that is sooner than already planned.
    fn plan(&mut self, now: u64) -> Option<u64> {
        let (reading, _) = *self.sleepers.first_key_value()?.0;
        let at = self.monotonic.when(reading, now)?;
        if self.armed.is_some_and(|armed| armed > now && armed <= at) {
            return None;
        }
        self.armed = Some(at);
        Some(at)
    }
}

impl NodeState {
    /// Re-plans the timers after a clock changed.
    pub(super) fn replan_timers(&self, shared: &Shared) {
        let now = shared.now();
        let plan = {
            let mut clock = lock(&self.clock);
            clock.armed = None;
            clock.plan(now)
        };
        if let Some(at) = plan {
            schedule(shared, at, Action::NodeTimer { node: self.id });
        }
    }

    /// Wakes the tasks whose deadline the node's clock has reached; returns how many.
    pub(super) fn fire_timers(&self, shared: &Shared) -> u64 {
        let now = shared.now();
        let mut due = Vec::new();
        let plan = {
            let mut clock = lock(&self.clock);
            if clock.armed.is_some_and(|armed| armed <= now) {
                clock.armed = None;
            }
            let reading = clock.monotonic.read(now);
            while let Some(first) = clock.sleepers.first_entry()
                && first.key().0 <= reading
            {
                due.extend(first.remove());
            }
            clock.plan(now)
        };
        if let Some(at) = plan {
            schedule(shared, at, Action::NodeTimer { node: self.id });
        }
        let fired = due.len() as u64;
        if fired > 0 {
            let note = || Note::from(Happening::Timer).on(self.id).because(0);
            shared.recorder().note(|| note().facts([fired as i64, 0, 0]));
        }
        for waker in due {
            waker.wake();
        }
        fired
    }
}

/// The clocks as one start of the node sees them.
pub(super) struct SimClock {
    pub(super) shared: Arc<Shared>,
    pub(super) node: Arc<NodeState>,
}

struct Registration {
    node: Arc<NodeState>,
    key: Option<(u64, u64)>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let removed = lock(&self.node.clock).sleepers.remove(&key);
            drop(removed);
        }
    }
}

impl ClockSource for SimClock {
    fn monotonic(&self) -> Instant {
        Instant(lock(&self.node.clock).monotonic.read(self.shared.now()))
    }

    fn wall(&self) -> WallTime {
        WallTime(lock(&self.node.clock).wall.read(self.shared.now()) / 1_000_000)
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        let mut registration = Registration { node: Arc::clone(&self.node), key: None };
        Box::pin(poll_fn(move |context| {
            let now = shared.now();
            let plan = {
                let mut guard = lock(&registration.node.clock);
                let clock = &mut *guard;
                if clock.monotonic.read(now) >= deadline.0 {
                    return Poll::Ready(());
                }
                let key = *registration.key.get_or_insert_with(|| {
                    clock.next_sleeper += 1;
                    (deadline.0, clock.next_sleeper)
                });
                let known = clock.sleepers.entry(key).or_default();
                if known.as_ref().is_none_or(|waker| !waker.will_wake(context.waker())) {
                    *known = Some(context.waker().clone());
                }
                clock.plan(now)
            };
            if let Some(at) = plan {
                schedule(&shared, at, Action::NodeTimer { node: registration.node.id });
            }
            Poll::Pending
        }))
    }
}
