//! Names of ledgers and of the entries in them.

use serde::{Deserialize, Serialize};

/// A ledger's id: from one cluster-wide increasing generator, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LedgerId(pub u64);

impl std::fmt::Display for LedgerId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// An entry's place in its ledger: dense from 0. [`EntryId::NONE`] (-1) means "no entry yet",
/// the last add confirmed of an empty ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(pub i64);

impl EntryId {
    /// Before the first entry.
    pub const NONE: Self = Self(-1);
    /// The first entry of every ledger.
    pub const FIRST: Self = Self(0);

    /// The entry after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The entry before this one; [`EntryId::NONE`] before the first.
    pub const fn previous(self) -> Self {
        Self(self.0 - 1)
    }
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}
