//! P5: a deposed owner can do no harm. Each epoch of a topic belongs to one broker, and what a receipt names
//! lies before the end that the next owner found.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Finding, History};
use crate::metadata::Metadata;

/// A ledger as the topic's record lists it after the run.
#[derive(Clone, Debug, Deserialize)]
pub struct ListedLedger {
    /// The ledger's id.
    pub id: u64,
    /// Its entries, right once `closed`.
    pub entries: u64,
    /// Its end is decided.
    pub closed: bool,
    /// The topic's epoch when it was listed.
    pub epoch: u64,
}

/// What is said of a receipt for what is no part of its ledger.
pub const BEHIND_ITS_END: &str = "the ledger ends after";

#[derive(Deserialize)]
struct Record {
    epoch: u64,
    ledgers: Vec<ListedLedger>,
}

/// The chain of a topic after the run: the epoch of its last owner, and its ledgers.
#[derive(Clone, Debug, Default)]
pub struct FinalChain {
    /// The epoch of the last owner.
    pub epoch: u64,
    /// Its ledgers, in order.
    pub ledgers: Vec<ListedLedger>,
}

/// Reads a topic's record; `None` if there is none, or metadata does not answer.
pub async fn final_chain(metadata: &Metadata, topic: &str) -> Option<FinalChain> {
    let found = metadata.get(&format!("/topics/{topic}")).await.ok()??;
    let record: Record = serde_json::from_slice(&found.value).ok()?;
    Some(FinalChain { epoch: record.epoch, ledgers: record.ledgers })
}

/// Receipts of one epoch come from one broker, epochs rise along the chain, and no receipt lies beyond a
/// ledger's end. Receipts of ledgers that were deleted since are not looked at.
pub fn single_writer(history: &History) -> Finding {
    let mut finding = Finding::default();
    for (topic, chain) in &history.final_chains {
        for pair in chain.ledgers.windows(2) {
            finding.compared += 1;
            if let [one, two] = pair
                && (one.epoch > two.epoch || one.id >= two.id)
            {
                let detail = format!("{topic}: {two:?} follows {one:?}");
                finding.broken("P5", "single_writer", detail);
            }
        }
        let last = chain.ledgers.last().map_or(0, |ledger| ledger.epoch);
        if last > chain.epoch {
            let detail =
                format!("{topic}: a ledger of epoch {last} in a record of {}", chain.epoch);
            finding.broken("P5", "single_writer", detail);
        }
    }
    let mut writers: BTreeMap<(&str, u64), BTreeSet<&str>> = BTreeMap::new();
    for (number, record, place) in history.committed() {
        let Some(chain) = history.final_chains.get(&record.topic) else { continue };
        let id = place.position.ledger.0;
        let Some(ledger) = chain.ledgers.iter().find(|ledger| ledger.id == id) else { continue };
        finding.compared += 1;
        if ledger.closed && place.position.entry.0 >= ledger.entries as i64 {
            let detail = format!(
                "{}: message {} has a receipt for {place}, but {BEHIND_ITS_END} {} entries",
                record.topic, number.0, ledger.entries
            );
            finding.broken("P5", "single_writer", detail);
        }
        let key = (record.topic.as_str(), ledger.epoch);
        writers.entry(key).or_default().insert(record.broker.as_str());
    }
    for ((topic, epoch), brokers) in writers {
        if brokers.len() > 1 {
            let detail = format!("{topic}: {brokers:?} all confirmed messages of epoch {epoch}");
            finding.broken("P5", "single_writer", detail);
        }
    }
    finding
}
