//! Bookies asked to leave: a record per bookie that stays until it is taken back. The bookie itself reads
//! it and takes no new entries; repair moves its copies away; once no ledger names it, it may leave.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::BookieId;
use crate::ledger::LedgerRecord;
use crate::metadata::{Expect, Metadata, MetadataError, Pages, Versioned};

/// Conflicts in a row before giving up.
const ATTEMPTS_MAX: u32 = 5;

/// How far a bookie is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainState {
    /// Its copies are being moved.
    Draining,
    /// No ledger names it any more, as the auditor last saw: it may leave.
    Drained,
    /// It has left: it does not register again, and its cookie is gone.
    Decommissioned,
}

/// A bookie asked to leave. JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRecord {
    /// Format of this record; 1.
    pub format: u32,
    /// Which.
    pub bookie: BookieId,
    /// How far it is.
    pub state: DrainState,
}

impl DrainRecord {
    /// Prefix of all of them.
    pub const PREFIX: &'static str = "/drains/";

    /// Key of a bookie's record.
    pub fn key(bookie: BookieId) -> String {
        format!("{}{bookie}", Self::PREFIX)
    }

    /// The record in a value, if it is one.
    pub fn decode(value: &[u8]) -> Option<Self> {
        serde_json::from_slice(value).ok()
    }
}

/// The drain records in metadata.
#[derive(Clone)]
pub struct Drains {
    metadata: Metadata,
}

impl Drains {
    /// The records of this store.
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata }
    }

    /// One bookie's.
    pub async fn get(&self, bookie: BookieId) -> Result<Option<DrainRecord>, MetadataError> {
        let found = self.metadata.get(&DrainRecord::key(bookie)).await?;
        Ok(found.and_then(|found| DrainRecord::decode(&found.value)))
    }

    /// All of them.
    pub async fn list(&self) -> Result<Vec<DrainRecord>, MetadataError> {
        let mut records = Vec::new();
        let mut pages = Pages::new(&self.metadata, DrainRecord::PREFIX);
        while let Some(page) = pages.next().await? {
            records.extend(page.iter().filter_map(|(_, found)| DrainRecord::decode(&found.value)));
        }
        Ok(records)
    }

    /// Asks a bookie to leave. Idempotent.
    pub async fn begin(&self, bookie: BookieId) -> Result<(), MetadataError> {
        let record = DrainRecord { format: 1, bookie, state: DrainState::Draining };
        match self.put(&record, Expect::Absent).await {
            Err(MetadataError::VersionMismatch { .. }) => Ok(()),
            other => other,
        }
    }

    /// Takes the request back; a bookie that has left stays away.
    pub async fn cancel(&self, bookie: BookieId) -> Result<bool, MetadataError> {
        let key = DrainRecord::key(bookie);
        let Some(found) = self.metadata.get(&key).await? else { return Ok(true) };
        if state_of(&found) == Some(DrainState::Decommissioned) {
            return Ok(false);
        }
        match self.metadata.delete(&key, Expect::Version(found.version)).await {
            Err(MetadataError::VersionMismatch { found: None, .. }) => Ok(true),
            other => other.map(|()| true),
        }
    }

    /// Notes how far a bookie is, unless it was taken back or has left.
    pub async fn set(&self, bookie: BookieId, state: DrainState) -> Result<(), MetadataError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(found) = self.metadata.get(&DrainRecord::key(bookie)).await? else {
                return Ok(());
            };
            let before = state_of(&found);
            if before == Some(state) || before == Some(DrainState::Decommissioned) {
                return Ok(());
            }
            let record = DrainRecord { format: 1, bookie, state };
            match self.put(&record, Expect::Version(found.version)).await {
                Err(MetadataError::VersionMismatch { .. } | MetadataError::OutcomeUnknown(_)) => {}
                other => return other,
            }
        }
        Err(MetadataError::OutcomeUnknown("the drain record kept changing".to_owned()))
    }

    async fn put(&self, record: &DrainRecord, expect: Expect) -> Result<(), MetadataError> {
        let value = serde_json::to_vec(record)
            .map_err(|error| MetadataError::Refused(error.to_string()))?;
        let key = DrainRecord::key(record.bookie);
        self.metadata.put(&key, Bytes::from(value), expect, None).await.map(|_| ())
    }
}

fn state_of(found: &Versioned) -> Option<DrainState> {
    DrainRecord::decode(&found.value).map(|record| record.state)
}

/// Whether any ledger's record names the bookie. An error means that nobody knows: never "no".
pub async fn names_bookie(metadata: &Metadata, bookie: BookieId) -> Result<bool, MetadataError> {
    let mut pages = Pages::new(metadata, LedgerRecord::PREFIX);
    while let Some(page) = pages.next().await? {
        for (key, found) in &page {
            let record: LedgerRecord = serde_json::from_slice(&found.value)
                .map_err(|error| MetadataError::Refused(format!("record {key}: {error}")))?;
            if record.fragments.iter().any(|fragment| fragment.ensemble.contains(&bookie)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
