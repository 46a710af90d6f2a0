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
        /// After how many seeds the longest hunt in the table of `docs/internals/mutants.md` caught it, never 0.
        /// A test run hunts a little farther.
        caught_after: u64,
    },
    /// A module of property tests in the test binary `proptests`: what breaks cannot come about in a run, or
    /// far too rarely.
    Property(&'static str),
    /// Scripted scenarios in the test binary `sim-tests`, by a part of their names: what breaks needs steps in
    /// an order that a random run does not find.
    Scenario(&'static str),
    /// Unit tests of the library, by a part of their names: what breaks is below a node, and one part of it
    /// shows the bug.
    Unit(&'static str),
}

impl Hunt {
    /// The kind and the name of the tests that have to catch it, if they are not simulated runs.
    pub const fn tests(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Simulator { .. } => None,
            Self::Property(tests) => Some(("property", tests)),
            Self::Scenario(tests) => Some(("scenario", tests)),
            Self::Unit(tests) => Some(("unit test", tests)),
        }
    }
}

/// The middle of what several hunts took, the lower one of two; a hunt in vain (`None`) is longer than any, and so none if
/// more than half of them were.
pub fn median(mut hunts: Vec<Option<u64>>) -> Option<u64> {
    hunts.sort_unstable_by_key(|took| took.unwrap_or(u64::MAX));
    hunts.get(hunts.len().saturating_sub(1) / 2).copied().flatten()
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

const fn scenario(tests: &'static str, name: &'static str, what: &'static str) -> Mutant {
    Mutant { name, what, hunt: Hunt::Scenario(tests) }
}

const fn unit(tests: &'static str, name: &'static str, what: &'static str) -> Mutant {
    Mutant { name, what, hunt: Hunt::Unit(tests) }
}

use Topology::{Cluster, Standalone, Swarm};

/// Every planted bug.
pub const MUTANTS: &[Mutant] = &[
    on(Standalone, "B-ack-early", 6, "an acknowledgement is answered before it is durable"),
    scenario(
        "takeover::a_claim_of_an_old_record",
        "B-claim",
        "a topic's record is claimed without looking at its version",
    ),
    scenario(
        "ownership::a_bundle_passed_back_and_forth",
        "B-deposed",
        "nobody tells a broker that its bundle was taken",
    ),
    unit(
        "managed_ledger::tests::who_loses_a_cursor",
        "B-cursor-lost",
        "a topic goes on without a cursor that another owner has taken",
    ),
    on(Swarm, "B-epoch", 20, "a new owner keeps the topic's epoch"),
    on(Swarm, "B-fence", 2, "a new owner reads the last ledger without fencing its writer"),
    scenario(
        "ownership::a_topic_loaded_after",
        "B-late-load",
        "a topic loaded after its bundle was given up is served",
    ),
    unit(
        "broker::tests::lifecycle::a_topic_of_another_owner",
        "B-late-loader",
        "a topic is loaded although its bundle has another owner by now",
    ),
    unit(
        "broker::ownership::tests::owners_never",
        "B-owner-put",
        "a bundle is taken without looking at its record's version",
    ),
    unit(
        "broker::ownership::tests::owners_never",
        "B-release-early",
        "a bundle is released before its topics are closed",
    ),
    unit(
        "managed_ledger::tests::nothing_is_confirmed",
        "B-roll",
        "entries go to the next ledger before the chain names it",
    ),
    unit(
        "managed_ledger::tests::a_deposed_owner_claims",
        "B-stale-loader",
        "cursors are claimed by who loaded the topic before its next owner did",
    ),
    unit(
        "managed_ledger::tests::a_former_owner_cannot",
        "B-stale-owner",
        "a consumer is let in without proof that the topic is still served here",
    ),
    scenario(
        "ownership::another_broker_takes_over",
        "B-stale-lookup",
        "a lookup is answered from memory for ever",
    ),
    unit(
        "managed_ledger::tests::an_empty_ledger_is_kept",
        "B1",
        "empty ledgers are deleted before the chain drops them",
    ),
    unit(
        "managed_ledger::tests::a_cursor_made_during_a_trim",
        "B10",
        "trimming does not look at cursors again",
    ),
    on(Standalone, "B11", 18, "of ledgers nobody needs the oldest are kept"),
    on(Standalone, "B13", 2, "a reset drops a cursor's properties"),
    on(Standalone, "B16", 1, "bit sets of a batch are overwritten, not combined"),
    on(Standalone, "B17", 16, "a closed cursor forgets acknowledged parts of batches"),
    on(Standalone, "B22", 1, "mark-delete is stored ahead of what was acknowledged"),
    by("managed_ledger_model", "B4", "answers of an old ledger count for the new one"),
    on(Standalone, "B5", 2, "a refused entry stays in the queue"),
    by("cursor_model", "B7", "ranges below mark-delete stall it"),
    by("cursor_model", "B8", "mark-delete does not pass what is gone"),
    on(Standalone, "D-ackset", 1, "the unacknowledged part of a batch is skipped"),
    on(Standalone, "D-lost", 2, "what a gone consumer held is not given to others"),
    on(Standalone, "D-permit", 1, "permits are not taken for batches"),
    on(Standalone, "C-connections", 1, "a client that is gone stays connected"),
    scenario(
        "subscribers::joining_can_be_given_up",
        "C-opening",
        "our client leaves a consumer behind that it does not wait for",
    ),
    on(Standalone, "D1", 3, "a cancelled read leaves its flag set"),
    on(Standalone, "D10", 1, "who takes over skips what was not acknowledged"),
    on(Standalone, "D11", 16, "newer entries from memory stand in for older ones on disk"),
    on(Standalone, "D13", 1, "an acknowledgement releases what others hold before it"),
    on(Standalone, "D14", 23, "permits that were taken over still count as waiting"),
    on(Standalone, "D16", 28, "a consumer that leaves takes a newer one out"),
    by("dispatch_model", "D2", "an old read clears the flag of a newer one"),
    on(Standalone, "D8", 3, "no consumer epoch on deliveries"),
    on(Cluster, "F-crc", 1, "the checksum of a publish is not verified"),
    on(Standalone, "F-order", 1, "receipts leave out of order"),
    on(Standalone, "F-permits", 1, "permits are counted twice"),
    by("streams_model", "G-base", "trimming forgets how many entries went before"),
    by("managed_ledger_model", "G-number", "the expected number is not compared"),
    by("managed_ledger_model", "G-session", "entries behind a refused one are taken"),
    by("streams_model", "G-token", "the fencing token is not in the record"),
    on(Cluster, "L-early", 114, "an entry is confirmed at one copy"),
    on(Swarm, "L-no-fence", 60, "a recovery fences nobody"),
    on(Cluster, "L-hole", 56, "entries are confirmed out of order"),
    unit(
        "ledger::recovery::tests::the_length_of",
        "L-length",
        "a recovered ledger without a tail has no length",
    ),
    unit(
        "ledger::tests::recovery_replaces_a_bookie",
        "L-old-tail",
        "a recovery closes a ledger without the bookies it wrote to",
    ),
    unit(
        "ledger::recovery::tests::a_replacement_begins",
        "L-one-copy",
        "one copy written back is enough to close",
    ),
    unit(
        "ledger::tests::a_recovery_that_is_not_first",
        "L-own-end",
        "a recovery that closes too late tells the end that it found",
    ),
    unit(
        "ledger::recovery::tests::what_a_replaced_bookie",
        "L-replaced",
        "what a replaced bookie took back counts for the new one",
    ),
    unit(
        "ledger::tests::a_ledger_is_spread_over_fewer",
        "L-thin",
        "with too few bookies entries get fewer copies",
    ),
    unit(
        "ledger::recovery::tests::an_entry_that_a_bookie",
        "L-unwritten",
        "a recovery writes nothing back",
    ),
    by("recovery_model", "L1", "recovery reads do not fence"),
    unit(
        "ledger::tests::an_ensemble_change_keeps",
        "L10",
        "a conflict is resolved with a stale record",
    ),
    by(
        "ledger_writer_model",
        "L11",
        "nothing is confirmed in the turn that ends an ensemble change",
    ),
    unit(
        "ledger::tests::a_writer_that_is_fenced_during",
        "L13",
        "a writer that is fenced during its close tells nobody",
    ),
    unit(
        "placement::tests::ensembles_are_distinct",
        "L17",
        "a replacement is in the ensemble already",
    ),
    on(Swarm, "L19", 22, "recovery waits for every bookie"),
    by("recovery_model", "L2", "recovery ignores the floor of the last fragment"),
    on(Cluster, "L20", 13, "bookies not heard count as heard"),
    on(Cluster, "L22", 7, "one absent copy ends recovery"),
    by("recovery_model", "L23", "recovery adds carry an advancing last add confirmed"),
    unit("ledger::tests::conflicts_with_repair", "L25", "any conflict on close is fatal"),
    on(Cluster, "L26", 1, "a digest covers half of its payload"),
    unit(
        "ledger::recovery::tests::a_fence_counts",
        "L28",
        "an answer to a fence counts for another bookie",
    ),
    unit("ledger::reader::verify::tests", "L29", "a reader does not check which entry it got"),
    unit(
        "ledger::recovery::tests::reads_follow",
        "L4",
        "recovery reads follow the changed ensemble",
    ),
    by("recovery_model", "L5", "a failed recovery add closes the ledger"),
    by("ledger_writer_model", "L7", "copies on a replaced bookie still count"),
    by("ledger_writer_model", "L8", "entries are confirmed while the ensemble changes"),
    unit("metadata::store::tests", "M-cas", "compare-and-set ignores the version"),
    by(
        "crash_states::single_node",
        "M-drop",
        "old logs are removed before the snapshot is durable",
    ),
    by("crash_states::group", "M-early-word", "a member speaks before its write is synced"),
    unit(
        "single_node::tests::a_group_read_back",
        "M-fsync",
        "metadata trusts a log read back after its sync failed",
    ),
    scenario(
        "metadata_members::a_snapshot_taken_over",
        "M-install",
        "a snapshot taken over is not written to the disk",
    ),
    by("consensus_mutants", "M-install-members", "an installed snapshot loses the membership"),
    by("consensus_mutants", "M-joint", "a joint membership is content with the new half"),
    on(Swarm, "M-log-sync", 2, "metadata's log is written and not synced"),
    by("consensus_mutants", "M-old-term", "an entry of an older term is committed by counting"),
    on(Swarm, "M-once", 7, "a change asked for again is made again"),
    by("consensus_mutants", "M-read", "a read is answered without proof of leadership"),
    on(Swarm, "M-resume", 6, "a resumed watch leaves out what changed meanwhile"),
    by("consensus_mutants", "M-snapshot-members", "a snapshot is taken with an older membership"),
    scenario(
        "metadata_members::a_leader_whose_clock",
        "M-stale-read",
        "a leader answers reads without asking whether it still leads",
    ),
    by("consensus_mutants", "M-stale-vote", "a vote is given to a log that is behind"),
    by("consensus_mutants", "M-truncate", "an append cuts off a tail that matches"),
    unit(
        "single_node::tests::an_answer_outlives",
        "M-unsynced",
        "metadata answers before its sync",
    ),
    by("consensus_mutants", "M-unsynced-append", "a follower answers before it has written"),
    on(Swarm, "M-vote", 17, "term and vote are not written"),
    on(Cluster, "M-watch", 5, "a watch misses what changed while it began"),
    scenario(
        "metadata_members::every_member_is_replaced",
        "M-stranger",
        "a member that is behind answers nobody outside of the membership it knows",
    ),
    scenario(
        "metadata_members::a_member_with_an_empty_disk",
        "M-wiped",
        "a member with an empty disk takes part",
    ),
    by("consensus_mutants", "M1", "a proposal is answered before it is committed"),
    on(Swarm, "M10", 1, "a snapshot is taken for what is not applied yet"),
    by("consensus_mutants", "M11", "a candidate's term vouches for its log"),
    unit(
        "store::tests::a_watch_is_not_resumed",
        "M13",
        "what came with a snapshot is missing among the newest changes",
    ),
    unit("store::tests::the_same_commands", "M14", "sessions that are over end in random order"),
    by(
        "metadata_group_in_simulation",
        "M16",
        "the last entry of a write does not count as written",
    ),
    by("consensus_scripts", "M17", "a refused append does not hold off an election"),
    by("consensus_mutants", "M19", "a follower compares indexes, not terms"),
    by("consensus_mutants", "M2", "a follower commits what this append has not validated"),
    by("consensus_scripts", "M20", "an answer of an older term counts"),
    unit(
        "replicated::tests::an_installed_snapshot",
        "M25",
        "a member's log is dropped before the snapshot is durable",
    ),
    by("consensus_scripts", "M4", "a late write confirms the entry that took its place"),
    by("consensus_mutants", "M5", "a vote is not durable before it is given"),
    by("consensus_mutants", "M7", "a membership change begins before the one before is settled"),
    by("consensus_mutants", "M8", "a membership change skips the joint membership"),
    on(Standalone, "P-order", 1, "outcomes come out of publishing order"),
    unit(
        "managed_ledger::tests::numbers_of_what_was_never",
        "P1",
        "an expected number is called wrong for entries that were never stored",
    ),
    unit(
        "managed_ledger::tests::indexes_count",
        "P10",
        "a closed topic counts messages that were never stored",
    ),
    unit(
        "producer::tests::a_late_receipt",
        "P13",
        "any receipt is for the first message that waits",
    ),
    by(
        "managed_ledger_model",
        "P2",
        "the expected number is compared for the first of several entries",
    ),
    unit("store::tests::a_client_that_goes_on", "P4", "a client that asks often counts as idle"),
    on(Swarm, "P5", 1, "clients of metadata share one number"),
    by("metadata_store_model", "P7", "a change asked for again has an unknown outcome"),
    by("consensus_mutants", "P8", "a proposal that was dropped counts as made"),
    by("repair_model", "R-early", "a record is changed before the copy is complete"),
    by("repair_model", "R-gc", "copies are dropped without a word to who made them"),
    scenario(
        "recovery::copies_written_back",
        "R-gc-open",
        "copies of a ledger in recovery are dropped",
    ),
    by("repair_model", "R-hole", "an entry that cannot be read is left out of a copy"),
    by("repair_model", "R-lock", "a ledger locked by another replicator is repaired"),
    by("repair_model", "R-marker", "a marker is removed after a failed attempt"),
    by("repair_model", "R-samples", "the end of a fragment is in no sample"),
    by("repair_model", "R-stale", "a conflict with a repair is answered with a stale record"),
    by("repair_model", "R-tail", "an open tail is moved without a fence"),
    by("repair_model", "R-verify", "copies are made of what was not verified"),
    unit(
        "bookie::tests::read_cache::an_entry_stored_again",
        "S-ahead",
        "what was read ahead counts although the index names another copy",
    ),
    by("crash_states::bookie", "S-facts", "the facts log counts before it is synced"),
    unit(
        "bookie::tests::unsynced::a_group_read_back",
        "S-fsync",
        "a bookie trusts a group read back after its sync failed",
    ),
    scenario(
        "flipped_bytes::in_the_index_while_the_bookie_runs",
        "S-index",
        "a bookie goes on with an index it cannot read",
    ),
    unit(
        "bookie::tests::read_cache::damage_is_not_kept",
        "S-kept",
        "what was read ahead hides damage that was found since",
    ),
    by("crash_states::bookie", "S-log-name", "the name of an entry log is not synced"),
    on(Standalone, "S-mark", 8, "the mark moves before the entry log is synced"),
    unit(
        "bookie::tests::directories::a_ledger_that_moved",
        "S-moved",
        "a ledger goes on in an older log of another directory",
    ),
    by("crash_states::bookie", "S-name", "a journal file is used before its name is synced"),
    by(
        "crash_states::bookie",
        "S-replace",
        "a file is renamed over another before its bytes are synced",
    ),
    by("crash_states::bookie", "S-stamp", "a first start counts as done before its cookies"),
    by(
        "crash_states::bookie",
        "S-unlinked",
        "an entry log is removed before the checkpoint file forgets it",
    ),
    unit(
        "bookie::tests::index_runs::a_run_that_is_missing",
        "S-runs",
        "nobody compares the runs of the index with what it says it has",
    ),
    unit(
        "bookie::tests::damage::a_bad_last_group",
        "S-witness",
        "no group proves that the one before it was synced",
    ),
    scenario(
        "fencing::a_fence_outlives_restarts_and_stops_the_old_writer",
        "S1",
        "a fence is not journaled",
    ),
    unit(
        "bookie::tests::garbage::a_compaction_cut_short",
        "S10",
        "a log is removed before its copy is written",
    ),
    unit(
        "bookie_registry::tests::a_ledger_is_gone_only",
        "S13",
        "metadata that cannot be asked has no ledgers",
    ),
    unit(
        "bookie::tests::promises::every_life_finds",
        "S14",
        "the id in the name of an entry log is read as decimal",
    ),
    unit(
        "bookie::tests::promises::what_replay_flushed",
        "S16",
        "the index is not flushed after a replay",
    ),
    unit(
        "bookie::tests::damage::a_torn_last_group",
        "S17",
        "a bad journal record is taken for the end",
    ),
    unit(
        "bookie::tests::promises::a_folder_without_its_cookie",
        "S19",
        "a missing cookie is stamped anew",
    ),
    unit(
        "bookie::tests::facts::facts_are_appended",
        "S2",
        "a facts log begun anew leaves out what did not change",
    ),
    scenario(
        "bookie_loss::an_empty_bookie",
        "S20",
        "a bookie answers what was meant for the one before it",
    ),
    on(Standalone, "S23", 1, "the journal file of the mark counts as one before it"),
    unit(
        "bookie::tests::fence::a_fence_outlives_the_power",
        "S26",
        "a negative fence answer does not wait for the journal",
    ),
    unit(
        "bookie::tests::fence::a_fence_outlives_the_power",
        "S28",
        "a checkpoint without entries skips the flags",
    ),
    unit(
        "bookie::tests::faulty_disk::a_mark_never_passes",
        "S29",
        "a failed flush loses its place in line",
    ),
    unit(
        "bookie::tests::fence::an_add_under_way",
        "S3",
        "the fence check is outside the critical section",
    ),
    unit(
        "bookie::tests::damage::rot_in_an_entry_log",
        "S31",
        "a corrupt copy is answered as absent",
    ),
    unit(
        "bookie::tests::journals::marks_pass_what_every_directory_has",
        "S5",
        "the marks move when the first ledger directory has its part",
    ),
    unit(
        "bookie::tests::journals::marks_pass_what_every_directory_has",
        "S7",
        "the journals' marks are taken one after the other",
    ),
    unit(
        "bookie::tests::facts::damage_refuses",
        "S32",
        "a damaged facts log is taken for an empty one",
    ),
    unit(
        "bookie::tests::damage::a_torn_last_group",
        "S34",
        "a torn end of the journal refuses the start",
    ),
    by("ledger_writer_model", "S35", "an entry for one bookie is confirmed when it is sent"),
    unit("bookie::tests::faulty_disk::a_full_disk", "S37", "a full disk refuses fences"),
    on(Standalone, "S38", 26, "a journal that failed ends without a word"),
    unit(
        "bookie::tests::garbage::deleted_ledgers",
        "S4",
        "a ledger deleted here is as one never seen",
    ),
    on(Standalone, "S8", 8, "every second group is answered without a sync"),
    unit(
        "bookie::tests::unsynced::a_group_read_back",
        "T1",
        "journal files are numbered by the time since the start",
    ),
    unit("ledger::tests::a_silent_quorum_times_out", "T10", "a time-out is told as not stored"),
    scenario(
        "repair::a_step_of_the_wall_clock",
        "T11",
        "an auditor measures its grace by wall clock",
    ),
    scenario(
        "metadata_members::a_leader_that_stood_still",
        "T2",
        "a leader that stood still ends sessions",
    ),
    on(Swarm, "T4", 1, "members let time pass by their own clocks"),
    unit(
        "managed_ledger::tests::a_search_by_time",
        "T7",
        "a search by time takes publish times for sorted",
    ),
    by("managed_ledger_model", "T8", "entries carry the time of the first one"),
    scenario(
        "mixed_versions::a_former_version_refuses",
        "V-cookie",
        "a bookie writes level 2 and leaves its cookies as they were",
    ),
    unit(
        "broker::entry_header::tests::level_1_is_what_former",
        "V-fields",
        "the reader of level 1 takes two fields for each other",
    ),
    scenario(
        "mixed_versions::a_rollback_half_way",
        "V-header",
        "an upgraded broker writes entry headers of level 2 although it is set to level 1",
    ),
    scenario(
        "mixed_versions::a_cluster_is_upgraded",
        "V-journal",
        "replay takes journal groups of level 1 for the torn end",
    ),
    scenario("recording::an_answer_is_owed", "V-cause", "a recording forgets what woke a task"),
    unit("page::tests::hostile_text", "V-escape", "a run's own texts are markup on its page"),
    scenario("determinism::a_recorded_run", "V-wakes", "a recording wakes tasks of its own accord"),
    by("fidelity", "X-past-end", "the simulated disk: a read behind the end is an error"),
    by("fidelity", "X-rename", "the simulated disk: an unsynced renaming always survives"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_planted_bug_was_caught_once() {
        for mutant in MUTANTS {
            if let Hunt::Simulator { caught_after, .. } = mutant.hunt {
                assert!(caught_after > 0, "{}: nothing has caught it yet", mutant.name);
            }
        }
    }
}
