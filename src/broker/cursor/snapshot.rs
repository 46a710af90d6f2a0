//! The stored forms: the entries of a cursor's ledger, and its record in metadata. Both are JSON.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::{LedgerId, Position};

const FORMAT: u32 = 1;

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

/// The record of a cursor, and (without `ledger`) each entry of its ledger.
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
