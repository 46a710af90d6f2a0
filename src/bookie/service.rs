//! The bookie as its callers see it.

use std::sync::Arc;

use async_trait::async_trait;

use super::BookieConfig;
use crate::domain::{
    AddBatch, AddSink, BookieId, CreatorToken, Entry, EntryId, LastAddConfirmed, LedgerId,
    ReadError, ReadRequest,
};
use crate::runtime::{DiskError, Runtime};

/// What metadata says about one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerPresence {
    /// It exists: keep it.
    Exists,
    /// It certainly does not exist: its data may go.
    Gone,
    /// Cannot tell: keep it.
    Unknown,
}

/// Port to metadata's list of ledgers; `node` fills it in.
#[async_trait]
pub trait LedgerDirectory: Send + Sync {
    /// Whether a ledger still exists. Anything but a definite answer is `Unknown`.
    async fn presence(&self, ledger: LedgerId) -> LedgerPresence;
}

/// The bookie must not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BookieStartError {
    /// Identity on disk and identity expected differ, or one folder lacks its cookie: the disk was wiped or
    /// swapped.
    #[error("cookie mismatch: {0}")]
    Cookie(String),
    /// A journal or entry log is damaged in a way a crash cannot explain.
    #[error("corrupt data: {0}")]
    Corrupt(String),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The index failed even after a rebuild.
    #[error("index: {0}")]
    Index(String),
}

/// Figures for metrics and statistics.
#[derive(Clone, Debug, Default)]
pub struct BookieStats {
    /// Entries made durable since start.
    pub entries_added: u64,
    /// Payload bytes of the same.
    pub bytes_added: u64,
    /// Journal syncs since start.
    pub journal_syncs: u64,
    /// Bytes written to the journal since start, padding included.
    pub journal_bytes: u64,
    /// Bytes written to entry logs since start.
    pub entry_log_bytes: u64,
    /// Takes no writes: disk nearly full.
    pub read_only: bool,
    /// The journal is poisoned: why.
    pub poisoned: Option<String>,
    /// Damaged copies found since start.
    pub corrupt_found: u64,
}

/// A running bookie. Cheap to clone; stops when told to, or with its node.
#[derive(Clone)]
pub struct Bookie {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl Bookie {
    /// Checks cookies, replays the journal, opens or rebuilds the index. A first start on empty folders
    /// draws a new incarnation id and stamps it on each folder. `expected` is the identity metadata holds
    /// for this data folder's address, if any.
    pub async fn start(
        _runtime: Runtime,
        _config: BookieConfig,
        _directory: Arc<dyn LedgerDirectory>,
    ) -> Result<Self, BookieStartError> {
        unimplemented!()
    }

    /// This incarnation.
    pub fn id(&self) -> BookieId {
        unimplemented!()
    }

    /// Stores entries; see `ledger::BookieClient::add`.
    pub fn add(&self, _batch: AddBatch, _sink: Arc<dyn AddSink>) {
        unimplemented!()
    }

    /// Reads a run of entries; see `ledger::BookieClient::read`.
    pub async fn read(&self, _request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        unimplemented!()
    }

    /// What is known of a ledger's end, after fencing it durably if asked.
    pub async fn last_add_confirmed(
        &self,
        _ledger: LedgerId,
        _creator: CreatorToken,
        _fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        unimplemented!()
    }

    /// Takes a hint about last add confirmed.
    pub async fn tell_last_add_confirmed(
        &self,
        _ledger: LedgerId,
        _creator: CreatorToken,
        _last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        unimplemented!()
    }

    /// Figures since start.
    pub fn stats(&self) -> BookieStats {
        unimplemented!()
    }

    /// Completes when the journal is poisoned (never otherwise).
    pub async fn poisoned(&self) -> String {
        unimplemented!()
    }

    /// Flushes, checkpoints and stops. After it every call answers `Unreachable`.
    pub async fn stop(&self) {
        unimplemented!()
    }
}
