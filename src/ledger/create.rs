//! Creating a ledger: an id nobody had, bookies that take writes, one put that must find nothing there.

use super::ensemble::{ENSEMBLE_MAX, Spread, choose_ensemble};
use super::records::Records;
use super::{BookiePool, CreateError, Fragment, LedgerRecord, LedgerState};
use crate::domain::{CreatorToken, EntryId};
use crate::metadata::MetadataError;
use crate::reached;
use crate::runtime::Random;

/// Attempts to put one record whose outcome stays unknown.
const ATTEMPTS_MAX: u32 = 5;

/// Puts the record of a new, open ledger. No bookie is contacted.
pub(super) async fn create_record(
    records: &Records,
    bookies: &dyn BookiePool,
    random: &Random,
    spread: Spread,
    purpose: &str,
) -> Result<LedgerRecord, CreateError> {
    let Spread { quorum, racks_min } = spread;
    if quorum.ensemble > ENSEMBLE_MAX {
        let reason = format!("ensemble of {} is over {ENSEMBLE_MAX}", quorum.ensemble);
        return Err(MetadataError::Refused(reason).into());
    }
    let Some(ensemble) = choose_ensemble(bookies, spread, random) else {
        let available = u32::try_from(bookies.writable().len()).unwrap_or(u32::MAX);
        return Err(match available >= quorum.ensemble {
            true => CreateError::NotEnoughRacks { needed: racks_min },
            false => CreateError::NotEnoughBookies { needed: quorum.ensemble, available },
        });
    };
    let record = LedgerRecord {
        format: 1,
        ledger: records.next_id().await?,
        creator: CreatorToken(random.next()),
        quorum,
        state: LedgerState::Open,
        fragments: vec![Fragment { first_entry: EntryId::FIRST, ensemble }],
        purpose: purpose.to_owned(),
    };
    for _ in 0..ATTEMPTS_MAX {
        if records.create(&record).await? {
            return Ok(record);
        }
        // Someone is there, or the answer was lost: the creator tells whether it is us.
        match records.load(record.ledger).await? {
            Some(found) if found.record.creator == record.creator => {
                reached!("ledger: created although the answer was lost");
                return Ok(record);
            }
            Some(_) => {
                let reason = format!("ledger id {} was given twice", record.ledger);
                return Err(MetadataError::Refused(reason).into());
            }
            None => {}
        }
    }
    Err(MetadataError::OutcomeUnknown("the record's put got no answer".to_owned()).into())
}
