//! Stores entries of ledgers it does not understand. What a bookie promises once it says "added": the
//! entries are on synced storage and survive any crash that leaves its disks whole. What is on disk, and why
//! in that order, is told in `docs/internals/data_files.md`.

mod add;
mod config;
mod cookie;
mod fence;
mod garbage;
/// What is in a bookie's files, for the command line.
pub mod inspect;
mod journal;
mod keeper;
mod ledger_state;
mod read;
mod read_back;
mod read_cache;
mod record;
mod scrub;
mod server;
mod service;
mod shared;
mod space;
mod start;
mod storage;
mod wait;
mod write_cache;

#[cfg(test)]
mod tests;

pub use config::{BookieConfig, JOURNAL_DIRECTORIES_MAX, LEDGER_DIRECTORIES_MAX};
pub use server::{BookieServer, BookieService, READ_BYTES_MAX, STREAM_BYTES_MAX};
pub use service::{
    Bookie, BookieStartError, BookieStats, JournalStats, LedgerDirectory, LedgerPresence,
};
