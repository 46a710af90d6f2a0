//! The registry behind `in_state!`: in which steps of its protocols this process is just now, and which kinds of fault met
//! which of them. Counts per process, since a simulated run is one process; without a nemesis nothing is ever met.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most kinds of fault that are told apart; others are not counted.
pub const FAULT_KINDS_MAX: usize = 64;

static ENTERED: Mutex<BTreeMap<&'static str, &'static State>> = Mutex::new(BTreeMap::new());

/// Faults of each kind that last just now.
static LASTING: [AtomicU64; FAULT_KINDS_MAX] = [const { AtomicU64::new(0) }; FAULT_KINDS_MAX];

/// One step of a protocol that lasts: a recovery, a change of ensemble.
#[derive(Debug)]
pub struct State {
    name: &'static str,
    inside: AtomicU64,
    entries: AtomicU64,
    met: [AtomicU64; FAULT_KINDS_MAX],
}

/// Somebody is in a state until this is dropped.
#[derive(Debug)]
pub struct Inside(&'static State);

impl State {
    /// A state nobody has been in yet.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            inside: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            met: [const { AtomicU64::new(0) }; FAULT_KINDS_MAX],
        }
    }

    /// Enters it. Every kind of fault that lasts has met it then.
    pub fn enter(&'static self) -> Inside {
        if self.entries.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut entered = ENTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            entered.insert(self.name, self);
        }
        self.inside.fetch_add(1, Ordering::Relaxed);
        for (lasting, met) in LASTING.iter().zip(&self.met) {
            if lasting.load(Ordering::Relaxed) > 0 {
                met.fetch_add(1, Ordering::Relaxed);
            }
        }
        Inside(self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A fault of this kind begins: it has met every state that somebody is in.
pub fn fault_begins(kind: usize) {
    let Some(lasting) = LASTING.get(kind) else { return };
    lasting.fetch_add(1, Ordering::Relaxed);
    let entered = ENTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for state in entered.values() {
        if state.inside.load(Ordering::Relaxed) > 0 {
            state.met[kind].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A fault of this kind ends.
pub fn fault_ends(kind: usize) {
    if let Some(lasting) = LASTING.get(kind) {
        // One that did not begin does not end either.
        let _ = lasting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
    }
}

/// By state that was entered: how often, and how often each kind of fault has met it.
pub fn met() -> BTreeMap<&'static str, (u64, Vec<u64>)> {
    let entered = ENTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let facts = |state: &State| (count(&state.entries), state.met.iter().map(count).collect());
    entered.iter().map(|(name, state)| (*name, facts(state))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_what_it_finds_and_what_begins_under_it() {
        static FOUND: State = State::new("test: found");
        static LATER: State = State::new("test: later");
        static ELSEWHEN: State = State::new("test: elsewhen");
        // No run draws kinds so high: other tests of this process do not count here.
        let (kind, other) = (FAULT_KINDS_MAX - 1, FAULT_KINDS_MAX - 2);
        let found = FOUND.enter();
        drop(ELSEWHEN.enter());
        fault_begins(kind);
        drop(LATER.enter());
        drop(LATER.enter());
        fault_ends(kind);
        fault_ends(kind);
        drop(LATER.enter());
        drop(found);
        fault_begins(FAULT_KINDS_MAX);
        let met = met();
        let of = |name: &str| (met[name].0, met[name].1[kind], met[name].1[other]);
        assert_eq!(of("test: found"), (1, 1, 0));
        assert_eq!(of("test: later"), (3, 2, 0));
        assert_eq!(of("test: elsewhen"), (1, 0, 0));
    }
}
