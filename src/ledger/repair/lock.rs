//! Locks on ledgers under repair: under a session, so they vanish with their holder. A lock saves work,
//! nothing else: two replicators at one ledger copy the same bytes, and the record's compare-and-set lets
//! one of them change it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::LedgerId;
use crate::metadata::{Expect, Metadata, MetadataError, Revision, SessionId};
use crate::{mutant, reached};

/// Who repairs a ledger and how far it is. JSON; the value of the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairProgress {
    /// Format of this record; 1.
    pub format: u32,
    /// The ledger.
    pub ledger: LedgerId,
    /// The node that repairs it.
    pub holder: String,
    /// Drawn for this lock.
    pub nonce: u64,
    /// Entries copied so far.
    pub entries_copied: u64,
    /// Payload bytes of the same.
    pub bytes_copied: u64,
}

impl RepairProgress {
    /// Prefix of all locks.
    pub const PREFIX: &'static str = "/repair/locks/";

    /// Key of a ledger's lock.
    pub fn key(ledger: LedgerId) -> String {
        format!("{}{:020}", Self::PREFIX, ledger.0)
    }
}

/// A lock that was taken.
pub(super) struct LedgerLock {
    metadata: Metadata,
    session: SessionId,
    progress: RepairProgress,
    version: Revision,
}

impl LedgerLock {
    /// Takes the lock; `None` if someone else holds it.
    pub(super) async fn take(
        metadata: &Metadata,
        session: SessionId,
        ledger: LedgerId,
        holder: &str,
        nonce: u64,
    ) -> Result<Option<Self>, MetadataError> {
        let progress = RepairProgress {
            format: 1,
            ledger,
            holder: holder.to_owned(),
            nonce,
            entries_copied: 0,
            bytes_copied: 0,
        };
        let expect = if mutant!("R-lock") { Expect::Any } else { Expect::Absent };
        let key = RepairProgress::key(ledger);
        let version = match metadata.put(&key, encode(&progress)?, expect, Some(session)).await {
            Ok(version) => version,
            Err(MetadataError::VersionMismatch { .. }) => {
                reached!("repair: a ledger is locked by another replicator");
                return Ok(None);
            }
            Err(MetadataError::OutcomeUnknown(_)) => {
                let found = metadata.get(&key).await?;
                let is_ours = |value: &[u8]| {
                    serde_json::from_slice::<RepairProgress>(value).is_ok_and(|p| p == progress)
                };
                match found {
                    Some(found) if is_ours(&found.value) => found.version,
                    _ => return Ok(None),
                }
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Self { metadata: metadata.clone(), session, progress, version }))
    }

    /// Publishes how far the repair is. A failure leaves an old figure.
    pub(super) async fn publish(&mut self, entries: u64, bytes: u64) {
        self.progress.entries_copied += entries;
        self.progress.bytes_copied += bytes;
        let Ok(value) = encode(&self.progress) else { return };
        let key = RepairProgress::key(self.progress.ledger);
        let expect = Expect::Version(self.version);
        match self.metadata.put(&key, value, expect, Some(self.session)).await {
            Ok(version) => self.version = version,
            Err(error) => tracing::debug!(%error, "progress of a repair not published"),
        }
    }

    /// Gives the lock back. If that fails it vanishes with the session.
    pub(super) async fn release(self) {
        let key = RepairProgress::key(self.progress.ledger);
        if let Err(error) = self.metadata.delete(&key, Expect::Version(self.version)).await {
            tracing::debug!(%error, "a repair's lock was not released");
        }
    }
}

fn encode(progress: &RepairProgress) -> Result<Bytes, MetadataError> {
    serde_json::to_vec(progress)
        .map(Bytes::from)
        .map_err(|error| MetadataError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ledger::testing::{FakeMetadata, in_runtime};

    /// Whoever hears nothing must look: taken for another's, his own lock would keep everybody away until his session
    /// ends.
    #[test]
    fn a_lock_whose_answer_was_lost_is_told_by_its_nonce() {
        in_runtime(|| async {
            let fake = Arc::new(FakeMetadata::default());
            let metadata: Metadata = Arc::<FakeMetadata>::clone(&fake);
            let take =
                |nonce| LedgerLock::take(&metadata, SessionId(1), LedgerId(7), "node", nonce);
            fake.lose_answers(1);
            let mut mine = take(1).await.unwrap().unwrap();
            mine.publish(3, 30).await;
            assert!(take(2).await.unwrap().is_none(), "it is held");
            fake.lose_puts(Some(RepairProgress::PREFIX));
            assert!(take(2).await.unwrap().is_none(), "what is found is another's");
            mine.release().await;
            assert!(take(2).await.unwrap().is_none(), "nothing was put");
            fake.lose_puts(None);
            assert!(take(2).await.unwrap().is_some());
        });
    }
}
