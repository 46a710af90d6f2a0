//! Simulation: one seed, one thread, many nodes.
//!
//! madsim supplies the executor (a seeded pick of the next ready task), virtual time, kill and pause.
//! Disk, network, clocks, indexes and randomness are ours, on the runtime traits. What each promises and
//! which faults there are: `docs/internals/runtime.md`.

mod agenda;
mod ambush;
mod clock;
mod crash;
mod disk;
mod index;
mod keyed;
mod network;
mod node;
mod recorder;
mod settings;
mod tape;
mod tasks;
mod trace;
mod world;

pub use ambush::Occasion;
pub use clock::ClockFace;
pub use crash::{
    CrashBound, CrashOccasion, CrashPoint, CrashState, CrashStates, Fate, Surviving, Tear,
    Unlikely, Unsynced, UnsyncedChange,
};
pub use disk::Rotted;
pub use node::SimNode;
pub use recorder::{Happening, NOTES_BEGIN, Note, Record, Recorder, Recording, RecordingLimits};
pub use settings::{DiskSettings, LinkSettings, WorldSettings};
pub use tape::{Decision, DecisionKey, DecisionKind, TapeMask};
pub use trace::{EventKind, TraceEvent};
pub use world::{NodePanic, RunReport, World};

use std::sync::{Mutex, MutexGuard};

/// Locks; a poisoned lock is used as it is, because a panic already fails the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
