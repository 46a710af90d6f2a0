//! Creating a ledger: an id nobody had, bookies that take writes, one put that must find nothing there.
//!
//! With fewer bookies than the ensemble asked for, but enough for a write quorum, the ledger is spread over those there
//! are (opportunistic striping): each entry has all its copies, only fewer bookies share the load.

use super::ensemble::{ENSEMBLE_MAX, Spread, choose_ensemble};
use super::records::Records;
use super::{BookiePool, CreateError, Fragment, LedgerRecord, LedgerState, Quorum};
use crate::domain::{CreatorToken, EntryId};
use crate::metadata::MetadataError;
use crate::runtime::Random;
use crate::{mutant, reached};

/// Attempts to put one record whose outcome stays unknown.
const ATTEMPTS_MAX: u32 = 5;

/// Puts the record of a new, open ledger. No bookie is contacted.
pub(super) async fn create_record(
    records: &Records,
    bookies: &dyn BookiePool,
    random: &Random,
    wished: Spread,
    bookies_min: u32,
    purpose: &str,
) -> Result<LedgerRecord, CreateError> {
    let Spread { quorum, racks_min } = wished;
    if quorum.ensemble > ENSEMBLE_MAX {
        let reason = format!("ensemble of {} is over {ENSEMBLE_MAX}", quorum.ensemble);
        return Err(MetadataError::Refused(reason).into());
    }
    let available = u32::try_from(bookies.writable().len()).unwrap_or(u32::MAX);
    let quorum = quorum_within(quorum, available, bookies_min);
    let Some(ensemble) = choose_ensemble(bookies, Spread { quorum, racks_min }, random) else {
        return Err(match available >= quorum.ensemble {
            true => CreateError::NotEnoughRacks { needed: racks_min },
            false => CreateError::NotEnoughBookies { needed: bookies_min, available },
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

/// The quorum over no more bookies than there are, as long as they are enough for every copy of an entry.
fn quorum_within(quorum: Quorum, available: u32, bookies_min: u32) -> Quorum {
    let bookies_min = if mutant!("L-thin") { quorum.ack } else { bookies_min };
    if available >= quorum.ensemble || available < bookies_min {
        return quorum;
    }
    reached!("ledger: spread over fewer bookies than wished for");
    Quorum { ensemble: available, write: quorum.write.min(available), ..quorum }
}
