//! A place in the journal.

/// Where a group begins: all groups before it are behind this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bookie) struct JournalPosition {
    /// Sequence number of the group that begins here; grows by one a group, across files and restarts.
    pub sequence: u64,
    /// The file.
    pub file: u64,
    /// Offset in it.
    pub offset: u64,
}
