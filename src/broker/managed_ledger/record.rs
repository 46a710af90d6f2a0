//! A topic's record in metadata: which ledgers make up its log, in order. JSON under `/topics/<name>`,
//! changed by compare-and-set only; each owner raises `epoch`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::chain::{Chain, ChainLedger};
use super::stream::StreamState;
use crate::domain::{LedgerId, WallTime};
use crate::mutant;

const FORMAT: u32 = 1;

/// One listed ledger. Counts are right once `closed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedLedger {
    id: LedgerId,
    entries: u64,
    bytes: u64,
    first_index: u64,
    /// Entries of the topic before it, those of ledgers that are gone included. Records of before that was kept
    /// count from the first ledger they list.
    #[serde(default)]
    first_number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    publish_min: Option<WallTime>,
    closed: bool,
    /// The topic's epoch when it was listed; 0 in records of before that was kept.
    #[serde(default)]
    epoch: u64,
}

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TopicRecord {
    pub(super) format: u32,
    /// Raised by each owner that takes the topic over.
    pub(super) epoch: u64,
    /// Drawn by that owner, so that two who claim at once never write the same record.
    #[serde(default)]
    pub(super) owner: u64,
    /// Index of the next message, right if every ledger is closed.
    pub(super) next_index: u64,
    ledgers: Vec<ListedLedger>,
    /// What it is told as a stream, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<StreamState>,
    #[serde(default)]
    pub(super) properties: Vec<(String, String)>,
}

impl TopicRecord {
    pub(super) fn new(
        (epoch, owner): (u64, u64),
        chain: &Chain,
        next_index: u64,
        properties: Vec<(String, String)>,
    ) -> Self {
        let ledgers = chain
            .ledgers
            .iter()
            .map(|ledger| ListedLedger {
                id: ledger.id,
                // The open ledger's count is not known to anybody but its writer.
                entries: if ledger.closed { ledger.entries } else { 0 },
                bytes: if ledger.closed { ledger.bytes } else { 0 },
                first_index: ledger.first_index,
                first_number: Some(ledger.first_number),
                publish_min: if ledger.closed { ledger.publish_min } else { None },
                closed: ledger.closed,
                epoch: ledger.epoch,
            })
            .collect();
        let mut stream = chain.stream;
        if let Some(stream) = &mut stream
            && mutant!("G-token")
        {
            stream.token = 0;
        }
        Self { format: FORMAT, epoch, owner, next_index, ledgers, stream, properties }
    }

    pub(super) fn chain(&self) -> Vec<ChainLedger> {
        let mut before = 0;
        let mut chain = Vec::with_capacity(self.ledgers.len());
        for ledger in &self.ledgers {
            let stored = ledger.first_number.filter(|_| !mutant!("G-base"));
            let first_number = stored.unwrap_or(before);
            before = first_number + ledger.entries;
            chain.push(ChainLedger {
                id: ledger.id,
                entries: ledger.entries,
                bytes: ledger.bytes,
                first_index: ledger.first_index,
                first_number,
                publish_min: ledger.publish_min,
                closed: ledger.closed,
                epoch: ledger.epoch,
            });
        }
        chain
    }

    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("topic record of format {}", record.format));
        }
        if !record.ledgers.is_sorted_by(|one, two| one.id < two.id) {
            return Err("topic record lists ledgers out of order".to_owned());
        }
        Ok(record)
    }
}
