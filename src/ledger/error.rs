//! How operations of the ledger client fail.

use crate::domain::{EntryId, LedgerId, ReadError};
use crate::metadata::MetadataError;

/// A ledger was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// Too few bookies take writes.
    #[error("need {needed} bookies, {available} take writes")]
    NotEnoughBookies {
        /// The write quorum; without opportunistic striping the ensemble's size.
        needed: u32,
        /// Bookies that take writes.
        available: u32,
    },
    /// The bookies that take writes are in too few racks.
    #[error("no choice of the bookies that take writes puts every entry in {needed} racks")]
    NotEnoughRacks {
        /// Racks demanded for every write set.
        needed: u32,
    },
    /// Metadata failed; a record may be left behind, without data.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// `append` took nothing: the writer has ended or its window is full.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefused {
    /// The writer has ended or is closing.
    #[error("the writer of ledger {0} has ended")]
    Ended(LedgerId),
    /// Too much is pending; retry after the next confirmation.
    #[error("the window of ledger {0} is full")]
    WindowFull(LedgerId),
}

/// Why a writer ended. Entries up to the last confirmed one are committed; of those after it the
/// outcome is **unknown** until the ledger is recovered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriterEnd {
    /// Closed by its owner; nothing was pending.
    #[error("closed")]
    Closed,
    /// Someone fenced the ledger: this writer was deposed.
    #[error("fenced by another owner")]
    Fenced,
    /// So many bookies failed that an entry cannot complete.
    #[error("not enough bookies answer: {0}")]
    NotEnoughBookies(String),
    /// An entry did not complete in time.
    #[error("entry {0} was not complete in time")]
    TimedOut(EntryId),
}

/// The ledger could not be closed at the writer's end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// Recovery of the ledger has begun: the writer was deposed.
    #[error("the ledger is in recovery")]
    InRecovery,
    /// Someone closed it elsewhere.
    #[error("the ledger was closed at {last_entry} by someone else")]
    ClosedElsewhere {
        /// Where.
        last_entry: EntryId,
    },
    /// The record is gone.
    #[error("the ledger's record is gone")]
    Deleted,
    /// Metadata failed; the ledger may or may not be closed. Recover it before relying on its end.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// A read gave no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerReadError {
    /// No such ledger.
    #[error("ledger {0} does not exist")]
    NoLedger(LedgerId),
    /// Beyond what is confirmed.
    #[error("entry {asked} is beyond the last confirmed {last_confirmed}")]
    BeyondEnd {
        /// The entry asked for.
        asked: EntryId,
        /// The last that may be read.
        last_confirmed: EntryId,
    },
    /// No replica gave a good copy. Absent or damaged only if every replica said one of them; if one was not
    /// heard, what keeps it from being heard.
    #[error("no replica of {ledger}:{entry} answered well: {last}")]
    NoGoodReplica {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
        /// The answer that weighs most.
        last: ReadError,
    },
    /// Metadata failed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// The ledger's end could not be decided; it stays in recovery and may be tried again. Never a guess.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// No such ledger.
    #[error("ledger {0} does not exist")]
    NoLedger(LedgerId),
    /// Too few bookies answered to fence the ledger or to decide about an entry.
    #[error("cannot decide about {entry} of ledger {ledger}: {detail}")]
    Undecidable {
        /// The ledger.
        ledger: LedgerId,
        /// The entry in question ([`EntryId::NONE`] while fencing).
        entry: EntryId,
        /// Who said what.
        detail: String,
    },
    /// Entries found could not be written back to an ack quorum.
    #[error("cannot write back {entry} of ledger {ledger}: {detail}")]
    WriteBack {
        /// The ledger.
        ledger: LedgerId,
        /// The entry.
        entry: EntryId,
        /// Who said what.
        detail: String,
    },
    /// Metadata failed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// The ledger's record could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteError {
    /// Metadata failed; the record may or may not be gone.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}
