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
    /// A property test, named as in the test binary `proptests`: what breaks cannot come about in a run, or
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

use Topology::{Cluster, Standalone, Swarm};

/// Every planted bug.
pub const MUTANTS: &[Mutant] = &[
    on(Standalone, "B-ack-early", 2, "an acknowledgement is answered before it is durable"),
    on(Swarm, "B-claim", 0, "a topic's record is claimed without looking at its version"),
    on(Swarm, "B-deposed", 0, "nobody tells a broker that its bundle was taken"),
    on(Swarm, "B-epoch", 0, "a new owner keeps the topic's epoch"),
    on(Swarm, "B-fence", 0, "a new owner reads the last ledger without fencing its writer"),
    on(Swarm, "B-late-load", 0, "a topic loaded after its bundle was given up is served"),
    on(Swarm, "B-owner-put", 0, "a bundle is taken without looking at its record's version"),
    on(Swarm, "B-release-early", 0, "a bundle is released before its topics are closed"),
    on(Cluster, "B-roll", 0, "entries go to the next ledger before the chain names it"),
    on(Swarm, "B-stale-lookup", 0, "a lookup is answered from memory for ever"),
    on(Cluster, "B1", 0, "empty ledgers are deleted before the chain drops them"),
    on(Standalone, "B10", 0, "trimming does not look at cursors again"),
    on(Standalone, "B13", 0, "a reset drops a cursor's properties"),
    on(Standalone, "B16", 1, "bit sets of a batch are overwritten, not combined"),
    on(Standalone, "B20", 0, "only the newest pending read has a deadline"),
    on(Standalone, "B22", 0, "mark-delete is stored ahead of what was acknowledged"),
    on(Cluster, "B4", 0, "answers of an old ledger count for the new one"),
    on(Standalone, "B5", 0, "a refused entry stays in the queue"),
    on(Standalone, "B7", 0, "ranges below mark-delete stall it"),
    on(Standalone, "D-ackset", 1, "the unacknowledged part of a batch is skipped"),
    on(Standalone, "D-lost", 1, "what a gone consumer held is not given to others"),
    on(Standalone, "D-permit", 0, "permits are not taken for batches"),
    on(Standalone, "D1", 0, "a cancelled read leaves its flag set"),
    on(Standalone, "D2", 0, "an old read clears the flag of a newer one"),
    on(Standalone, "D8", 0, "no consumer epoch on deliveries"),
    on(Cluster, "F-crc", 0, "the checksum of a publish is not verified"),
    on(Standalone, "F-order", 0, "receipts leave out of order"),
    on(Standalone, "F-permits", 0, "permits are counted twice"),
    on(Cluster, "L-early", 2, "an entry is confirmed at one copy"),
    on(Cluster, "L-hole", 2, "entries are confirmed out of order"),
    on(Cluster, "L1", 0, "recovery reads do not fence"),
    on(Cluster, "L10", 0, "a conflict is resolved with a stale record"),
    on(Cluster, "L17", 0, "a replacement is in the ensemble already"),
    on(Cluster, "L2", 0, "recovery ignores the floor of the last fragment"),
    on(Cluster, "L20", 0, "bookies not heard count as heard"),
    on(Cluster, "L22", 0, "one absent copy ends recovery"),
    on(Cluster, "L23", 0, "recovery adds carry an advancing last add confirmed"),
    on(Cluster, "L25", 0, "any conflict on close is fatal"),
    on(Cluster, "L29", 0, "a reader does not check which entry it got"),
    on(Cluster, "L4", 0, "recovery reads follow the changed ensemble"),
    on(Cluster, "L5", 0, "a failed recovery add closes the ledger"),
    on(Cluster, "L7", 0, "copies on a replaced bookie still count"),
    on(Cluster, "L8", 0, "entries are confirmed while the ensemble changes"),
    on(Cluster, "M-cas", 0, "compare-and-set ignores the version"),
    on(Standalone, "M-fsync", 0, "metadata trusts a log read back after its sync failed"),
    on(Cluster, "M-install-members", 0, "an installed snapshot loses the membership"),
    on(Cluster, "M-joint", 0, "a joint membership is content with the new half"),
    on(Cluster, "M-old-term", 0, "an entry of an older term is committed by counting"),
    on(Cluster, "M-read", 0, "a read is answered without proof of leadership"),
    on(Cluster, "M-snapshot-members", 0, "a snapshot is taken with an older membership"),
    on(Cluster, "M-stale-vote", 0, "a vote is given to a log that is behind"),
    on(Cluster, "M-truncate", 0, "an append cuts off a tail that matches"),
    on(Standalone, "M-unsynced", 0, "metadata answers before its sync"),
    on(Cluster, "M-unsynced-append", 0, "a follower answers before it has written"),
    on(Cluster, "M-watch", 0, "a watch misses what changed while it began"),
    on(Cluster, "M1", 0, "a proposal is answered before it is committed"),
    on(Cluster, "M19", 0, "a follower compares indexes, not terms"),
    on(Cluster, "M2", 0, "a follower commits what this append has not validated"),
    on(Cluster, "M25", 0, "a member's log is dropped before the snapshot is durable"),
    on(Cluster, "M5", 0, "a vote is not durable before it is given"),
    on(Cluster, "M7", 0, "a membership change begins before the one before is settled"),
    on(Cluster, "M8", 0, "a membership change skips the joint membership"),
    on(Standalone, "P-order", 0, "outcomes come out of publishing order"),
    on(Cluster, "R-early", 0, "a record is changed before the copy is complete"),
    on(Cluster, "R-gc", 0, "copies are dropped without a word to who made them"),
    on(Cluster, "R-gc-open", 0, "copies of a ledger in recovery are dropped"),
    on(Cluster, "R-hole", 0, "an entry that cannot be read is left out of a copy"),
    on(Cluster, "R-lock", 0, "a ledger locked by another replicator is repaired"),
    on(Cluster, "R-marker", 0, "a marker is removed after a failed attempt"),
    on(Cluster, "R-stale", 0, "a conflict with a repair is answered with a stale record"),
    on(Cluster, "R-tail", 0, "an open tail is moved without a fence"),
    on(Cluster, "R-verify", 0, "copies are made of what was not verified"),
    on(Standalone, "S-fsync", 0, "a bookie trusts a group read back after its sync failed"),
    on(Standalone, "S-mark", 0, "the mark moves before the entry log is synced"),
    on(Cluster, "S1", 0, "a fence is not journaled"),
    on(Cluster, "S17", 0, "a bad journal record is taken for the end"),
    on(Cluster, "S19", 0, "a missing cookie is stamped anew"),
    on(Cluster, "S26", 0, "a negative fence answer does not wait for the journal"),
    on(Cluster, "S28", 0, "a checkpoint without entries skips the flags"),
    on(Standalone, "S29", 0, "a failed flush loses its place in line"),
    on(Cluster, "S3", 0, "the fence check is outside the critical section"),
    on(Cluster, "S31", 0, "a corrupt copy is answered as absent"),
    on(Standalone, "S8", 0, "every second group is answered without a sync"),
    on(Cluster, "T10", 0, "a time-out is told as not stored"),
];
