//! What goes out of the writer's machine and what comes back about ensemble changes.

use std::time::Duration;

use crate::domain::{BookieId, Entry, EntryId, LedgerId};
use crate::ledger::{Quorum, WriterEnd};

/// What the driver is to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEffect {
    /// Send entries to a bookie.
    Send {
        /// Whom.
        bookie: BookieId,
        /// Sealed entries in id order, of the bookie's write sets only.
        entries: Vec<Entry>,
    },
    /// Everything up to here is committed.
    Confirmed {
        /// The last add confirmed.
        up_to: EntryId,
        /// Payload bytes of the ledger up to it.
        length: u64,
        /// Payload bytes of the entries confirmed by this effect.
        bytes: usize,
    },
    /// Tell the ensemble the last add confirmed.
    TellLastAddConfirmed(EntryId),
    /// Look for spares for these positions and call [`super::WriterMachine::replace`] with what was found.
    FindReplacements(Vec<usize>),
    /// Put the change into metadata, then call [`super::WriterMachine::changed`].
    ChangeEnsemble {
        /// First entry under the new ensemble.
        start: EntryId,
        /// Who goes and who comes.
        replacements: Vec<(BookieId, BookieId)>,
    },
    /// The writer is finished; nothing follows.
    Ended(WriterEnd),
}

/// What came of an ensemble change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The last fragment in metadata has this ensemble.
    Done(Vec<BookieId>),
    /// Metadata certainly did not change.
    NotDone,
    /// The record is no longer open.
    Deposed,
}

/// Facts that do not change over a writer's life.
#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its replication.
    pub quorum: Quorum,
    /// See [`crate::ledger::LedgerConfig::add_timeout`].
    pub add_timeout: Duration,
    /// See [`crate::ledger::LedgerConfig::explicit_last_add_confirmed_interval`].
    pub tell_interval: Duration,
}
