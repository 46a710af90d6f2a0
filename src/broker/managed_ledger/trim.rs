//! Trimming: which ledgers nobody needs is decided, and they leave the chain, in one critical section
//! with the cursors; so a cursor created later begins after them. Data is deleted only after the record
//! without them is written.

use std::collections::BTreeMap;

use super::compare_and_set::CasError;
use super::contract::ManagedLedgerError;
use super::handle::{Shared, lock};
use crate::broker::cursor::Cursor;
use crate::domain::Position;
use crate::{in_state, mutant, reached};

/// The smallest position below which no stored cursor needs anything.
fn needed(cursors: &BTreeMap<String, Cursor>) -> Option<Position> {
    cursors.values().map(Cursor::trim_limit).min()
}

pub(super) async fn trim(shared: &Shared) -> Result<(), ManagedLedgerError> {
    let _state = in_state!("managed ledger: trim");
    let mut held = shared.record.lock().await;
    if shared.closed.load(std::sync::atomic::Ordering::Acquire) {
        return Err(ManagedLedgerError::Fenced);
    }
    let mut old = None;
    if mutant!("B10") {
        // What the cursors need is asked for too early, and not again.
        old = Some(needed(&lock(&shared.cursors)));
        shared.environment.runtime.clock.sleep(std::time::Duration::from_millis(20)).await;
    }
    let (dropped, chain) = {
        let cursors = lock(&shared.cursors);
        let mut chain = lock(&shared.chain);
        let needed = old.unwrap_or_else(|| needed(&cursors));
        let limit = needed.unwrap_or_else(|| chain.last_confirmed());
        // A stream keeps what it has not given up, whether or not anybody has subscribed.
        let count = chain.consumed(limit).min(chain.given_up());
        if count == 0 {
            return Ok(());
        }
        let first = if mutant!("B11") { count / 2 } else { 0 };
        let dropped: Vec<_> = chain.ledgers.drain(first..count).map(|ledger| ledger.id).collect();
        (dropped, chain.clone())
    };
    reached!("managed ledger: trimmed");
    match shared.write_record(&mut held, &chain).await {
        Ok(()) => {}
        Err(CasError::Conflict) => return Err(ManagedLedgerError::Fenced),
        // The next change of the record leaves them out too; their data stays as an orphan.
        Err(CasError::Unknown(error)) => return Err(ManagedLedgerError::Metadata(error)),
    }
    drop(held);
    lock(&shared.readers).retain(|(id, _)| !dropped.contains(id));
    lock(&shared.read_ahead).retain(|(id, _, _)| !dropped.contains(id));
    shared.delete_ledgers(&dropped).await;
    Ok(())
}
