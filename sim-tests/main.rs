//! One binary: scripted scenarios that read as prose, each naming what it protects, and a small swarm.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the scenario")]
#![allow(clippy::disallowed_methods, reason = "each world needs a thread of its own")]

mod bookie_loss;
mod corruption;
mod determinism;
mod failed_sync;
mod fencing;
mod flipped_bytes;
mod index_rebuild;
mod journal_directories;
mod ledger_directories;
mod metadata_group;
mod metadata_members;
mod ownership;
#[cfg(feature = "mutants")]
mod planted_bugs;
mod power_loss;
#[cfg(feature = "mutants")]
mod reached_marks;
mod recording;
mod recovery;
mod repair;
mod shrunk_runs;
mod streams;
mod support;
mod takeover;
mod too_few_bookies;
