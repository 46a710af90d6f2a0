//! A place in a topic.

use serde::{Deserialize, Serialize};

use super::{EntryId, LedgerId};

/// One entry of a topic's chain of ledgers. Ledger ids only grow along the chain, so positions are
/// totally ordered within a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The ledger.
    pub ledger: LedgerId,
    /// The entry in it; [`EntryId::NONE`] stands for "just before the ledger's first entry".
    pub entry: EntryId,
}

impl Position {
    /// A position from its two parts.
    pub const fn new(ledger: LedgerId, entry: EntryId) -> Self {
        Self { ledger, entry }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.ledger, self.entry)
    }
}
