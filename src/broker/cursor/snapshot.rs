//! The stored forms: the entries of a cursor's ledger, and its record in metadata. Both are JSON.
//!
//! Small states are written whole with every entry. A large one is followed by entries that hold what came to
//! it since, each with the way back to it: the last entry and at most [`CHANGES_MAX`] before it are the state.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::{LedgerId, Position};

const FORMAT: u32 = 1;
/// Changes written before the whole state is again: bounds what a recovery reads.
pub(super) const CHANGES_MAX: u32 = 64;

/// A cursor's state at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorSnapshot {
    /// Everything up to here is acknowledged.
    pub mark_delete: Position,
    /// Acknowledged beyond it: ledger, first, last.
    pub ranges: Vec<(LedgerId, u32, u32)>,
    /// Batches acknowledged in part: bit set = not yet.
    pub partial: Vec<(Position, Vec<u64>)>,
}

impl CursorSnapshot {
    /// Takes in what came later.
    pub fn extend(&mut self, change: CursorSnapshot) {
        self.mark_delete = change.mark_delete;
        self.ranges.extend(change.ranges);
        self.partial.extend(change.partial);
    }
}

/// An entry of a cursor's ledger: the whole state, or what came to it since the entry before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum CursorEntry {
    Whole(CursorRecord),
    Change(CursorChange),
}

/// What came to a cursor since the entry before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CursorChange {
    pub(super) format: u32,
    /// How many entries before this one the whole state is that this and those between build on.
    pub(super) back: u32,
    pub(super) change: CursorSnapshot,
}

impl CursorEntry {
    pub(super) fn change(back: u32, change: CursorSnapshot) -> Self {
        Self::Change(CursorChange { format: FORMAT, back, change })
    }

    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let entry: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let format = match &entry {
            Self::Whole(record) => record.format,
            Self::Change(change) => change.format,
        };
        if format != FORMAT {
            return Err(format!("cursor entry of format {format}"));
        }
        Ok(entry)
    }
}

/// The record of a cursor in metadata; without `ledger`, a whole state in its ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CursorRecord {
    pub(super) format: u32,
    /// The ledger whose last entry is newer than `snapshot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ledger: Option<LedgerId>,
    pub(super) snapshot: CursorSnapshot,
    #[serde(default)]
    pub(super) properties: Vec<(String, String)>,
    /// Differs in every record written, so that a lost answer can be told from someone else's record.
    #[serde(default)]
    pub(super) nonce: u64,
}

impl CursorRecord {
    pub(super) fn new(
        ledger: Option<LedgerId>,
        snapshot: CursorSnapshot,
        properties: Vec<(String, String)>,
        nonce: u64,
    ) -> Self {
        Self { format: FORMAT, ledger, snapshot, properties, nonce }
    }

    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("cursor record of format {}", record.format));
        }
        Ok(record)
    }
}

/// Prefix of the records of a topic's cursors. Names are escaped so that none is another's prefix.
pub(super) fn prefix(topic: &str) -> String {
    format!("/cursors/{}/", escape(topic))
}

/// Key of a cursor's record.
pub(super) fn key(topic: &str, name: &str) -> String {
    format!("{}{}", prefix(topic), escape(name))
}

fn escape(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// The name in a key.
pub(super) fn name_of(topic: &str, key: &str) -> Option<String> {
    let escaped = key.strip_prefix(&prefix(topic))?;
    Some(escaped.replace("%2F", "/").replace("%25", "%"))
}
