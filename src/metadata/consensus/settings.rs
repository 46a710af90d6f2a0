//! The machine's bounds.

use crate::domain::MEBIBYTE;

/// Bounds of one member. All of a group should have the same, but need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Ask whether an election could be won before beginning one, and refuse to help depose a leader that is
    /// heard. Neither is needed for safety: off only where every election is to be explored.
    pub pre_vote: bool,
    /// Most entries in one `Append`.
    pub append_entries: usize,
    /// An `Append` is closed when its entries cost this much; one entry may go beyond it.
    pub append_bytes: usize,
    /// Unanswered `Append`s with entries to one member; more wait.
    pub inflight: usize,
    /// Proposals not yet committed; one more is refused as busy.
    pub proposals: usize,
    /// Reads not yet confirmed; one more is refused as busy.
    pub reads: usize,
    /// How many entries a learner may be behind when it becomes a voter.
    pub promotion_lag: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pre_vote: true,
            append_entries: 1024,
            append_bytes: MEBIBYTE as usize,
            inflight: 16,
            proposals: 8192,
            reads: 8192,
            promotion_lag: 1024,
        }
    }
}
