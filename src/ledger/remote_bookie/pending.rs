//! Which batches wait for what: pure bookkeeping of one remote bookie.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::domain::{AddAnswer, AddBatch, AddError, AddSink, BookieId, EntryId, LedgerId};
use crate::reached;
use crate::rpc::MESSAGE_BYTES;
use crate::rpc::bookie_messages::{add_result_from_wire, batch_to_wire};
use crate::rpc::generated::bookie as wire;

/// What a batch costs beside its payloads.
const BATCH_OVERHEAD_BYTES: usize = 256;

/// One batch and where its answer goes.
pub(super) struct Add {
    pub(super) batch: AddBatch,
    pub(super) sink: Arc<dyn AddSink>,
}

/// A batch without its answer; its entries are either in `unsent` or on their way.
struct Waiting {
    ledger: LedgerId,
    entries: Vec<EntryId>,
    cost: usize,
    sink: Arc<dyn AddSink>,
}

/// An answer that is due.
pub(super) struct Due {
    pub(super) sink: Arc<dyn AddSink>,
    pub(super) answer: AddAnswer,
    /// Bytes that are no longer on their way.
    pub(super) cost: usize,
}

/// The batches of one bookie that are not answered yet.
pub(super) struct Pending {
    bookie: BookieId,
    last: u64,
    waiting: BTreeMap<u64, Waiting>,
    unsent: VecDeque<(u64, AddBatch)>,
}

/// Bytes a batch holds while it waits.
pub(super) fn batch_cost(batch: &AddBatch) -> usize {
    let payloads: usize = batch.entries.iter().map(|entry| entry.payload.len() + 64).sum();
    BATCH_OVERHEAD_BYTES + payloads
}

/// The batch's entry ids.
pub(super) fn entry_ids(batch: &AddBatch) -> Vec<EntryId> {
    batch.entries.iter().map(|entry| entry.entry).collect()
}

impl Pending {
    pub(super) fn new(bookie: BookieId) -> Self {
        Self { bookie, last: 0, waiting: BTreeMap::new(), unsent: VecDeque::new() }
    }

    /// Takes a batch to send.
    pub(super) fn add(&mut self, add: Add) {
        self.last += 1;
        let waiting = Waiting {
            ledger: add.batch.ledger,
            entries: entry_ids(&add.batch),
            cost: batch_cost(&add.batch),
            sink: add.sink,
        };
        self.waiting.insert(self.last, waiting);
        self.unsent.push_back((self.last, add.batch));
    }

    /// True if no batch waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// True if there is something to send.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The next message: as many unsent batches as fit, at least one.
    pub(super) fn next_message(&mut self) -> wire::AddRequests {
        let mut batches = Vec::new();
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES {
            let Some((number, batch)) = self.unsent.pop_front() else { break };
            bytes += batch_cost(&batch);
            batches.push(batch_to_wire(number, batch));
        }
        wire::AddRequests { bookie: self.bookie.0, batches }
    }

    /// An answer came. `None` for a batch that is not waiting: answered twice, or never sent.
    pub(super) fn answered(&mut self, answer: wire::AddAnswer) -> Option<Due> {
        let Some(waiting) = self.waiting.remove(&answer.number) else {
            reached!("remote bookie: an answer to nothing");
            return None;
        };
        Some(self.due(waiting, add_result_from_wire(answer)))
    }

    /// The stream broke: everything waiting has an unknown outcome.
    pub(super) fn broken(&mut self, reason: &str) -> Vec<Due> {
        self.unsent.clear();
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_values()
            .map(|waiting| self.due(waiting, Err(AddError::Unreachable(reason.to_owned()))))
            .collect()
    }

    fn due(&self, waiting: Waiting, result: Result<(), AddError>) -> Due {
        let answer = AddAnswer {
            bookie: self.bookie,
            ledger: waiting.ledger,
            entries: waiting.entries,
            result,
        };
        Due { sink: waiting.sink, answer, cost: waiting.cost }
    }
}
