//! Closing a ledger at its writer's end: one compare-and-set, and what a conflict means.

use std::time::Duration;

use crate::domain::{EntryId, LedgerId};
use crate::ledger::records::{Records, Swap};
use crate::ledger::{CloseError, ClosedLedger, LedgerState};
use crate::metadata::MetadataError;
use crate::runtime::Clock;
use crate::{invariant, mutant, reached};

/// Attempts before the outcome is given up as unknown.
const ATTEMPTS_MAX: u32 = 10;
/// Pause after an attempt whose outcome is not certain.
const PAUSE: Duration = Duration::from_millis(50);

/// Closes an open ledger at `last_entry`. A version conflict alone is no failure: repair may have edited
/// an older fragment.
pub(super) async fn close_record(
    records: &Records,
    clock: &Clock,
    ledger: LedgerId,
    last_entry: EntryId,
    length: u64,
) -> Result<ClosedLedger, CloseError> {
    let closed = ClosedLedger { ledger, last_entry, length };
    let mut last_error = MetadataError::OutcomeUnknown("too many conflicts".to_owned());
    for _ in 0..ATTEMPTS_MAX {
        let found = match records.load(ledger).await {
            Ok(Some(found)) => found,
            Ok(None) => return Err(CloseError::Deleted),
            Err(error) => {
                last_error = error;
                clock.sleep(PAUSE).await;
                continue;
            }
        };
        let mut record = found.record;
        match record.state {
            LedgerState::Closed { last_entry: stored, length: stored_length } => {
                invariant!(
                    stored >= last_entry,
                    "ledger {ledger} was closed at {stored}, {last_entry} is committed"
                );
                if stored == last_entry && stored_length == length {
                    return Ok(closed);
                }
                reached!("ledger writer: closed elsewhere");
                tracing::info!(%ledger, own = %last_entry, last_entry = %stored, "closed by another");
                return Err(CloseError::ClosedElsewhere { last_entry: stored });
            }
            LedgerState::InRecovery => {
                reached!("ledger writer: close found recovery");
                tracing::info!(%ledger, %last_entry, "not closed: another recovers it");
                return Err(CloseError::InRecovery);
            }
            LedgerState::Open => {}
        }
        record.state = LedgerState::Closed { last_entry, length };
        match records.swap(&record, found.version).await {
            Ok(Swap::Done(_)) => {
                tracing::debug!(%ledger, %last_entry, length, "closed by its writer");
                return Ok(closed);
            }
            Ok(Swap::ReadAgain) => {
                if mutant!("L25") {
                    return Err(CloseError::Metadata(last_error));
                }
                last_error = MetadataError::OutcomeUnknown("the record kept changing".to_owned());
            }
            Err(error @ MetadataError::Refused(_)) => return Err(error.into()),
            Err(error) => last_error = error,
        }
        clock.sleep(PAUSE).await;
    }
    Err(CloseError::Metadata(last_error))
}
