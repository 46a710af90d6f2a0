//! Every planted bug: its name in the code (`mutant!("…")`), what it is, and what catches it.
//! `tidy` holds this list against the sources.

use super::plan::Topology;

/// A planted bug.
#[derive(Debug)]
pub struct Mutant {
    /// Its name in the code.
    pub name: &'static str,
    /// What it does wrong.
    pub what: &'static str,
    /// What has to catch it.
    pub hunt: Hunt,
}

/// What has to catch a planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hunt {
    /// A campaign of simulated runs.
    Simulator {
        /// The topology it is hunted on.
        topology: Topology,
        /// After how many seeds it was caught when the table in `docs/internals/mutants.md` was made; 0:
        /// not caught yet. A test run hunts those that were.
        caught_after: u64,
    },
    /// A module of property tests in the test binary `proptests`: what breaks cannot come about in a run, or
    /// far too rarely.
    Property(&'static str),
}

const fn on(
    topology: Topology,
    name: &'static str,
    caught_after: u64,
    what: &'static str,
) -> Mutant {
    Mutant { name, what, hunt: Hunt::Simulator { topology, caught_after } }
}

const fn by(property: &'static str, name: &'static str, what: &'static str) -> Mutant {
    Mutant { name, what, hunt: Hunt::Property(property) }
}

use Topology::{Cluster, Standalone, Swarm};

/// Every planted bug.
pub const MUTANTS: &[Mutant] = &[
    on(Standalone, "B-ack-early", 1, "an acknowledgement is answered before it is durable"),
    on(Swarm, "B-claim", 0, "a topic's record is claimed without looking at its version"),
    on(Swarm, "B-deposed", 0, "nobody tells a broker that its bundle was taken"),
    on(Swarm, "B-epoch", 5, "a new owner keeps the topic's epoch"),
    on(Swarm, "B-fence", 2, "a new owner reads the last ledger without fencing its writer"),
    on(Swarm, "B-late-load", 0, "a topic loaded after its bundle was given up is served"),
    on(Swarm, "B-owner-put", 0, "a bundle is taken without looking at its record's version"),
    on(Swarm, "B-release-early", 0, "a bundle is released before its topics are closed"),
    on(Cluster, "B-roll", 0, "entries go to the next ledger before the chain names it"),
    on(Swarm, "B-stale-lookup", 0, "a lookup is answered from memory for ever"),
    on(Cluster, "B1", 0, "empty ledgers are deleted before the chain drops them"),
    on(Standalone, "B10", 0, "trimming does not look at cursors again"),
    on(Standalone, "B13", 2, "a reset drops a cursor's properties"),
    on(Standalone, "B16", 1, "bit sets of a batch are overwritten, not combined"),
    on(Standalone, "B20", 0, "only the newest pending read has a deadline"),
    on(Standalone, "B22", 1, "mark-delete is stored ahead of what was acknowledged"),
    by("managed_ledger_model", "B4", "answers of an old ledger count for the new one"),
    on(Standalone, "B5", 2, "a refused entry stays in the queue"),
    by("cursor_model", "B7", "ranges below mark-delete stall it"),
    on(Standalone, "D-ackset", 1, "the unacknowledged part of a batch is skipped"),
    on(Standalone, "D-lost", 2, "what a gone consumer held is not given to others"),
    on(Standalone, "D-permit", 1, "permits are not taken for batches"),
    on(Standalone, "D1", 3, "a cancelled read leaves its flag set"),
    by("dispatch_model", "D2", "an old read clears the flag of a newer one"),
    on(Standalone, "D8", 3, "no consumer epoch on deliveries"),
    on(Cluster, "F-crc", 1, "the checksum of a publish is not verified"),
    on(Standalone, "F-order", 1, "receipts leave out of order"),
    on(Standalone, "F-permits", 1, "permits are counted twice"),
    by("streams_model", "G-base", "trimming forgets how many entries went before"),
    by("managed_ledger_model", "G-number", "the expected number is not compared"),
    by("managed_ledger_model", "G-session", "entries behind a refused one are taken"),
    by("streams_model", "G-token", "the fencing token is not in the record"),
    on(Cluster, "L-early", 2, "an entry is confirmed at one copy"),
    on(Cluster, "L-hole", 20, "entries are confirmed out of order"),
    by("recovery_model", "L1", "recovery reads do not fence"),
    on(Cluster, "L10", 0, "a conflict is resolved with a stale record"),
    on(Cluster, "L17", 0, "a replacement is in the ensemble already"),
    by("recovery_model", "L2", "recovery ignores the floor of the last fragment"),
    on(Cluster, "L20", 13, "bookies not heard count as heard"),
    on(Cluster, "L22", 2, "one absent copy ends recovery"),
    by("recovery_model", "L23", "recovery adds carry an advancing last add confirmed"),
    on(Cluster, "L25", 0, "any conflict on close is fatal"),
    on(Cluster, "L29", 0, "a reader does not check which entry it got"),
    on(Cluster, "L4", 0, "recovery reads follow the changed ensemble"),
    by("recovery_model", "L5", "a failed recovery add closes the ledger"),
    by("ledger_writer_model", "L7", "copies on a replaced bookie still count"),
    by("ledger_writer_model", "L8", "entries are confirmed while the ensemble changes"),
    on(Cluster, "M-cas", 0, "compare-and-set ignores the version"),
    on(Standalone, "M-fsync", 0, "metadata trusts a log read back after its sync failed"),
    by("consensus_mutants", "M-install-members", "an installed snapshot loses the membership"),
    by("consensus_mutants", "M-joint", "a joint membership is content with the new half"),
    by("consensus_mutants", "M-old-term", "an entry of an older term is committed by counting"),
    by("consensus_mutants", "M-read", "a read is answered without proof of leadership"),
    by("consensus_mutants", "M-snapshot-members", "a snapshot is taken with an older membership"),
    by("consensus_mutants", "M-stale-vote", "a vote is given to a log that is behind"),
    by("consensus_mutants", "M-truncate", "an append cuts off a tail that matches"),
    on(Standalone, "M-unsynced", 0, "metadata answers before its sync"),
    by("consensus_mutants", "M-unsynced-append", "a follower answers before it has written"),
    on(Cluster, "M-watch", 2, "a watch misses what changed while it began"),
    by("consensus_mutants", "M1", "a proposal is answered before it is committed"),
    by("consensus_mutants", "M19", "a follower compares indexes, not terms"),
    by("consensus_mutants", "M2", "a follower commits what this append has not validated"),
    on(Swarm, "M25", 0, "a member's log is dropped before the snapshot is durable"),
    by("consensus_mutants", "M5", "a vote is not durable before it is given"),
    by("consensus_mutants", "M7", "a membership change begins before the one before is settled"),
    by("consensus_mutants", "M8", "a membership change skips the joint membership"),
    on(Standalone, "P-order", 1, "outcomes come out of publishing order"),
    by("repair_model", "R-early", "a record is changed before the copy is complete"),
    by("repair_model", "R-gc", "copies are dropped without a word to who made them"),
    on(Cluster, "R-gc-open", 0, "copies of a ledger in recovery are dropped"),
    by("repair_model", "R-hole", "an entry that cannot be read is left out of a copy"),
    by("repair_model", "R-lock", "a ledger locked by another replicator is repaired"),
    by("repair_model", "R-marker", "a marker is removed after a failed attempt"),
    on(Cluster, "R-stale", 0, "a conflict with a repair is answered with a stale record"),
    by("repair_model", "R-tail", "an open tail is moved without a fence"),
    by("repair_model", "R-verify", "copies are made of what was not verified"),
    on(Standalone, "S-fsync", 0, "a bookie trusts a group read back after its sync failed"),
    on(Standalone, "S-mark", 8, "the mark moves before the entry log is synced"),
    on(Cluster, "S1", 0, "a fence is not journaled"),
    on(Cluster, "S17", 0, "a bad journal record is taken for the end"),
    on(Cluster, "S19", 0, "a missing cookie is stamped anew"),
    on(Cluster, "S26", 0, "a negative fence answer does not wait for the journal"),
    on(Cluster, "S28", 0, "a checkpoint without entries skips the flags"),
    on(Standalone, "S29", 0, "a failed flush loses its place in line"),
    on(Cluster, "S3", 0, "the fence check is outside the critical section"),
    on(Cluster, "S31", 0, "a corrupt copy is answered as absent"),
    on(Standalone, "S8", 8, "every second group is answered without a sync"),
    on(Cluster, "T10", 0, "a time-out is told as not stored"),
];
