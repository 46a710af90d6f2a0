//! Limits and times of repair.

use std::time::Duration;

/// Limits and times of repair. Every duration is of this node's monotonic clock, and none is an input to
/// a decision that safety rests on: too short ones only cost copies and fenced writers.
#[derive(Clone, Debug)]
pub struct RepairConfig {
    /// A bookie not registered for this long counts as lost.
    pub lost_bookie_grace: Duration,
    /// An open ledger whose last fragment names a lost or leaving bookie is fenced and closed after this.
    pub open_tail_grace: Duration,
    /// How often the auditor compares all ledgers with the list of bookies.
    pub audit_interval: Duration,
    /// How often the auditor reads what bookies must hold; the pause between the end of one round and the
    /// beginning of the next.
    pub check_interval: Duration,
    /// Places looked at in each fragment for each of its bookies by a check; 0: every entry.
    pub check_samples: u32,
    /// How often a replicator looks for marked ledgers; also its pause after one it could not repair.
    pub replicator_interval: Duration,
    /// Entries copied or read in one request.
    pub batch_entries: u32,
    /// Payload bytes of the same.
    pub batch_bytes: u32,
    /// Requests of a copy that may be in flight; with `batch_bytes` this bounds its memory.
    pub requests_max: usize,
    /// Payload bytes a second that one replicator, or one check, moves.
    pub bytes_per_second: u64,
    /// A lock or a leadership vanishes this long after its holder was last heard of.
    pub session_time_to_live: Duration,
}

impl Default for RepairConfig {
    fn default() -> Self {
        Self {
            lost_bookie_grace: Duration::from_secs(60),
            open_tail_grace: Duration::from_secs(30),
            audit_interval: Duration::from_secs(30),
            check_interval: Duration::from_secs(6 * 3600),
            check_samples: 16,
            replicator_interval: Duration::from_secs(5),
            batch_entries: 256,
            batch_bytes: 1024 * 1024,
            requests_max: 4,
            bytes_per_second: 32 * 1024 * 1024,
            session_time_to_live: Duration::from_secs(10),
        }
    }
}
