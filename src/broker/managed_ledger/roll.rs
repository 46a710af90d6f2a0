//! The two steps of a rollover: find the end of the last ledger, create and list the next.

use std::sync::Arc;
use std::time::Duration;

use super::compare_and_set::CasError;
use super::driver::WriterNews;
use super::handle::{Shared, lock};
use crate::domain::{EntryId, LedgerId};
use crate::ledger::{CloseError, ClosedLedger, LedgerWriter};
use crate::{in_state, mutant, reached};

/// Tries of a step before the log is given up, and the longest pause between them. With the tries of
/// the ledger client inside each, about half a minute.
const TRIES: u32 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// Why the log cannot go on here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RollError {
    #[error("another owner took the topic: {0}")]
    Deposed(String),
    #[error("storage failed for good: {0}")]
    Storage(String),
}

fn pause(attempt: u32) -> Duration {
    (Duration::from_millis(50) * 2_u32.pow(attempt.min(8))).min(PAUSE_MAX)
}

/// Decides where `ledger` ends: closes it by its writer if that is alive, else recovers it. A close
/// that is not confirmed is followed by recovery, since its count must be right.
pub(super) async fn settle(
    shared: &Shared,
    ledger: LedgerId,
    writer: Option<Arc<LedgerWriter>>,
) -> Result<ClosedLedger, RollError> {
    if let Some(writer) = writer {
        match writer.close().await {
            Ok(closed) => return Ok(closed),
            Err(CloseError::Metadata(_)) => {
                reached!("managed ledger: a close was not confirmed");
            }
            Err(error) => return Err(RollError::Deposed(error.to_string())),
        }
    }
    recover(shared, ledger).await
}

/// Recovers with patience.
pub(super) async fn recover(shared: &Shared, ledger: LedgerId) -> Result<ClosedLedger, RollError> {
    let mut last = String::new();
    for attempt in 0..TRIES {
        match shared.environment.ledgers.recover(ledger).await {
            Ok(closed) => return Ok(closed),
            Err(error) => last = error.to_string(),
        }
        shared.environment.runtime.clock.sleep(pause(attempt)).await;
    }
    Err(RollError::Storage(last))
}

/// Creates a ledger and lists it; closed ledgers without entries leave the list in the same change.
/// Nothing may be written to it before this returns.
pub(super) async fn create_next(
    shared: &Shared,
    first_index: u64,
    news: Arc<WriterNews>,
) -> Result<LedgerWriter, RollError> {
    let _state = in_state!("managed ledger: the next ledger");
    let writer = create(shared, news).await?;
    let ledger = writer.ledger();
    let mut held = shared.record.lock().await;
    let mut next = lock(&shared.chain).clone();
    let is_empty = |entries, closed| entries == 0 && closed;
    let dropped: Vec<_> =
        next.ledgers.iter().filter(|l| is_empty(l.entries, l.closed)).map(|l| l.id).collect();
    next.ledgers.retain(|l| !is_empty(l.entries, l.closed));
    next.push(ledger, first_index, shared.claim.epoch);
    if mutant!("B1") {
        shared.delete_ledgers(&dropped).await;
    }
    match shared.write_record(&mut held, &next).await {
        Ok(()) => {}
        Err(CasError::Unknown(_)) if mutant!("B-roll") => {}
        Err(CasError::Conflict) => {
            reached!("managed ledger: lost the list to another owner");
            drop(writer);
            // It never held an entry and certainly is in no list.
            shared.delete_ledgers(&[ledger]).await;
            return Err(RollError::Deposed("the topic's record was changed".to_owned()));
        }
        // It may be listed: the next owner finds out.
        Err(CasError::Unknown(error)) => return Err(RollError::Storage(error)),
    }
    {
        // Trimming holds the record's lock too, so only the end can have changed, and that is ours.
        let mut chain = lock(&shared.chain);
        chain.ledgers.retain(|l| !is_empty(l.entries, l.closed));
        chain.push(ledger, first_index, shared.claim.epoch);
    }
    drop(held);
    shared.delete_ledgers(&dropped).await;
    Ok(writer)
}

async fn create(shared: &Shared, news: Arc<WriterNews>) -> Result<LedgerWriter, RollError> {
    let environment = &shared.environment;
    let purpose = format!("topic {}", shared.name);
    let mut last = String::new();
    for attempt in 0..TRIES {
        let events = Arc::<WriterNews>::clone(&news);
        match environment.ledgers.create(environment.config.quorum, &purpose, events).await {
            Ok(writer) => return Ok(writer),
            Err(error) => last = error.to_string(),
        }
        environment.runtime.clock.sleep(pause(attempt)).await;
    }
    Err(RollError::Storage(last))
}

/// Number of entries up to `last_entry`.
pub(super) fn count_up_to(last_entry: EntryId) -> u64 {
    u64::try_from(last_entry.0 + 1).unwrap_or(0)
}
