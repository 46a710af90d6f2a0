//! Every planted bug: its name in the code (`mutant!("…")`), what it is, and the topology it shows on.
//! `tidy` holds this list against the sources.

use super::plan::Topology;

/// A planted bug.
#[derive(Debug)]
pub struct Mutant {
    /// Its name in the code.
    pub name: &'static str,
    /// What it does wrong.
    pub what: &'static str,
    /// The topology it is hunted on.
    pub topology: Topology,
}

const fn on(topology: Topology, name: &'static str, what: &'static str) -> Mutant {
    Mutant { name, what, topology }
}

use Topology::{Cluster, Standalone};

/// Every planted bug.
pub const MUTANTS: &[Mutant] = &[
    on(Standalone, "B-ack-early", "an acknowledgement is answered before it is durable"),
    on(Cluster, "B-roll", "entries go to the next ledger before the chain names it"),
    on(Cluster, "B1", "empty ledgers are deleted before the chain drops them"),
    on(Standalone, "B10", "trimming does not look at cursors again"),
    on(Standalone, "B13", "a reset drops a cursor's properties"),
    on(Standalone, "B16", "bit sets of a batch are overwritten, not combined"),
    on(Standalone, "B20", "only the newest pending read has a deadline"),
    on(Standalone, "B22", "mark-delete is stored ahead of what was acknowledged"),
    on(Cluster, "B4", "answers of an old ledger count for the new one"),
    on(Standalone, "B5", "a refused entry stays in the queue"),
    on(Standalone, "B7", "ranges below mark-delete stall it"),
    on(Standalone, "D-ackset", "the unacknowledged part of a batch is skipped"),
    on(Standalone, "D-lost", "what a gone consumer held is not given to others"),
    on(Standalone, "D-permit", "permits are not taken for batches"),
    on(Standalone, "D1", "a cancelled read leaves its flag set"),
    on(Standalone, "D2", "an old read clears the flag of a newer one"),
    on(Standalone, "D8", "no consumer epoch on deliveries"),
    on(Cluster, "F-crc", "the checksum of a publish is not verified"),
    on(Standalone, "F-order", "receipts leave out of order"),
    on(Standalone, "F-permits", "permits are counted twice"),
    on(Cluster, "L-early", "an entry is confirmed at one copy"),
    on(Cluster, "L-hole", "entries are confirmed out of order"),
    on(Cluster, "L1", "recovery reads do not fence"),
    on(Cluster, "L10", "a conflict is resolved with a stale record"),
    on(Cluster, "L17", "a replacement is in the ensemble already"),
    on(Cluster, "L2", "recovery ignores the floor of the last fragment"),
    on(Cluster, "L20", "bookies not heard count as heard"),
    on(Cluster, "L22", "one absent copy ends recovery"),
    on(Cluster, "L23", "recovery adds carry an advancing last add confirmed"),
    on(Cluster, "L25", "any conflict on close is fatal"),
    on(Cluster, "L29", "a reader does not check which entry it got"),
    on(Cluster, "L4", "recovery reads follow the changed ensemble"),
    on(Cluster, "L5", "a failed recovery add closes the ledger"),
    on(Cluster, "L7", "copies on a replaced bookie still count"),
    on(Cluster, "L8", "entries are confirmed while the ensemble changes"),
    on(Cluster, "M-cas", "compare-and-set ignores the version"),
    on(Standalone, "M-fsync", "metadata trusts a log read back after its sync failed"),
    on(Standalone, "M-unsynced", "metadata answers before its sync"),
    on(Cluster, "M-watch", "a watch misses what changed while it began"),
    on(Standalone, "P-order", "outcomes come out of publishing order"),
    on(Standalone, "S-fsync", "a bookie trusts a group read back after its sync failed"),
    on(Standalone, "S-mark", "the mark moves before the entry log is synced"),
    on(Cluster, "S1", "a fence is not journaled"),
    on(Cluster, "S17", "a bad journal record is taken for the end"),
    on(Cluster, "S19", "a missing cookie is stamped anew"),
    on(Cluster, "S26", "a negative fence answer does not wait for the journal"),
    on(Cluster, "S28", "a checkpoint without entries skips the flags"),
    on(Standalone, "S29", "a failed flush loses its place in line"),
    on(Cluster, "S3", "the fence check is outside the critical section"),
    on(Cluster, "S31", "a corrupt copy is answered as absent"),
    on(Standalone, "S8", "every second group is answered without a sync"),
    on(Cluster, "T10", "a time-out is told as not stored"),
];
