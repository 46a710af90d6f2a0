//! One binary: scripted scenarios that read as prose, each naming what it protects (`docs/internals/scenarios.md`), and a
//! small swarm.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the scenario")]
#![allow(clippy::disallowed_methods, reason = "each world needs a thread of its own")]

mod bookie_loss;
mod determinism;
mod failed_sync;
mod flipped_bytes;
mod journal_directories;
mod ledger_directories;
mod metadata_group;
mod metadata_members;
mod mixed_versions;
mod ownership;
#[cfg(feature = "mutants")]
mod planted_bugs;
#[cfg(feature = "mutants")]
mod reached_marks;
mod recording;
mod repair;
mod shrunk_runs;
mod stories;
mod story;
mod streams;
mod subscribers;
mod support;
mod too_few_bookies;
