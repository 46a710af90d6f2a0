//! Who a bookie is, and who created a ledger.

use serde::{Deserialize, Serialize};

/// One incarnation of a bookie: drawn at random when its empty disks are first stamped with a cookie.
/// A wiped or swapped disk is another bookie; the address is only where it can be reached now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BookieId(pub u64);

impl std::fmt::Display for BookieId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// Random token drawn by whoever creates a ledger and stored in its record. A bookie binds a ledger to
/// the first token it sees and refuses any other, so two creations of one id can never mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CreatorToken(pub u64);
