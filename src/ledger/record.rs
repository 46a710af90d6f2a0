//! A ledger's record in metadata: who holds what, and whether it still grows.
//! Stored as JSON under [`LedgerRecord::key`]; changed by compare-and-set only.

use serde::{Deserialize, Serialize};

use crate::domain::{BookieId, CreatorToken, EntryId, LedgerId};

/// Replication of a ledger: `ensemble >= write >= ack >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// Bookies an open fragment is spread over (E).
    pub ensemble: u32,
    /// Copies sent of each entry (Qw).
    pub write: u32,
    /// Synced copies that make an entry complete (Qa).
    pub ack: u32,
}

/// A quorum that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quorum {ensemble}/{write}/{ack} is not ensemble >= write >= ack >= 1")]
pub struct QuorumError {
    /// Ensemble size asked for.
    pub ensemble: u32,
    /// Write quorum asked for.
    pub write: u32,
    /// Ack quorum asked for.
    pub ack: u32,
}

impl Quorum {
    /// One copy, synced: a standalone node.
    pub const SINGLE: Self = Self { ensemble: 1, write: 1, ack: 1 };

    /// A checked quorum.
    pub const fn new(ensemble: u32, write: u32, ack: u32) -> Result<Self, QuorumError> {
        if ensemble >= write && write >= ack && ack >= 1 {
            Ok(Self { ensemble, write, ack })
        } else {
            Err(QuorumError { ensemble, write, ack })
        }
    }

    /// Answers within a write set after which no ack quorum can consist of the others only:
    /// `(Qw - Qa) + 1`.
    pub const fn coverage(self) -> u32 {
        self.write - self.ack + 1
    }
}

/// Where a ledger is in its life. Moves forward only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum LedgerState {
    /// Its writer may append.
    Open,
    /// Someone is finding its end; its writer can no longer close it or change ensembles.
    InRecovery,
    /// Immutable.
    Closed {
        /// The last entry, [`EntryId::NONE`] if empty.
        last_entry: EntryId,
        /// Bytes of payload.
        length: u64,
    },
}

/// The ensemble from `first_entry` on, until the next fragment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// First entry written to this ensemble.
    pub first_entry: EntryId,
    /// The ensemble, in striping order, all distinct.
    pub ensemble: Vec<BookieId>,
}

/// A ledger's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// Format of this record; 1.
    pub format: u32,
    /// The ledger.
    pub ledger: LedgerId,
    /// Who created it.
    pub creator: CreatorToken,
    /// Its replication.
    pub quorum: Quorum,
    /// Where it is in its life.
    #[serde(flatten)]
    pub state: LedgerState,
    /// Fragments by rising `first_entry`, the first at 0.
    pub fragments: Vec<Fragment>,
    /// What it was made for, for people and repair tools: for example `topic persistent://…`.
    pub purpose: String,
}

impl LedgerRecord {
    /// Prefix of all ledger records.
    pub const PREFIX: &'static str = "/ledgers/";

    /// Key of a ledger's record; keys sort like ids.
    pub fn key(ledger: LedgerId) -> String {
        format!("{}{:020}", Self::PREFIX, ledger.0)
    }

    /// The fragment that holds `entry`.
    pub fn fragment_of(&self, entry: EntryId) -> Option<&Fragment> {
        self.fragments.iter().rev().find(|fragment| fragment.first_entry <= entry)
    }

    /// The bookies that hold `entry` of `fragment`: indices `(entry + k) mod E` for `k` in `0..Qw`.
    pub fn write_set(&self, fragment: &Fragment, entry: EntryId) -> Vec<BookieId> {
        let size = fragment.ensemble.len().max(1);
        let start = usize::try_from(entry.0.max(0)).unwrap_or(0);
        (0..self.quorum.write as usize)
            .filter_map(|k| fragment.ensemble.get((start + k) % size).copied())
            .collect()
    }
}
