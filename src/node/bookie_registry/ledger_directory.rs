//! The bookie's port to the list of ledgers, over metadata.

use async_trait::async_trait;

use crate::bookie::{LedgerDirectory, LedgerPresence};
use crate::domain::LedgerId;
use crate::ledger::LedgerRecord;
use crate::metadata::Metadata;

/// Asks metadata for a ledger's record.
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
}
