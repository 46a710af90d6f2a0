//! Tries to break Seawall: one seed is one process, one world, one history, one verdict. It speaks to the
//! cluster as a client and reaches inside only through the node's handles.

/// One invariant a file.
pub mod checkers;
/// What clients did and were told.
pub mod history;
/// What one seed means.
pub mod plan;
/// What one run found.
pub mod report;
