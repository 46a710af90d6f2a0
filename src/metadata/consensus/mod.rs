//! Consensus of the metadata group: Raft (Ongaro's dissertation) as a pure machine. Events go in, effects
//! come out; no clock, no disk, no randomness. Who performs the effects does so **in the order given**: a
//! message behind a `Persist` must not leave before that write is synced.
//!
//! One file for each protocol action: `vote` (pre-vote, vote, becoming leader), `append` (a follower's
//! side), `replicate` (the leader's), `commit`, `propose`, `read_index`, `change` (membership), `snapshot`,
//! `transfer`, `quorum_check`. Timers, the only part that is told the time, are in `timers`.

mod append;
mod change;
mod commit;
mod effect;
mod entry;
mod event;
mod log;
mod machine;
mod membership;
mod message;
mod progress;
mod propose;
mod quorum_check;
mod read_index;
mod replicate;
mod settings;
mod snapshot;
mod timers;
mod transfer;
mod vote;

pub use effect::{Effect, Refusal, SnapshotMark, Ticket, Write};
pub use entry::{Entry, HardState, Index, Payload, Term};
pub use event::Event;
pub use log::Log;
pub use machine::{Machine, Restored, Role};
pub use membership::{MemberId, Membership};
pub use message::{Append, AppendAnswer, AppendResult, Body, Message, SnapshotPart};
pub use settings::Settings;
pub use timers::{TimerSettings, Timers};
