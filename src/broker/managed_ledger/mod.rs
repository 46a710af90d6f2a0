//! A topic as a chain of ledgers: append, rollover, takeover by the next owner, reads across ledgers,
//! the tail cache, and trimming of what no cursor needs.

use std::sync::Arc;

use bytes::Bytes;

use super::BrokerConfig;
use super::cursor::Cursor;
use super::messages::InitialPosition;
use crate::domain::{LedgerId, Position, WallTime};
use crate::ledger::LedgerClient;
use crate::metadata::Metadata;
use crate::runtime::Runtime;

/// What a managed ledger needs from its broker.
#[derive(Clone)]
pub struct ManagedLedgerEnvironment {
    /// Effects.
    pub runtime: Runtime,
    /// Records of topics and cursors.
    pub metadata: Metadata,
    /// Ledgers.
    pub ledgers: LedgerClient,
    /// Limits.
    pub config: BrokerConfig,
    /// Recent entries of all topics.
    pub cache: Arc<TailCache>,
}

/// Recent entries of all topics, bounded in bytes; the oldest go first.
pub struct TailCache {}

impl TailCache {
    /// A cache of at most `bytes_max` bytes of payload.
    pub fn new(_bytes_max: usize) -> Self {
        unimplemented!()
    }
}

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
    /// It may or may not be stored.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

/// Outcomes in the order of appending.
#[derive(Clone, Debug)]
pub struct AppendOutcome {
    /// As given.
    pub tag: u64,
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
    /// Messages ever appended (index of the next message).
    pub next_message_index: u64,
    /// Entries appended and not yet confirmed.
    pub pending: u64,
}

/// A topic's log, owned here. Cheap to clone.
#[derive(Clone)]
pub struct ManagedLedger {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl ManagedLedger {
    /// Opens (with `create`, creates) the log and takes it over: read the record, recover the last ledger,
    /// open the next, compare-and-set (`docs/internals/ledger_protocol.md`, takeover). Stored cursors are
    /// recovered too.
    pub async fn open(
        _environment: ManagedLedgerEnvironment,
        _name: &str,
        _create: bool,
        _events: Arc<dyn ManagedLedgerEvents>,
    ) -> Result<Self, ManagedLedgerError> {
        unimplemented!()
    }

    /// Appends in order; never blocks. Each entry gets its outcome by the events, in order.
    pub fn append(&self, _entries: Vec<NewEntry>) {
        unimplemented!()
    }

    /// The last committed position; before the first entry, the position just before it.
    pub fn last_confirmed(&self) -> Position {
        unimplemented!()
    }

    /// Up to `entries_max` committed entries at or after `from`, in order, across ledgers; empty if there
    /// is none yet. Skips to the next ledger at a ledger's end. Stops after `bytes_max` bytes (at least one
    /// entry).
    pub async fn read(
        &self,
        _from: Position,
        _entries_max: usize,
        _bytes_max: usize,
    ) -> Result<Vec<StoredEntry>, ManagedLedgerError> {
        unimplemented!()
    }

    /// The position of the first entry kept (or where the first will be).
    pub fn first_position(&self) -> Position {
        unimplemented!()
    }

    /// The place after `position`: the next entry, or the first of the next ledger.
    pub fn next_position(&self, _position: Position) -> Position {
        unimplemented!()
    }

    /// Committed entries in `(after, up_to]`.
    pub fn entries_between(&self, _after: Position, _up_to: Position) -> u64 {
        unimplemented!()
    }

    /// The last entry with publish time before `time`; `None` if there is none.
    pub async fn last_before(
        &self,
        _time: WallTime,
    ) -> Result<Option<Position>, ManagedLedgerError> {
        unimplemented!()
    }

    /// Names of stored cursors, in order.
    pub fn cursor_names(&self) -> Vec<String> {
        unimplemented!()
    }

    /// The stored cursor of this name, created at `initial` if there is none. A new cursor takes its position
    /// and holds back trimming in one step.
    pub async fn open_cursor(
        &self,
        _name: &str,
        _initial: InitialPosition,
        _properties: Vec<(String, String)>,
    ) -> Result<Cursor, ManagedLedgerError> {
        unimplemented!()
    }

    /// A cursor that is not stored (readers) and does not hold back trimming.
    pub fn open_transient_cursor(&self, _name: &str, _initial: InitialPosition) -> Cursor {
        unimplemented!()
    }

    /// Removes a stored cursor.
    pub async fn delete_cursor(&self, _name: &str) -> Result<(), ManagedLedgerError> {
        unimplemented!()
    }

    /// Deletes ledgers that every stored cursor has consumed. Without stored cursors nothing is kept but
    /// the current ledger.
    pub async fn trim(&self) -> Result<(), ManagedLedgerError> {
        unimplemented!()
    }

    /// Facts for statistics.
    pub fn stats(&self) -> ManagedLedgerStats {
        unimplemented!()
    }

    /// Writes cursors' state, closes the current ledger and gives the log up.
    pub async fn close(&self) {
        unimplemented!()
    }

    /// Deletes the log: its record first, then its ledgers and cursors.
    pub async fn delete(&self) -> Result<(), ManagedLedgerError> {
        unimplemented!()
    }
}
