//! The bookie's port to the list of ledgers, over metadata.

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::bookie::{LedgerDirectory, LedgerPresence};
use crate::domain::LedgerId;
use crate::ledger::LedgerRecord;
use crate::metadata::Metadata;

/// Records asked for at once when many ledgers are looked up.
const PAGE: usize = 128;

/// Asks metadata for ledgers' records.
pub struct MetadataLedgers(Metadata);

impl MetadataLedgers {
    /// The list of ledgers in this store.
    pub fn new(metadata: Metadata) -> Self {
        Self(metadata)
    }
}

#[async_trait]
impl LedgerDirectory for MetadataLedgers {
    async fn presence(&self, ledger: LedgerId) -> LedgerPresence {
        // Gone only when the store says so itself: data is deleted on this word.
        match self.0.get(&LedgerRecord::key(ledger)).await {
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
    async fn presences(&self, ledgers: &[LedgerId]) -> Vec<LedgerPresence> {
        let mut answers = Vec::with_capacity(ledgers.len());
        while let Some(next) = ledgers.get(answers.len()) {
            let after = next.0.checked_sub(1).map(|before| LedgerRecord::key(LedgerId(before)));
            let page = match self.0.list(LedgerRecord::PREFIX, after.as_deref(), PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, "cannot tell which ledgers exist");
                    answers.resize(ledgers.len(), LedgerPresence::Unknown);
                    return answers;
                }
            };
            let end = page.last().filter(|_| page.len() >= PAGE).map(|(key, _)| key.as_str());
            let found: BTreeSet<&str> = page.iter().map(|(key, _)| key.as_str()).collect();
            for ledger in &ledgers[answers.len()..] {
                let key = LedgerRecord::key(*ledger);
                if end.is_some_and(|end| key.as_str() > end) {
                    break;
                }
                let exists = found.contains(key.as_str());
                answers.push(if exists { LedgerPresence::Exists } else { LedgerPresence::Gone });
            }
        }
        answers
    }
}
