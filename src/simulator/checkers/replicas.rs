//! P1, P2: all copies of a closed ledger's entries are equal, and there are enough of them.
//! Reads each bookie directly.

use super::{Finding, Holder, client_of};
use crate::domain::{BookieId, EntryId, ReadError, ReadRequest};
use crate::ledger::{LedgerRecord, LedgerState};
use crate::metadata::{Metadata, Pages};

/// Checks every closed ledger in metadata against the bookies given (all bookies of the cluster, running).
/// `may_rot` is the bookie whose copies may be damaged: a damaged copy there still counts as a copy.
pub async fn replicas_agree(
    metadata: &Metadata,
    bookies: &[Holder],
    may_rot: Option<BookieId>,
) -> Finding {
    let mut finding = Finding::default();
    let mut pages = Pages::new(metadata, LedgerRecord::PREFIX);
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return finding,
            Err(error) => {
                finding.broken(
                    "liveness",
                    "replicas_agree",
                    format!("no list of ledgers: {error}"),
                );
                return finding;
            }
        };
        for (key, versioned) in &page {
            match serde_json::from_slice::<LedgerRecord>(&versioned.value) {
                Ok(record) => check_ledger(&record, bookies, may_rot, &mut finding).await,
                Err(error) => {
                    finding.broken("P7", "replicas_agree", format!("record {key}: {error}"));
                }
            }
        }
    }
}

async fn check_ledger(
    record: &LedgerRecord,
    bookies: &[Holder],
    may_rot: Option<BookieId>,
    finding: &mut Finding,
) {
    let LedgerState::Closed { last_entry, .. } = record.state else { return };
    for id in 0..=last_entry.0 {
        let entry = EntryId(id);
        let Some(fragment) = record.fragment_of(entry) else {
            let detail = format!("{}:{entry} is in no fragment", record.ledger);
            finding.broken("P1", "replicas_agree", detail);
            continue;
        };
        let mut copies = Vec::new();
        let mut holders = 0;
        for holder in record.write_set(fragment, entry) {
            let Some(bookie) = client_of(bookies, holder) else {
                continue;
            };
            let request = ReadRequest {
                ledger: record.ledger,
                creator: record.creator,
                first: entry,
                entries_max: 1,
                bytes_max: 1,
                fence: false,
            };
            match bookie.read(request).await {
                Ok(entries) => {
                    holders += 1;
                    copies.extend(entries.into_iter().take(1));
                }
                Err(ReadError::Absent) => {}
                // A damaged or undecided copy where bits may rot is no loss of ours.
                Err(_) if may_rot == Some(holder) => holders += 1,
                Err(error) => finding.broken(
                    "P7",
                    "replicas_agree",
                    format!("{}:{entry} on {holder}: {error}", record.ledger),
                ),
            }
        }
        finding.compared += 1;
        if holders < record.quorum.ack {
            let detail = format!(
                "{}:{entry} ({}) is on {holders} bookies, ack quorum {}",
                record.ledger, record.purpose, record.quorum.ack
            );
            finding.broken("P1", "replicas_agree", detail);
        }
        if copies.windows(2).any(|pair| pair[0].payload != pair[1].payload) {
            let detail = format!("{}:{entry} differs between bookies", record.ledger);
            finding.broken("P2", "replicas_agree", detail);
        }
    }
}
