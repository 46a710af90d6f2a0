//! Stores entries of ledgers it does not understand. What a bookie promises once it says "added": the
//! entries are on synced storage and survive any crash that leaves its disks whole.

mod config;
mod server;
mod service;

pub use config::BookieConfig;
pub use server::{BookieServer, BookieService, READ_BYTES_MAX, STREAM_BYTES_MAX};
pub use service::{Bookie, BookieStartError, BookieStats, LedgerDirectory, LedgerPresence};
