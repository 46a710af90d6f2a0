//! What passes between a managed ledger and its topic.

use bytes::Bytes;

use crate::broker::AppendTerms;
use crate::domain::{LedgerId, Position, WallTime};

/// An entry to append. `message_count`, times and batch flag go into its `EntryHeader`; the index of its
/// first message is given by the managed ledger.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Echoed in the outcome.
    pub tag: u64,
    /// Messages in it.
    pub message_count: u32,
    /// It is a batch.
    pub is_batch: bool,
    /// The client's publish time.
    pub publish_time: WallTime,
    /// The client's bytes.
    pub client_bytes: Bytes,
    /// On what terms.
    pub terms: AppendTerms,
}

/// Why an entry was not appended, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Another owner took the topic, or it is closed. Certainly not stored by this call.
    #[error("the managed ledger is fenced or closed")]
    Fenced,
    /// Too much is pending. Not stored.
    #[error("too many entries are pending")]
    TooManyPending,
    /// Its expected number is not the next one. Not stored.
    #[error("the next number is {next}")]
    WrongNumber {
        /// The number the next entry gets, everything before it being committed.
        next: u64,
    },
    /// Its token is not the log's. Not stored, for ever.
    #[error("the fencing token is {current}")]
    StaleToken {
        /// The log's token.
        current: u64,
    },
    /// An entry before it in its session was refused. Not stored.
    #[error("an entry before it was refused")]
    SessionBroken,
    /// It may or may not be stored.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

/// Outcomes in the order of appending.
#[derive(Clone, Debug)]
pub struct AppendOutcome {
    /// As given.
    pub tag: u64,
    /// Its sequence number, if it is committed.
    pub number: u64,
    /// Where it is, or why not.
    pub result: Result<Position, AppendError>,
}

/// Told by a managed ledger, in order, from its own task; short, never blocking.
pub trait ManagedLedgerEvents: Send + Sync {
    /// Outcomes; committed entries are readable when this is called.
    fn appended(&self, outcomes: Vec<AppendOutcome>);
    /// Another owner took the topic or storage failed for good: the topic must close. Nothing follows.
    fn fenced(&self, reason: String);
}

/// A committed entry.
#[derive(Clone, Debug)]
pub struct StoredEntry {
    /// Where it is.
    pub position: Position,
    /// Entries ever committed before it.
    pub number: u64,
    /// Messages in it.
    pub message_count: u32,
    /// It is a batch.
    pub is_batch: bool,
    /// The client's publish time.
    pub publish_time: WallTime,
    /// The client's bytes.
    pub client_bytes: Bytes,
}

/// The managed ledger could not be opened, read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedLedgerError {
    /// There is none of this name and it was not to be created.
    #[error("does not exist")]
    NotFound,
    /// A newer owner exists, or it is closed.
    #[error("fenced by a newer owner or closed")]
    Fenced,
    /// Storage failed.
    #[error("storage: {0}")]
    Storage(String),
    /// Metadata failed; the change may or may not have been made.
    #[error("metadata: {0}")]
    Metadata(String),
}

/// Facts for statistics.
#[derive(Clone, Debug, Default)]
pub struct ManagedLedgerStats {
    /// Bytes of payload in all ledgers of the chain.
    pub storage_bytes: u64,
    /// Entries in all ledgers of the chain.
    pub entries: u64,
    /// `(ledger, entries, bytes)` in chain order.
    pub ledgers: Vec<(LedgerId, u64, u64)>,
    /// Messages ever sent to storage: index of the next one.
    pub next_message_index: u64,
    /// Entries appended and not yet confirmed.
    pub pending: u64,
}
