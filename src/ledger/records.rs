//! Reading and changing ledger records: compare-and-set, and what to make of an unknown outcome.

use bytes::Bytes;

use super::LedgerRecord;
use crate::domain::LedgerId;
use crate::metadata::{Expect, Metadata, MetadataError, Revision};

/// A record with the version its next change must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionedRecord {
    pub(super) record: LedgerRecord,
    pub(super) version: Revision,
}

/// What a compare-and-set of a record came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Swap {
    /// Done.
    Done(Revision),
    /// Someone else changed it first, or the answer was lost: read it again and decide anew.
    ReadAgain,
}

/// The records of ledgers.
#[derive(Clone)]
pub(super) struct Records {
    metadata: Metadata,
}

impl Records {
    pub(super) fn new(metadata: Metadata) -> Self {
        Self { metadata }
    }

    /// The record as it is now.
    pub(super) async fn load(
        &self,
        ledger: LedgerId,
    ) -> Result<Option<VersionedRecord>, MetadataError> {
        let key = LedgerRecord::key(ledger);
        let Some(found) = self.metadata.get(&key).await? else { return Ok(None) };
        let record: LedgerRecord = serde_json::from_slice(&found.value)
            .map_err(|error| MetadataError::Refused(format!("record {key}: {error}")))?;
        let shape_is_good = record.ledger == ledger
            && record.format == 1
            && record.fragments.first().is_some_and(|fragment| fragment.first_entry.0 == 0)
            && record
                .fragments
                .iter()
                .all(|fragment| fragment.ensemble.len() == record.quorum.ensemble as usize)
            && record.fragments.is_sorted_by(|a, b| a.first_entry < b.first_entry);
        if !shape_is_good {
            return Err(MetadataError::Refused(format!("record {key} is malformed")));
        }
        Ok(Some(VersionedRecord { record, version: found.version }))
    }

    /// Puts a new record; false if the key exists or the outcome is unknown (compare the creator).
    pub(super) async fn create(&self, record: &LedgerRecord) -> Result<bool, MetadataError> {
        match self.put(record, Expect::Absent).await {
            Ok(_) => Ok(true),
            Err(MetadataError::VersionMismatch { .. } | MetadataError::OutcomeUnknown(_)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces the record if it is still at `version`.
    pub(super) async fn swap(
        &self,
        record: &LedgerRecord,
        version: Revision,
    ) -> Result<Swap, MetadataError> {
        match self.put(record, Expect::Version(version)).await {
            Ok(version) => Ok(Swap::Done(version)),
            Err(MetadataError::VersionMismatch { .. } | MetadataError::OutcomeUnknown(_)) => {
                Ok(Swap::ReadAgain)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes the record. Removing what is not there is success.
    pub(super) async fn delete(&self, ledger: LedgerId) -> Result<(), MetadataError> {
        match self.metadata.delete(&LedgerRecord::key(ledger), Expect::Any).await {
            Err(MetadataError::VersionMismatch { found: None, .. }) => Ok(()),
            other => other,
        }
    }

    /// A ledger id nobody had before.
    pub(super) async fn next_id(&self) -> Result<LedgerId, MetadataError> {
        self.metadata.next_number("/ledger-id").await.map(LedgerId)
    }

    async fn put(&self, record: &LedgerRecord, expect: Expect) -> Result<Revision, MetadataError> {
        let value = serde_json::to_vec(record)
            .map_err(|error| MetadataError::Refused(format!("record does not encode: {error}")))?;
        self.metadata.put(&LedgerRecord::key(record.ledger), Bytes::from(value), expect, None).await
    }
}
