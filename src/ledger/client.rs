//! The ledger client's handles: what the broker (and the ledger API) calls.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    AppendRefused, BookiePool, CloseError, CreateError, DeleteError, LedgerConfig, LedgerReadError,
    LedgerRecord, Quorum, RecoveryError, WriterEnd,
};
use crate::domain::{Entry, EntryId, LedgerId};
use crate::metadata::Metadata;
use crate::runtime::Runtime;

/// Told by a writer, from its own task, in order; must be short and must not block.
pub trait WriterEvents: Send + Sync {
    /// Every entry up to and including `up_to` is committed. `up_to` only grows.
    fn confirmed(&self, ledger: LedgerId, up_to: EntryId);
    /// The writer ended; nothing follows. Entries above `last_confirmed` have an unknown outcome.
    fn ended(&self, ledger: LedgerId, last_confirmed: EntryId, reason: WriterEnd);
}

/// A ledger's immutable end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedLedger {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its last entry, [`EntryId::NONE`] if empty.
    pub last_entry: EntryId,
    /// Bytes of payload.
    pub length: u64,
}

/// Creates, opens, recovers and deletes ledgers. Cheap to clone.
#[derive(Clone)]
pub struct LedgerClient {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

impl LedgerClient {
    /// A client over metadata and bookies.
    pub fn new(
        _runtime: Runtime,
        _metadata: Metadata,
        _bookies: Arc<dyn BookiePool>,
        _config: LedgerConfig,
    ) -> Self {
        unimplemented!()
    }

    /// Creates a ledger (id from the cluster-wide counter `/ledger-id`) and its writer.
    pub async fn create(
        &self,
        _quorum: Quorum,
        _purpose: &str,
        _events: Arc<dyn WriterEvents>,
    ) -> Result<LedgerWriter, CreateError> {
        unimplemented!()
    }

    /// The ledger's record, `None` if there is none.
    pub async fn record(&self, _ledger: LedgerId) -> Result<Option<LedgerRecord>, LedgerReadError> {
        unimplemented!()
    }

    /// Opens without recovery: reads up to the last add confirmed it can learn, never fences.
    pub async fn open(&self, _ledger: LedgerId) -> Result<LedgerReader, LedgerReadError> {
        unimplemented!()
    }

    /// Fences the ledger, finds its end, closes it. Idempotent; harmless when run twice at once; on a
    /// closed ledger just answers its end.
    pub async fn recover(&self, _ledger: LedgerId) -> Result<ClosedLedger, RecoveryError> {
        unimplemented!()
    }

    /// Removes the ledger's record; bookies drop its data when they next compare with metadata.
    pub async fn delete(&self, _ledger: LedgerId) -> Result<(), DeleteError> {
        unimplemented!()
    }
}

/// The one writer of an open ledger. Dropping it abandons the ledger (open, to be recovered by the next
/// owner); it stops sending, and `ended` may not be called.
pub struct LedgerWriter {}

impl LedgerWriter {
    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        unimplemented!()
    }

    /// Appends payloads in order and answers the id of the first; the others follow densely. Takes all
    /// or nothing; never blocks. Outcomes come by [`WriterEvents`].
    pub fn append(&self, _payloads: Vec<Bytes>) -> Result<EntryId, AppendRefused> {
        unimplemented!()
    }

    /// The highest committed entry.
    pub fn last_add_confirmed(&self) -> EntryId {
        unimplemented!()
    }

    /// Stops accepting, fails what is pending as unknown, closes the ledger at the last confirmed entry.
    pub async fn close(&self) -> Result<ClosedLedger, CloseError> {
        unimplemented!()
    }
}

/// Reads a ledger, never past its last add confirmed (its last entry once closed).
pub struct LedgerReader {}

impl LedgerReader {
    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        unimplemented!()
    }

    /// The last entry that may be read, as known now; asks the bookies when the ledger is not closed.
    pub async fn last_add_confirmed(&self) -> Result<EntryId, LedgerReadError> {
        unimplemented!()
    }

    /// Reads a contiguous run beginning with `first`: at least one entry, at most `entries_max`, stopping
    /// after `bytes_max` payload bytes. `known_last` is a last confirmed the caller is sure of (the owner of
    /// the writer knows it better than the bookies); entries up to it may be read without asking.
    pub async fn read(
        &self,
        _first: EntryId,
        _entries_max: u32,
        _bytes_max: u32,
        _known_last: EntryId,
    ) -> Result<Vec<Entry>, LedgerReadError> {
        unimplemented!()
    }
}
