//! What the broker holds of an open ledger.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::admission::Admission;
use super::close::close_record;
use super::driver::Input;
use super::proof::WriterProof;
use crate::domain::{EntryId, LedgerId};
use crate::in_state;
use crate::ledger::records::Records;
use crate::ledger::{AppendRefused, CloseError, ClosedLedger, LedgerConfig};
use crate::runtime::{Clock, MailboxSender};

/// The one writer of an open ledger. Dropping it abandons the ledger (open, to be recovered by the next
/// owner); it stops sending, and `ended` may not be called.
pub struct LedgerWriter {
    pub(super) ledger: LedgerId,
    pub(super) admission: Arc<Admission>,
    pub(super) inputs: MailboxSender<Input>,
    pub(super) records: Records,
    pub(super) clock: Clock,
    pub(super) config: LedgerConfig,
}

impl LedgerWriter {
    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// Appends payloads in order and answers the id of the first; the others follow densely. Takes all
    /// or nothing; never blocks. Outcomes come by [`crate::ledger::WriterEvents`]. A list larger than the
    /// whole window is taken when nothing is pending.
    pub fn append(&self, payloads: Vec<Bytes>) -> Result<EntryId, AppendRefused> {
        let bytes = payloads.iter().map(Bytes::len).sum();
        let entries = payloads.len();
        let mut window = self.admission.lock();
        if window.ended {
            return Err(AppendRefused::Ended(self.ledger));
        }
        let (entries_max, bytes_max) =
            (self.config.pending_entries_max, self.config.pending_bytes_max);
        if !window.has_room(entries, bytes, entries_max, bytes_max) {
            return Err(AppendRefused::WindowFull(self.ledger));
        }
        let first = window.next;
        if entries > 0 {
            // Under the lock, so that the queue's order is the order of ids. The window bounds the queue.
            if self.inputs.push(Input::Append(payloads)).is_err() {
                return Err(AppendRefused::Ended(self.ledger));
            }
            window.next = EntryId(first.0 + entries as i64);
            window.pending_bytes += bytes;
        }
        Ok(first)
    }

    /// The highest committed entry.
    pub fn last_add_confirmed(&self) -> EntryId {
        self.admission.lock().confirmed
    }

    /// Asks the bookies whether somebody else has recovered the ledger. Answers within the time a read has.
    pub async fn prove(&self) -> WriterProof {
        let (reply, question) = oneshot::channel();
        if self.inputs.push(Input::Prove(reply)).is_err() {
            return WriterProof::Unknown;
        }
        match question.await {
            Ok(question) => question.ask().await,
            // It has ended, for whatever reason.
            Err(_) => WriterProof::Unknown,
        }
    }

    /// Stops accepting, fails what is pending as unknown, closes the ledger at the last confirmed entry.
    /// `ended` is told [`crate::ledger::WriterEnd::Closed`] first, unless the writer had ended already; a
    /// writer that ended otherwise may still be closed. May be called again after an error.
    pub async fn close(&self) -> Result<ClosedLedger, CloseError> {
        let _state = in_state!("ledger: close");
        self.admission.lock().ended = true;
        let (done, stopped) = oneshot::channel();
        if self.inputs.push(Input::Close(done)).is_ok() {
            // The task may have ended with this still in its queue: then it has stopped as well.
            let _ = stopped.await;
        }
        let (last, length) = {
            let window = self.admission.lock();
            (window.confirmed, window.confirmed_length)
        };
        close_record(&self.records, &self.clock, self.ledger, last, length).await
    }
}

impl Drop for LedgerWriter {
    fn drop(&mut self) {
        self.admission.lock().ended = true;
        let _ = self.inputs.push(Input::Abandon);
    }
}
