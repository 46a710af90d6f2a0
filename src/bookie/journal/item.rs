//! What is queued for a journal, and who is told when it is durable.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::GROUP_HEADER_BYTES;
use crate::bookie::ledger_state::LedgerState;
use crate::bookie::record::{RECORD_HEADER_BYTES_MAX, RecordKind};
use crate::domain::{AddAnswer, AddBatch, AddError, AddSink, BookieId};

/// Entries to store.
pub(in crate::bookie) struct AddItem {
    /// Their ledger.
    pub ledger: Arc<LedgerState>,
    /// The entries, checked.
    pub batch: AddBatch,
    /// Payload and header bytes, as counted against the queue's bound.
    pub bytes: usize,
    /// Who wants to know.
    pub sink: Arc<dyn AddSink>,
}

impl AddItem {
    /// Answers, once.
    pub fn answer(self, bookie: BookieId, result: Result<(), AddError>) {
        let entries = self.batch.entries.iter().map(|entry| entry.entry).collect();
        self.sink.answered(AddAnswer { bookie, ledger: self.batch.ledger, entries, result });
    }
}

/// A fence or a tombstone.
pub(in crate::bookie) struct LedgerItem {
    /// The ledger.
    pub ledger: Arc<LedgerState>,
    /// `Fence` or `Tombstone`.
    pub kind: RecordKind,
    /// Told once the record is durable, or why it is not.
    pub done: oneshot::Sender<Result<(), String>>,
}

/// What can be queued for the journal.
pub(in crate::bookie) enum JournalItem {
    /// Entries.
    Add(AddItem),
    /// A fact about a ledger.
    Ledger(LedgerItem),
    /// Ends the writer after all that was queued before.
    Stop(oneshot::Sender<()>),
}

/// Bytes a batch takes in a group, at most; for bounds.
pub(in crate::bookie) fn batch_bytes(batch: &AddBatch) -> usize {
    let payloads: usize = batch.entries.iter().map(|entry| entry.payload.len()).sum();
    payloads + batch.entries.len() * RECORD_HEADER_BYTES_MAX + GROUP_HEADER_BYTES
}
