//! The bookie's port to the list of ledgers, over metadata.

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::bookie::{LedgerDirectory, LedgerPresence};
use crate::domain::{BookieId, LedgerId};
use crate::ledger::repair::RepairMarker;
use crate::ledger::{LedgerRecord, LedgerState};
use crate::metadata::{Expect, Metadata, Versioned};
use crate::{mutant, reached};

/// Records asked for at once when many ledgers are looked up.
const PAGE: usize = 128;

/// Asks metadata for ledgers' records.
pub struct MetadataLedgers(Metadata);

impl MetadataLedgers {
    /// The list of ledgers in this store.
    pub fn new(metadata: Metadata) -> Self {
        Self(metadata)
    }

    /// True while a ledger may be under repair: what was copied here may be named soon. Only saves work;
    /// a marker may come the moment after.
    async fn is_marked(&self, ledger: LedgerId) -> bool {
        if mutant!("R-gc") {
            return false;
        }
        !matches!(self.0.get(&RepairMarker::key(ledger)).await, Ok(None))
    }
}

/// True if the record can change no more but for which bookies hold it, and names this one nowhere. A
/// ledger that is not closed may be written back to a bookie that no record names yet.
fn is_elsewhere(found: &Versioned, bookie: BookieId) -> bool {
    serde_json::from_slice::<LedgerRecord>(&found.value).is_ok_and(|record| {
        let is_closed = matches!(record.state, LedgerState::Closed { .. });
        (is_closed || mutant!("R-gc-open"))
            && record.fragments.iter().all(|fragment| !fragment.ensemble.contains(&bookie))
    })
}

#[async_trait]
impl LedgerDirectory for MetadataLedgers {
    async fn presence(&self, ledger: LedgerId, bookie: BookieId) -> LedgerPresence {
        // Gone only when the store says so itself: data is deleted on this word.
        match self.0.get(&LedgerRecord::key(ledger)).await {
            Ok(Some(found)) if is_elsewhere(&found, bookie) && !self.is_marked(ledger).await => {
                LedgerPresence::Elsewhere
            }
            Ok(Some(_)) => LedgerPresence::Exists,
            Ok(None) => LedgerPresence::Gone,
            Err(error) => {
                tracing::debug!(%ledger, %error, "cannot tell whether the ledger exists");
                LedgerPresence::Unknown
            }
        }
    }

    /// Pages through the records rather than asking for each: what lies between two records of a page does not
    /// exist, by the store's own word.
    async fn presences(&self, ledgers: &[LedgerId], bookie: BookieId) -> Vec<LedgerPresence> {
        let mut answers = Vec::with_capacity(ledgers.len());
        while let Some(next) = ledgers.get(answers.len()) {
            let after = next.0.checked_sub(1).map(|before| LedgerRecord::key(LedgerId(before)));
            let page = match self.0.list(LedgerRecord::PREFIX, after.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, "cannot tell which ledgers exist");
                    let rest =
                        if mutant!("S13") { LedgerPresence::Gone } else { LedgerPresence::Unknown };
                    answers.resize(ledgers.len(), rest);
                    return answers;
                }
            };
            let end = page.last().filter(|_| page.len() >= PAGE).map(|(key, _)| key.as_str());
            let found: BTreeMap<&str, &Versioned> =
                page.iter().map(|(key, found)| (key.as_str(), found)).collect();
            for ledger in &ledgers[answers.len()..] {
                let key = LedgerRecord::key(*ledger);
                if end.is_some_and(|end| key.as_str() > end) {
                    break;
                }
                answers.push(match found.get(key.as_str()) {
                    Some(found) if is_elsewhere(found, bookie) => LedgerPresence::Elsewhere,
                    Some(_) => LedgerPresence::Exists,
                    None => LedgerPresence::Gone,
                });
            }
        }
        for (ledger, answer) in ledgers.iter().zip(&mut answers) {
            if *answer == LedgerPresence::Elsewhere && self.is_marked(*ledger).await {
                *answer = LedgerPresence::Exists;
            }
        }
        answers
    }

    /// Writes the record again as it is: its new version fails the compare-and-set of every repair that
    /// copied to this bookie under an older one.
    async fn release(&self, ledger: LedgerId, bookie: BookieId) -> bool {
        let key = LedgerRecord::key(ledger);
        let Ok(Some(found)) = self.0.get(&key).await else { return false };
        if !is_elsewhere(&found, bookie) {
            reached!("registry: a ledger came back while it was to be dropped");
            return false;
        }
        if mutant!("R-gc") {
            return true;
        }
        self.0.put(&key, found.value, Expect::Version(found.version), None).await.is_ok()
    }
}
