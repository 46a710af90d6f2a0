//! Under-replicated markers: which ledgers need repair, and what was seen. Written by the auditor and by
//! bookies that found damage of their own; removed by the replicator that found nothing left to do, on
//! condition that nobody wrote the marker since it began.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::{BookieId, LedgerId};
use crate::metadata::{Expect, Metadata, MetadataError, Pages, Revision};
use crate::reached;

/// Conflicts in a row before giving up; the next round of whoever saw the flaw writes it again.
const ATTEMPTS_MAX: u32 = 5;

/// What is wrong with a bookie's copies of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlawKind {
    /// The bookie has not been registered for the grace time.
    Lost,
    /// The bookie is asked to leave.
    Draining,
    /// The bookie does not hold an entry it must hold.
    Absent,
    /// The bookie's copy of an entry is damaged.
    Corrupt,
}

/// One bookie's flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flaw {
    /// Whose copies.
    pub bookie: BookieId,
    /// What is wrong.
    pub kind: FlawKind,
}

/// A ledger that needs repair. JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairMarker {
    /// Format of this record; 1.
    pub format: u32,
    /// The ledger.
    pub ledger: LedgerId,
    /// What was seen, in order, each once.
    pub flaws: Vec<Flaw>,
}

/// A marker with the version its removal must name.
pub(super) struct VersionedMarker {
    pub(super) marker: RepairMarker,
    pub(super) version: Revision,
}

impl RepairMarker {
    /// Prefix of all markers.
    pub const PREFIX: &'static str = "/repair/ledgers/";

    /// Key of a ledger's marker; keys sort like ids.
    pub fn key(ledger: LedgerId) -> String {
        format!("{}{:020}", Self::PREFIX, ledger.0)
    }

    /// Adds what was seen. True if the marker must be written: something is new, or something was seen
    /// (not computed from the list of bookies, which is done again and again) and a repair that is under
    /// way may have looked there before.
    fn add(&mut self, flaws: &[Flaw]) -> bool {
        let before = self.flaws.len();
        self.flaws.extend_from_slice(flaws);
        self.flaws.sort_unstable();
        self.flaws.dedup();
        let was_seen = |flaw: &Flaw| matches!(flaw.kind, FlawKind::Absent | FlawKind::Corrupt);
        self.flaws.len() > before || flaws.iter().any(was_seen)
    }
}

/// The markers in metadata.
#[derive(Clone)]
pub struct Markers {
    metadata: Metadata,
}

impl Markers {
    /// The markers of this store.
    pub fn new(metadata: Metadata) -> Self {
        Self { metadata }
    }

    /// Notes flaws of a ledger, beside those noted already.
    pub async fn note(&self, ledger: LedgerId, flaws: &[Flaw]) -> Result<(), MetadataError> {
        let key = RepairMarker::key(ledger);
        for _ in 0..ATTEMPTS_MAX {
            let found = self.load(ledger).await?;
            let expect = found.as_ref().map_or(Expect::Absent, |f| Expect::Version(f.version));
            let mut marker =
                found.map_or(RepairMarker { format: 1, ledger, flaws: Vec::new() }, |f| f.marker);
            if !marker.add(flaws) {
                return Ok(());
            }
            let value = serde_json::to_vec(&marker)
                .map_err(|error| MetadataError::Refused(error.to_string()))?;
            match self.metadata.put(&key, Bytes::from(value), expect, None).await {
                Ok(_) => return Ok(()),
                Err(MetadataError::VersionMismatch { .. } | MetadataError::OutcomeUnknown(_)) => {
                    reached!("repair: a marker was written by another at once");
                }
                Err(error) => return Err(error),
            }
        }
        Err(MetadataError::OutcomeUnknown("the marker kept changing".to_owned()))
    }

    /// All markers, in ledger order. A marker that cannot be read is left out and logged.
    pub async fn list(&self) -> Result<Vec<RepairMarker>, MetadataError> {
        let mut markers = Vec::new();
        let mut pages = Pages::new(&self.metadata, RepairMarker::PREFIX);
        while let Some(page) = pages.next().await? {
            markers.extend(page.iter().filter_map(|(key, value)| decode(key, &value.value)));
        }
        Ok(markers)
    }

    pub(super) async fn load(
        &self,
        ledger: LedgerId,
    ) -> Result<Option<VersionedMarker>, MetadataError> {
        let key = RepairMarker::key(ledger);
        let Some(found) = self.metadata.get(&key).await? else { return Ok(None) };
        // What cannot be understood is taken for "something is wrong": it is written anew.
        let marker = decode(&key, &found.value).unwrap_or(RepairMarker {
            format: 1,
            ledger,
            flaws: Vec::new(),
        });
        Ok(Some(VersionedMarker { marker, version: found.version }))
    }

    /// Removes a marker unless it was written since `version`.
    pub(super) async fn clear(
        &self,
        ledger: LedgerId,
        version: Revision,
    ) -> Result<(), MetadataError> {
        match self.metadata.delete(&RepairMarker::key(ledger), Expect::Version(version)).await {
            Err(MetadataError::VersionMismatch { .. }) => {
                reached!("repair: a marker was written while its ledger was repaired");
                Ok(())
            }
            other => other,
        }
    }
}

fn decode(key: &str, value: &[u8]) -> Option<RepairMarker> {
    serde_json::from_slice(value)
        .inspect_err(|error| tracing::warn!(key, %error, "not a repair marker"))
        .ok()
}
