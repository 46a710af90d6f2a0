//! Every state that a power loss may leave, one after the other, where a random one is not enough.
//!
//! A node that is watched gives a [`CrashPoint`] at the beginning and at the end of each sync: its disk and its
//! indexes as they are, and everything unsynced with what may become of it. The states of a point come in a
//! fixed order, those first that differ least from *all kept* and *all lost*. Each is mounted on a node that is
//! down, in the same world or another, which starts with it as after the power loss.

mod point;
mod states;
mod watch;

pub use point::{CrashPoint, Fate, Surviving, Tear, Unlikely, Unsynced, UnsyncedChange};
pub use states::{CrashBound, CrashState, CrashStates};
pub use watch::CrashOccasion;
pub(in crate::runtime::sim) use watch::CrashWatch;
