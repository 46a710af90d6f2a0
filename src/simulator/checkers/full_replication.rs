//! P1 after repair: every confirmed entry of every ledger is on its whole write set, byte for byte the same.
//! Reads each bookie directly. Entries of an open ledger's last fragment are its
//! writer's business and are left out.

use std::collections::BTreeMap;

use super::{Holder, client_of};
use crate::domain::{BookieId, Entry, EntryId, ReadRequest};
use crate::ledger::{LedgerRecord, LedgerState};
use crate::metadata::{Metadata, MetadataError, Pages};

/// Entries read at once.
const BATCH: u32 = 256;

/// How many copies were compared, or the first place where replication is not complete. `bookies` are all
/// bookies of the cluster, running.
pub async fn full_replication(metadata: &Metadata, bookies: &[Holder]) -> Result<u64, String> {
    let mut compared = 0;
    let mut pages = Pages::new(metadata, LedgerRecord::PREFIX);
    let unlisted = |error: MetadataError| format!("no list of ledgers: {error}");
    while let Some(page) = pages.next().await.map_err(unlisted)? {
        for (key, versioned) in &page {
            let record: LedgerRecord = serde_json::from_slice(&versioned.value)
                .map_err(|error| format!("record {key}: {error}"))?;
            compared += check_ledger(&record, bookies).await?;
        }
    }
    Ok(compared)
}

async fn check_ledger(record: &LedgerRecord, bookies: &[Holder]) -> Result<u64, String> {
    let mut compared = 0;
    for (index, fragment) in record.fragments.iter().enumerate() {
        let next = record.fragments.get(index + 1).map(|next| next.first_entry.previous());
        let last = match (record.state, next) {
            (LedgerState::Closed { last_entry, .. }, Some(next)) => last_entry.min(next),
            (LedgerState::Closed { last_entry, .. }, None) => last_entry,
            (_, Some(next)) => next,
            (_, None) => continue,
        };
        let mut originals: BTreeMap<EntryId, Entry> = BTreeMap::new();
        for holder in fragment.ensemble.iter().copied() {
            let mut next = fragment.first_entry;
            while next <= last {
                if !record.write_set(fragment, next).contains(&holder) {
                    next = next.next();
                    continue;
                }
                let run = read(record, bookies, holder, next, last).await?;
                for entry in run.into_iter().take_while(|entry| entry.entry <= last) {
                    next = entry.entry.next();
                    compared += 1;
                    let original = originals.entry(entry.entry).or_insert_with(|| entry.clone());
                    if *original != entry {
                        let place = format!("{}:{}", record.ledger, entry.entry);
                        return Err(format!("{place} on {holder} differs from another copy"));
                    }
                }
            }
        }
    }
    Ok(compared)
}

/// At least one entry, from `first` on.
async fn read(
    record: &LedgerRecord,
    bookies: &[Holder],
    holder: BookieId,
    first: EntryId,
    last: EntryId,
) -> Result<Vec<Entry>, String> {
    let place = format!("{}:{first} ({})", record.ledger, record.purpose);
    let Some(bookie) = client_of(bookies, holder) else {
        return Err(format!("{place} is to be on {holder}, which is gone"));
    };
    let request = ReadRequest {
        ledger: record.ledger,
        creator: record.creator,
        first,
        entries_max: BATCH.min(u32::try_from(last.0 - first.0 + 1).unwrap_or(BATCH)),
        bytes_max: 1024 * 1024,
        fence: false,
    };
    bookie.read(request).await.map_err(|error| format!("{place} on {holder}: {error}"))
}
