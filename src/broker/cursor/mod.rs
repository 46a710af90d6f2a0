//! How far one subscription has got: the mark-delete position (everything up to it is acknowledged) and
//! the ranges and batch indexes acknowledged beyond it. Stored in a ledger of its own, group-written;
//! mark-delete never goes back except by an explicit reset.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::managed_ledger::ManagedLedgerError;
use super::messages::{AckError, AckRequest};
use crate::domain::Position;

/// A cursor. Cheap to clone.
#[derive(Clone)]
pub struct Cursor {
    #[expect(dead_code, reason = "stub until its first commit")]
    inner: Arc<()>,
}

/// Whether an entry still needs delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// Not acknowledged at all.
    Unacknowledged,
    /// Part of the batch: bit set = not yet acknowledged.
    Partly(Vec<u64>),
    /// Acknowledged.
    Acknowledged,
}

impl Cursor {
    /// Its name.
    pub fn name(&self) -> &str {
        unimplemented!()
    }

    /// True unless it is a reader's.
    pub fn is_durable(&self) -> bool {
        unimplemented!()
    }

    /// Everything up to here is acknowledged.
    pub fn mark_delete(&self) -> Position {
        unimplemented!()
    }

    /// Whether an entry still needs delivery.
    pub fn entry_state(&self, _position: Position) -> EntryState {
        unimplemented!()
    }

    /// Entries committed and not acknowledged.
    pub fn backlog(&self) -> u64 {
        unimplemented!()
    }

    /// Acknowledges in memory at once; the answer comes when it is durable. `batch_sizes` are not needed: an
    /// empty bit set means the whole entry.
    pub fn acknowledge(&self, _request: AckRequest) -> oneshot::Receiver<Result<(), AckError>> {
        unimplemented!()
    }

    /// Moves mark-delete, forwards or backwards, so that `next` is the first entry to deliver (with a bit
    /// set, only those messages of it). Durable when it returns. Keeps properties.
    pub async fn reset(
        &self,
        _next: Position,
        _ack_set: Option<Vec<u64>>,
    ) -> Result<(), ManagedLedgerError> {
        unimplemented!()
    }

    /// Properties stored with it.
    pub fn properties(&self) -> Vec<(String, String)> {
        unimplemented!()
    }
}
