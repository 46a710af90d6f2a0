//! Admission of adds: everything that is decided before the journal.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::journal::{AddItem, JournalItem, JournalQueue, batch_bytes};
use super::ledger_state::{FenceState, LedgerFacts, LedgerState};
use super::shared::Shared;
use super::space::Space;
use crate::domain::{AddAnswer, AddBatch, AddError, AddSink};
use crate::{mutant, reached};

/// Queues a batch for the journal, or answers why not.
pub(super) fn add(shared: &Arc<Shared>, batch: AddBatch, sink: Arc<dyn AddSink>) {
    if let Err(error) = check(shared, &batch) {
        return answer(shared, &batch, sink.as_ref(), Err(error));
    }
    if batch.entries.is_empty() {
        return answer(shared, &batch, sink.as_ref(), Ok(()));
    }
    let ledger = shared.find_or_create(batch.ledger, batch.creator);
    let queue = shared.journal_of(&ledger);
    if let Err(error) = check_space(shared.spaces.of_journal(ledger.journal), &batch) {
        return answer(shared, &batch, sink.as_ref(), Err(error));
    }
    let bytes = batch_bytes(&batch);
    if !queue.enter(bytes) {
        reached!("bookie: add refused, journal queue full");
        return answer(shared, &batch, sink.as_ref(), Err(AddError::Overloaded));
    }
    let item = AddItem { ledger: Arc::clone(&ledger), batch, bytes, sink };
    if mutant!("S3") {
        return add_outside_the_critical_section(shared, &ledger, item);
    }
    // Check and insertion under one lock: whatever passes is in the queue before any fence that comes
    // after, so whoever is told "fenced" can read it.
    let facts = ledger.facts();
    let refused = match admit(shared, &facts, &item.batch) {
        Ok(()) => match queue.try_send(JournalItem::Add(item)) {
            Ok(()) => None,
            Err(item) => Some((item, overloaded_or_gone(queue))),
        },
        Err(error) => Some((JournalItem::Add(item), error)),
    };
    drop(facts);
    if let Some((JournalItem::Add(item), error)) = refused {
        queue.left(item.bytes);
        item.answer(shared.id, Err(error));
    }
}

/// What can be told without the ledger's lock.
fn check(shared: &Shared, batch: &AddBatch) -> Result<(), AddError> {
    if shared.stopped.load(Ordering::SeqCst) {
        return Err(AddError::Unreachable("the bookie has stopped".to_owned()));
    }
    if let Some(reason) = shared.poison.reason() {
        return Err(AddError::Poisoned(reason));
    }
    if shared.draining.load(Ordering::Relaxed) && !batch.recovery {
        reached!("bookie: add refused while draining");
        return Err(AddError::ReadOnly);
    }
    check_space(shared.spaces.bookie(), batch)?;
    for entry in &batch.entries {
        entry
            .verify(batch.ledger, entry.entry)
            .map_err(|damage| AddError::Damaged(damage.to_string()))?;
        if entry.entry.0 < 0 {
            return Err(AddError::Damaged(format!("{} is not an entry id", entry.entry)));
        }
    }
    Ok(())
}

fn check_space(space: Space, batch: &AddBatch) -> Result<(), AddError> {
    match space {
        Space::Enough => {}
        Space::Low if batch.recovery => reached!("bookie: recovery add while read-only"),
        Space::Low | Space::Reserve => return Err(AddError::ReadOnly),
    }
    Ok(())
}

fn admit(shared: &Shared, facts: &LedgerFacts, batch: &AddBatch) -> Result<(), AddError> {
    if facts.creator != batch.creator {
        return Err(AddError::WrongCreator);
    }
    if facts.deleted {
        reached!("bookie: add to a deleted ledger refused");
        return Err(AddError::Deleted);
    }
    if batch.recovery && shared.leaving.contains(batch.ledger) {
        reached!("bookie: a copy of a ledger being dropped refused");
        return Err(AddError::Overloaded);
    }
    if facts.fence != FenceState::Open && !batch.recovery {
        reached!("bookie: add to a fenced ledger refused");
        return Err(AddError::Fenced);
    }
    Ok(())
}

fn overloaded_or_gone(queue: &JournalQueue) -> AddError {
    if queue.is_closed() {
        AddError::Unreachable("the bookie has stopped".to_owned())
    } else {
        AddError::Overloaded
    }
}

fn answer(shared: &Shared, batch: &AddBatch, sink: &dyn AddSink, result: Result<(), AddError>) {
    let entries = batch.entries.iter().map(|entry| entry.entry).collect();
    sink.answered(AddAnswer { bookie: shared.id, ledger: batch.ledger, entries, result });
}

/// Planted bug S3: between check and insertion others may run.
fn add_outside_the_critical_section(shared: &Arc<Shared>, ledger: &LedgerState, item: AddItem) {
    let admitted = admit(shared, &ledger.facts(), &item.batch);
    if let Err(error) = admitted {
        shared.journal_of(ledger).left(item.bytes);
        return item.answer(shared.id, Err(error));
    }
    let shared = Arc::clone(shared);
    let tasks = shared.runtime.tasks.clone();
    tasks.spawn("mutant-s3", async move {
        shared.runtime.clock.sleep(Duration::from_millis(1)).await;
        let queue = &shared.journals[item.ledger.journal];
        let _ = queue.push(JournalItem::Add(item));
    });
}
