//! The two compare-and-sets of a recovery: claiming the ledger before anything is asked of a bookie, and
//! closing it after everything found is safe. Between them recovery writes nothing to metadata.

use super::machine::RecoveredEnd;
use crate::domain::LedgerId;
use crate::ledger::records::{Records, Swap, VersionedRecord};
use crate::ledger::{ClosedLedger, LedgerState, RecoveryError};
use crate::metadata::MetadataError;
use crate::{mutant, reached};

/// Conflicts in a row before giving up; each is someone else's progress.
const ATTEMPTS_MAX: u32 = 10;

/// What claiming found.
pub(super) enum Claim {
    /// The record, in recovery now: the writer can no longer close it or change its ensemble.
    Claimed(VersionedRecord),
    /// Closed already.
    Closed(ClosedLedger),
}

/// Moves the record to "in recovery", unless it is there or further already.
pub(super) async fn claim(records: &Records, ledger: LedgerId) -> Result<Claim, RecoveryError> {
    for _ in 0..ATTEMPTS_MAX {
        let found = load(records, ledger).await?;
        match found.record.state {
            LedgerState::Closed { last_entry, length } => {
                return Ok(Claim::Closed(ClosedLedger { ledger, last_entry, length }));
            }
            LedgerState::InRecovery => return Ok(Claim::Claimed(found)),
            LedgerState::Open => {}
        }
        let mut record = found.record;
        record.state = LedgerState::InRecovery;
        if let Swap::Done(version) = records.swap(&record, found.version).await? {
            return Ok(Claim::Claimed(VersionedRecord { record, version }));
        }
        reached!("ledger recovery: claim read again");
    }
    Err(too_many_conflicts())
}

/// Closes the record at the end found. If another recovery closed it first, its end holds: what this one
/// found beyond is garbage nobody reads. If repair edited older fragments, its edits are kept.
pub(super) async fn close(
    records: &Records,
    claimed: VersionedRecord,
    end: &RecoveredEnd,
) -> Result<ClosedLedger, RecoveryError> {
    let ledger = claimed.record.ledger;
    let mut current = claimed;
    for _ in 0..ATTEMPTS_MAX {
        let mut record = current.record;
        match record.state {
            LedgerState::Closed { last_entry, length } => {
                reached!("ledger recovery: another recovery closed first");
                let own = end.last_entry;
                tracing::info!(%ledger, %last_entry, length, %own, "another recovery closed first");
                if mutant!("L-own-end") {
                    return Ok(ClosedLedger { ledger, last_entry: own, length: end.length });
                }
                return Ok(ClosedLedger { ledger, last_entry, length });
            }
            LedgerState::Open => return Err(malformed("is open again")),
            LedgerState::InRecovery => {}
        }
        let first = end.tail.first().map(|fragment| fragment.first_entry);
        if record.fragments.last().map(|fragment| fragment.first_entry) != first {
            return Err(malformed("has another last fragment"));
        }
        let is_changed = end.tail.len() > 1 || record.fragments.last() != end.tail.first();
        if is_changed && !mutant!("L-old-tail") {
            record.fragments.pop();
            record.fragments.extend(end.tail.iter().cloned());
        }
        record.state = LedgerState::Closed { last_entry: end.last_entry, length: end.length };
        if let Swap::Done(_) = records.swap(&record, current.version).await? {
            let (last_entry, length) = (end.last_entry, end.length);
            tracing::info!(%ledger, %last_entry, length, "recovered and closed");
            return Ok(ClosedLedger { ledger, last_entry, length });
        }
        reached!("ledger recovery: close read again");
        current = load(records, ledger).await?;
    }
    Err(too_many_conflicts())
}

async fn load(records: &Records, ledger: LedgerId) -> Result<VersionedRecord, RecoveryError> {
    records.load(ledger).await?.ok_or(RecoveryError::NoLedger(ledger))
}

fn malformed(what: &str) -> RecoveryError {
    MetadataError::Refused(format!("the record in recovery {what}")).into()
}

fn too_many_conflicts() -> RecoveryError {
    MetadataError::OutcomeUnknown("the record kept changing".to_owned()).into()
}
