//! Finding a ledger for a request, and fencing it durably before anything is answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::journal::{JournalItem, LedgerItem};
use super::ledger_state::{FenceState, LedgerFacts, LedgerState};
use super::record::RecordKind;
use super::shared::Shared;
use super::space::Space;
use crate::domain::{CreatorToken, LedgerId, ReadError};
use crate::{mutant, reached};

/// The ledger, if it was ever seen; with `create`, a ledger never seen is made.
pub(super) fn find_ledger(
    shared: &Shared,
    ledger: LedgerId,
    creator: CreatorToken,
    create: bool,
) -> Result<Option<Arc<LedgerState>>, ReadError> {
    if shared.stopped.load(Ordering::SeqCst) {
        return Err(ReadError::Unreachable("the bookie has stopped".to_owned()));
    }
    let state = if create {
        shared.find_or_create(ledger, creator)
    } else {
        let Some(state) = shared.ledgers.find(ledger) else { return Ok(None) };
        state
    };
    let facts = *state.facts();
    if facts.creator != creator {
        return Err(ReadError::WrongCreator);
    }
    if facts.deleted {
        // Its entries were here once: not a promise about the past.
        return Err(ReadError::Unknown("the ledger was deleted here".to_owned()));
    }
    Ok(Some(state))
}

/// Fences a ledger and waits until that survives any crash. A fence on its way already is waited for, too:
/// the journal keeps order, so a second record behind it is the simplest way.
pub(super) async fn fence(shared: &Shared, ledger: &Arc<LedgerState>) -> Result<(), ReadError> {
    if mutant!("S37") && shared.spaces.bookie() != Space::Enough {
        return Err(ReadError::Unknown("the disk is full".to_owned()));
    }
    let Some(durable) = begin(shared, ledger) else { return Ok(()) };
    match durable.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => {
            reached!("bookie: fence could not be made durable");
            Err(ReadError::Unknown(reason))
        }
        Err(_) => Err(ReadError::Unreachable("the bookie has stopped".to_owned())),
    }
}

/// Refuses ordinary adds from now on and queues the record; `None` if it is durable already.
pub(super) fn begin(
    shared: &Shared,
    ledger: &Arc<LedgerState>,
) -> Option<oneshot::Receiver<Result<(), String>>> {
    let mut facts = ledger.facts();
    match facts.fence {
        FenceState::Durable => return None,
        FenceState::Pending => reached!("bookie: two fences race"),
        FenceState::Open => facts.fence = FenceState::Pending,
    }
    if mutant!("S1") {
        facts.fence = FenceState::Durable;
        return None;
    }
    let (done, durable) = oneshot::channel();
    let item = LedgerItem { ledger: Arc::clone(ledger), kind: RecordKind::Fence, done };
    // Under the ledger's lock: every add admitted before is ahead in the queue. Over the queue's capacity
    // if need be: fences must go on when adds overload; requests are bounded where they come in. A queue
    // that is gone drops the sender, which the receiver takes for a stop.
    let _ = shared.journal_of(ledger).push(JournalItem::Ledger(item));
    Some(durable)
}

/// A tombstone on its way to the journal.
pub(super) type Burial = oneshot::Receiver<Result<(), String>>;

/// Queues a tombstone. The ledger refuses adds from now on.
pub(super) fn begin_burial(shared: &Shared, ledger: &Arc<LedgerState>) -> Burial {
    let (done, durable) = oneshot::channel();
    let mut facts = ledger.facts();
    if mutant!("S4") {
        *facts = LedgerFacts::new(facts.creator, facts.journal);
    } else {
        facts.deleted = true;
    }
    let item = LedgerItem { ledger: Arc::clone(ledger), kind: RecordKind::Tombstone, done };
    let _ = shared.journal_of(ledger).push(JournalItem::Ledger(item));
    durable
}

/// Waits until a tombstone is durable.
pub(super) async fn end_burial(burial: Burial) -> Result<(), String> {
    burial.await.unwrap_or_else(|_| Err("the bookie has stopped".to_owned()))
}
