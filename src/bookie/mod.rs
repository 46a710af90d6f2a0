//! Stores entries of ledgers it does not understand. What a bookie promises once it says "added": the
//! entries are on synced storage and survive any crash that leaves its disks whole.

mod config;
mod service;

pub use config::BookieConfig;
pub use service::{Bookie, BookieStartError, BookieStats, LedgerDirectory, LedgerPresence};
