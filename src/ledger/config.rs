//! Limits and time-outs of the ledger client.

use std::time::Duration;

use super::Quorum;

/// Limits and time-outs of the ledger client. Every duration is of this node's monotonic clock.
#[derive(Clone, Debug)]
pub struct LedgerConfig {
    /// An entry not complete after this ends its writer: the outcome of everything pending is unknown.
    pub add_timeout: Duration,
    /// A read or fence request to one bookie not answered after this counts as `Unknown`.
    pub read_timeout: Duration,
    /// After this a read also asks the next replica (speculative read).
    pub speculative_read_delay: Duration,
    /// Appended and not yet confirmed entries of one writer; `append` refuses beyond it.
    pub pending_entries_max: usize,
    /// Bytes of the same.
    pub pending_bytes_max: usize,
    /// Last add confirmed is told to the ensemble after this much idleness.
    pub explicit_last_add_confirmed_interval: Duration,
    /// Entries read at once by recovery.
    pub recovery_read_batch: u32,
    /// Distinct racks every write set must touch, at most the write quorum. With 1 ledgers are spread over
    /// racks as far as it goes; with more none is created, and no bookie replaced, where it does not.
    pub racks_min: u32,
    /// With fewer bookies than a ledger's ensemble, but at least its write quorum, it is spread over those there
    /// are. Without, it is not created.
    pub opportunistic_striping: bool,
}

impl LedgerConfig {
    /// Fewest bookies that take writes with which a ledger of this quorum is created.
    pub const fn bookies_min(&self, quorum: Quorum) -> u32 {
        if self.opportunistic_striping { quorum.write } else { quorum.ensemble }
    }
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self {
            add_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(5),
            speculative_read_delay: Duration::from_millis(500),
            pending_entries_max: 50_000,
            pending_bytes_max: 128 * 1024 * 1024,
            explicit_last_add_confirmed_interval: Duration::from_millis(500),
            recovery_read_batch: 64,
            racks_min: 1,
            opportunistic_striping: true,
        }
    }
}
