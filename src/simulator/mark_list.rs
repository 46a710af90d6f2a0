//! Every mark (`reached!("…")`): the name of a rare branch, and what has to come to it. `tidy` holds this list against
//! the sources; campaigns are held against its numbers of seeds, and tests against the marks they are named for
//! (`src/simulator/mark_hunt.rs`).

use std::collections::BTreeMap;

/// A mark.
#[derive(Debug)]
pub struct ListedMark {
    /// Its name in the code.
    pub name: &'static str,
    /// What has to come to it.
    pub reach: Reach,
}

/// What has to come to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A campaign of swarm on swarms, with so many seeds: enough that, by how many of a few hundred seeds reached
    /// it, not one campaign in a million misses it.
    Seeds(u64),
    /// A unit test of the library, by a part of its name.
    Unit(&'static str),
    /// A scripted scenario in the test binary `sim-tests`, by a part of its name.
    Scenario(&'static str),
    /// A property test in the test binary `proptests`, by a part of its name; its cases are always the same.
    Property(&'static str),
    /// Nothing yet: it is hard to come to. This is what it takes.
    Hard(&'static str),
}

impl Reach {
    /// The seeds after which its absence is a failure of a campaign, if campaigns have to reach it.
    pub const fn seeds(self) -> Option<u64> {
        match self {
            Self::Seeds(seeds) => Some(seeds),
            Self::Unit(_) | Self::Scenario(_) | Self::Property(_) | Self::Hard(_) => None,
        }
    }
}

/// The listed marks that are not among those visited.
pub fn unreached(visited: &BTreeMap<String, u64>) -> impl Iterator<Item = &'static ListedMark> {
    MARKS.iter().filter(|mark| !visited.contains_key(mark.name))
}

const fn seeds(seeds: u64, name: &'static str) -> ListedMark {
    ListedMark { name, reach: Reach::Seeds(seeds) }
}

const fn unit(tests: &'static str, name: &'static str) -> ListedMark {
    ListedMark { name, reach: Reach::Unit(tests) }
}

const fn scenario(tests: &'static str, name: &'static str) -> ListedMark {
    ListedMark { name, reach: Reach::Scenario(tests) }
}

const fn property(tests: &'static str, name: &'static str) -> ListedMark {
    ListedMark { name, reach: Reach::Property(tests) }
}

const fn hard(why: &'static str, name: &'static str) -> ListedMark {
    ListedMark { name, reach: Reach::Hard(why) }
}

/// Every mark, by name.
pub const MARKS: &[ListedMark] = &[
    hard(
        "as many connections as the bound allows, at once",
        "admin: connection refused at the bound",
    ),
    unit("admin::tests::requests_are_answered_and", "admin: idle connection cut off"),
    scenario("repair::rot_in_entry_logs", "auditor: a damaged copy found"),
    unit("machine::tests::a_bookie_is_lost", "auditor: a missing bookie came back in time"),
    seeds(100, "auditor: an entry is absent where it must be"),
    seeds(40, "auditor: another was elected"),
    hard(
        "a copy arrives in the moment between the decision to drop and the drop",
        "bookie: a copy of a ledger being dropped refused",
    ),
    seeds(300, "bookie: a failed flush is tried again first"),
    unit("directories::every_folder_has", "bookie: a folder is not in the configuration"),
    unit("journals::a_failed_sync_of_one", "bookie: a group synced while another journal failed"),
    unit("directories::a_ledger_that_moved", "bookie: a ledger goes on in another directory"),
    unit("directories::every_folder_has", "bookie: a new folder without a word of the operator"),
    unit(
        "space::tests::a_ledger_stays",
        "bookie: a new ledger passes by a directory that is nearly full",
    ),
    unit("damage::a_pair_that_is_no_run", "bookie: a pair of the index is not a run"),
    unit("wait::a_wait_ends_with", "bookie: a reader waits for the last add confirmed"),
    seeds(300, "bookie: a request was meant for another bookie"),
    scenario("repair::a_bookie_is_drained", "bookie: add refused while draining"),
    hard(
        "megabytes of adds behind a disk that stands still",
        "bookie: add refused, journal queue full",
    ),
    unit("faulty_disk::a_full_cache_holds", "bookie: add refused, write cache full"),
    unit("garbage::a_tombstone_not_yet", "bookie: add to a deleted ledger refused"),
    unit("fence::an_add_under_way", "bookie: add to a fenced ledger refused"),
    hard(
        "needs a client that damages what it sends; the network of a run does not",
        "bookie: an entry arrived damaged",
    ),
    seeds(40, "bookie: changed facts appended"),
    seeds(300, "bookie: checkpoint failed"),
    unit("levels::each_level_is_there", "bookie: cookies raised to another format level"),
    unit("read_cache::damage_is_not_kept", "bookie: damage met while reading ahead"),
    unit("damage::rot_in_an_entry", "bookie: damage met while the index was made again"),
    seeds(300, "bookie: damaged copy found by a read"),
    hard("the scrubber begins later than a run ends", "bookie: damaged copy found by the scrubber"),
    scenario("repair::a_bookie_is_drained", "bookie: entries of a ledger kept elsewhere dropped"),
    unit("read_cache::a_reader_in_sequence", "bookie: entries read ahead"),
    unit("promises::a_fence_is_durable", "bookie: entry added again"),
    seeds(300, "bookie: entry log compacted"),
    seeds(300, "bookie: entry log cut back"),
    unit(
        "faulty_disk::a_mark_never_passes",
        "bookie: entry log of an unfinished checkpoint removed",
    ),
    seeds(100, "bookie: entry log removed"),
    unit("faulty_disk::a_failed_sync_poisons", "bookie: fence could not be made durable"),
    hard(
        "a crash in the first moments of a disk, before any fault of a run",
        "bookie: first start cut short",
    ),
    unit("promises::what_replay_flushed_is", "bookie: flush during replay"),
    unit("directories::every_folder_has", "bookie: folder added"),
    seeds(100, "bookie: index made again"),
    unit("journals::every_journal_folder", "bookie: journal added"),
    seeds(40, "bookie: journal file recycled"),
    unit("damage::a_bad_last_group", "bookie: journal group witnessed"),
    seeds(100, "bookie: journal poisoned"),
    seeds(300, "bookie: journal waits for room in the write cache"),
    seeds(40, "bookie: ledger buried"),
    unit("damage::rot_in_an_entry", "bookie: missing entry of a ledger in limbo"),
    hard(
        "the disk is full just when a journal file ends",
        "bookie: no room for another journal file",
    ),
    seeds(40, "bookie: older run trimmed"),
    unit("promises::a_folder_without_its", "bookie: one cookie missing"),
    seeds(1_000, "bookie: read tried again"),
    unit("faulty_disk::a_full_disk_takes", "bookie: recovery add while read-only"),
    unit("faulty_disk::runs_of_a_checkpoint", "bookie: run of an unfinished checkpoint dropped"),
    seeds(300, "bookie: stray facts log removed"),
    scenario(
        "flipped_bytes::in_the_index_while_the_bookie_runs",
        "bookie: the index failed while running",
    ),
    unit("index_runs::a_run_that_is_missing", "bookie: the index has not the runs it should have"),
    unit("unsynced::a_group_read_back", "bookie: the last group of a former life met again"),
    unit("wait::with_too_many_waiting", "bookie: too many wait for a last add confirmed"),
    unit("damage::a_torn_group_stays", "bookie: torn journal group at the end"),
    seeds(1_000, "bookie: two fences race"),
    unit(
        "broker::tests::lifecycle::a_topic_of_another_owner",
        "broker: a topic to be loaded was another broker's",
    ),
    hard(
        "as many topics as the bound allows, at once",
        "broker: too many topics wait to be loaded",
    ),
    scenario("ownership::a_topic_loaded_after", "broker: topic loaded after its bundle was shut"),
    seeds(1_000, "client: closed what may be opened yet"),
    seeds(100, "consensus: a follower was sent a snapshot"),
    scenario("metadata_members::a_leader_whose_clock", "consensus: a follower's tail was replaced"),
    seeds(300, "consensus: a joint membership was left"),
    seeds(100, "consensus: a leader without a quorum stepped down"),
    seeds(300, "consensus: a read waited for the first commit of a term"),
    property(
        "consensus_model::three_members_keep_every",
        "consensus: a removed leader stepped down",
    ),
    seeds(100, "consensus: a snapshot was installed"),
    seeds(300, "consensus: a vote was not looked at while the leader is heard"),
    seeds(300, "consensus: a vote was refused to a log that is behind"),
    seeds(100, "consensus: an append did not fit"),
    property(
        "metadata_group_in_simulation::a_member_is_replaced",
        "consensus: leadership was handed over",
    ),
    seeds(100, "consensus: the leader stepped back for a follower"),
    seeds(10_000, "cursor: a change could not be written"),
    unit(
        "managed_ledger::tests::a_deposed_owner_claims",
        "cursor: a deposed owner would have claimed it",
    ),
    hard(
        "a disaster beyond the promises: the log's end is lost, the cursor is not",
        "cursor: a position beyond the log's end was repaired",
    ),
    hard(
        "metadata falls silent between a cursor's record and the answer",
        "cursor: a record of unknown outcome was written",
    ),
    seeds(10_000, "cursor: could not move to a new ledger"),
    hard(
        "a subscription begins at the former owner while the next one lists cursors",
        "cursor: created by the former owner meanwhile",
    ),
    hard("a cursor's ledger was begun and never written", "cursor: fell back to the record"),
    hard("two owners open one cursor at once", "cursor: lost a claim"),
    seeds(40, "cursor: only a change written"),
    seeds(100, "cursor: recovered from a state and changes"),
    unit("managed_ledger::tests::who_loses_a_cursor", "cursor: taken by another owner"),
    property(
        "dispatch_model::failover_delivers_everything_to",
        "dispatch: active consumer ousted by a better one",
    ),
    unit("dispatch::tests::the_answer_of_a", "dispatch: answer of a disowned read dropped"),
    seeds(300, "dispatch: entry acknowledged by another consumer"),
    seeds(40, "dispatch: pending read cancelled"),
    property("grpc_streams::a_follower_gets_what", "grpc: a topic closed under an append"),
    property("grpc_ledgers::a_recovered_ledger_deposes", "grpc: a writer was fenced"),
    scenario("streams::a_fenced_token_is", "grpc: sent to another broker"),
    hard(
        "more entries on their way than the window holds, with bookies that do not answer",
        "grpc: the window of a ledger is full",
    ),
    property("grpc_streams::sessions_beyond_the_limit", "grpc: too many sessions"),
    unit("verify::tests::a_run_ends_before", "ledger reader: a bad copy refused"),
    seeds(100, "ledger reader: a slow replica hedged"),
    seeds(40, "ledger reader: another replica asked after an error"),
    seeds(3_000, "ledger reader: fragments changed under it"),
    unit("ledger::tests::recovery_replaces_a_bookie", "ledger recovery: a bookie replaced locally"),
    unit(
        "ledger::tests::recovery_finds_entries_on",
        "ledger recovery: an entry could not be decided",
    ),
    seeds(300, "ledger recovery: another attempt"),
    hard(
        "two recoveries of one ledger end within one compare-and-set",
        "ledger recovery: another recovery closed first",
    ),
    unit("ledger::tests::conflicts_with_repair_stop", "ledger recovery: claim read again"),
    hard(
        "repair changes the record in the last step of a recovery",
        "ledger recovery: close read again",
    ),
    seeds(3_000, "ledger recovery: closed with fewer copies than the write quorum"),
    seeds(300, "ledger recovery: too few bookies fenced"),
    seeds(10_000, "ledger recovery: write back failed"),
    unit(
        "ledger::tests::an_ensemble_change_keeps",
        "ledger writer: a committed entry left to repair",
    ),
    seeds(40, "ledger writer: a failing bookie tried again"),
    unit("managed_ledger::tests::a_former_owner_cannot", "ledger writer: a proof found a fence"),
    unit("ledger::tests::a_writer_closed_elsewhere", "ledger writer: an entry timed out"),
    seeds(100, "ledger writer: answer of a replaced bookie ignored"),
    hard(
        "a writer closes in the moment in which it is recovered",
        "ledger writer: close found recovery",
    ),
    unit("ledger::tests::a_writer_closed_elsewhere", "ledger writer: closed elsewhere"),
    hard(
        "an owner is deposed and loses a bookie at once",
        "ledger writer: deposed while changing the ensemble",
    ),
    unit("ledger::tests::an_ensemble_change_keeps", "ledger writer: ensemble change read again"),
    seeds(40, "ledger writer: ensemble changed"),
    unit("ledger::tests::a_recovered_ledger_deposes", "ledger writer: fenced"),
    unit(
        "ledger::tests::a_poisoned_only_bookie",
        "ledger writer: too many bookies failed for good",
    ),
    unit("ledger::tests::a_lost_answer_to", "ledger: created although the answer was lost"),
    unit(
        "ledger::tests::a_ledger_is_spread_over_fewer",
        "ledger: spread over fewer bookies than wished for",
    ),
    hard(
        "metadata falls silent just when a ledger is full",
        "managed ledger: a close was not confirmed",
    ),
    unit(
        "managed_ledger::tests::entries_of_unknown_fate",
        "managed ledger: a lost compare-and-set had been made",
    ),
    unit(
        "managed_ledger::tests::a_former_owner_cannot",
        "managed ledger: a new consumer found another owner",
    ),
    hard(
        "metadata falls silent just when somebody subscribes",
        "managed ledger: a new cursor could not be stored",
    ),
    unit("managed_ledger::tests::an_empty_ledger_is", "managed ledger: a writer failed"),
    hard(
        "two appends pass the fencing token's first look in the moment in which it rises",
        "managed ledger: an append with another token",
    ),
    unit(
        "managed_ledger::tests::an_empty_ledger_is",
        "managed ledger: entries moved to the next ledger",
    ),
    property(
        "managed_ledger_model::every_entry_is_stored",
        "managed ledger: late news of a former ledger",
    ),
    scenario("takeover::a_claim_of_an", "managed ledger: lost a claim"),
    hard(
        "a deposed owner fills its ledger before it learns of it",
        "managed ledger: lost the list to another owner",
    ),
    seeds(300, "managed ledger: too many entries pending"),
    seeds(100, "managed ledger: trimmed"),
    hard(
        "two thousand changes of one client while the oldest is not answered",
        "metadata: a change waited for an older one",
    ),
    seeds(100, "metadata: a change was asked for again"),
    hard("a thousand clients of one store", "metadata: a client was forgotten"),
    unit(
        "replicated::tests::an_installed_snapshot_is",
        "metadata: a crash came between an installed snapshot and its log",
    ),
    seeds(100, "metadata: a leader stepped down before it could answer"),
    scenario(
        "metadata_members::a_leader_whose_clock",
        "metadata: a leader that nobody told of was learned",
    ),
    unit("replicated::tests::an_installed_snapshot_is", "metadata: a log's creation was cut short"),
    seeds(40, "metadata: a member began to lead"),
    scenario(
        "metadata_members::a_member_with_an",
        "metadata: a member came back with another disk",
    ),
    seeds(100, "metadata: a member installed a snapshot"),
    seeds(300, "metadata: a member met another that it does not know"),
    seeds(40, "metadata: a member that does not lead was asked"),
    seeds(100, "metadata: a member took a snapshot"),
    seeds(100, "metadata: a member's log was poisoned"),
    hard(
        "hundreds of messages wait for a member that does not read",
        "metadata: a message to a member was dropped",
    ),
    seeds(40, "metadata: a read was asked again"),
    seeds(40, "metadata: a session expired"),
    unit("single_node::tests::a_log_cut_anywhere", "metadata: a torn tail was cut off"),
    seeds(40, "metadata: a watch broke off"),
    seeds(300, "metadata: a watch could not be resumed"),
    seeds(40, "metadata: a watch was resumed"),
    seeds(300, "metadata: a watcher must read the state again"),
    unit("store::tests::a_slow_watcher_is", "metadata: a watcher was too slow"),
    property(
        "metadata_group_in_simulation::a_member_is_replaced",
        "metadata: an operator moved leadership",
    ),
    seeds(40, "metadata: the answer to a change was lost"),
    unit(
        "replicated::tests::an_installed_snapshot_is",
        "metadata: the beginning of a member's log was cut short",
    ),
    unit("single_node::tests::a_group_read_back", "metadata: the log was poisoned"),
    hard("as much data as the bound allows", "metadata: the store is full"),
    seeds(40, "metadata: the stream to a member broke"),
    hard("two operators change the group at once", "metadata: two membership changes crossed"),
    seeds(1_000, "metadata: watches ended for want of a leader"),
    seeds(300, "nemesis: a bundle was given up"),
    seeds(300, "nemesis: a metadata member was replaced"),
    seeds(300, "nemesis: a topic of an estranged broker was taken"),
    seeds(1_000, "nemesis: metadata's leadership was moved"),
    scenario("failed_sync::a_sync_that_fails", "node: a part failed during the start"),
    seeds(100, "node: a start failed half way"),
    hard(
        "a trim between a reader's look at the chain and its read",
        "numbered log: trimmed while it was read",
    ),
    scenario("mixed_versions::drawn_mixtures", "operator: back to the former version"),
    scenario("mixed_versions::drawn_mixtures", "operator: the format level was raised"),
    hard(
        "needs more topics and load than a run has",
        "ownership: a bundle was given up for balance",
    ),
    unit(
        "ownership::tests::owners_never_share_an",
        "ownership: a bundle was taken by another broker",
    ),
    seeds(100, "ownership: a bundle was taken from an owner that is gone"),
    unit("ownership::tests::a_stop_hands_over", "ownership: a bundle was taken while stopping"),
    unit("ownership::tests::owners_never_share_an", "ownership: a claim was lost"),
    seeds(100, "ownership: a former start was still registered"),
    hard(
        "a broker is stopped in order while its bookies do not answer",
        "ownership: a hand-over took too long",
    ),
    hard(
        "metadata falls silent just when a bundle is released",
        "ownership: a release was not written",
    ),
    seeds(300, "ownership: a watch of owners ended"),
    seeds(1_000, "ownership: nobody listens at the owner's address"),
    seeds(100, "ownership: the broker's session had expired"),
    unit("ownership::tests::owners_never_share_an", "ownership: the fate of a claim is unknown"),
    hard(
        "a bundle moves between the two reads of one lookup",
        "ownership: the owner changed during a lookup",
    ),
    hard(
        "needs a client that says so; ours verifies before",
        "pulsar ack: a client discarded a damaged message",
    ),
    unit("codec::tests::a_damaged_entry_is", "pulsar codec: entry without a checksum"),
    unit(
        "connection::tests::a_refused_consumer_is",
        "pulsar connection: a consumer waits for room",
    ),
    seeds(100, "pulsar connection: a publish failed"),
    hard(
        "a write stands still until its time is over, which most cut links outlast",
        "pulsar connection: the client does not read or is gone",
    ),
    hard(
        "a client that sends megabytes of questions and reads no answer",
        "pulsar connection: the client is not read until it reads",
    ),
    property("hostile::a_pipeline_survives_an", "pulsar connection: too many publishes in flight"),
    hard(
        "as many connections as the bound allows, at once",
        "pulsar listener: too many connections",
    ),
    seeds(3_000, "pulsar producer: closed while it was being opened"),
    property("hostile::a_pipeline_survives_an", "pulsar send: to a producer closed by the broker"),
    seeds(3_000, "pulsar subscribe: closed while it was being opened"),
    seeds(300, "registry: a bookie's damage was told"),
    hard(
        "a drained bookie is let go and its process runs on",
        "registry: a decommissioned bookie stays off the list",
    ),
    unit(
        "bookie_registry::tests::a_ledger_is_gone",
        "registry: a ledger came back while it was to be dropped",
    ),
    hard(
        "needs a copied disk, which no run has",
        "registry: another node is registered as this bookie",
    ),
    unit("bookie_registry::tests::a_cookie_is_made", "registry: metadata has forgotten the bookie"),
    unit("bookie_registry::tests::a_cookie_is_made", "registry: the bookie's disks were swapped"),
    seeds(1_000, "registry: the bookie's session had expired"),
    seeds(300, "registry: the watch of bookies was opened anew"),
    hard("needs a bookie that answers twice", "remote bookie: an answer to nothing"),
    seeds(40, "remote bookie: the add stream broke"),
    unit("remote_bookie::tests::nobody_there_and_too", "remote bookie: too much on its way"),
    seeds(100, "repair: a bookie's place was given to another"),
    scenario("bookie_loss::publishing_goes_on", "repair: a ledger is left for later"),
    seeds(100, "repair: a ledger is locked by another replicator"),
    seeds(1_000, "repair: a marked ledger is gone"),
    hard(
        "two auditors, or an auditor and a bookie, mark one ledger at once",
        "repair: a marker was written by another at once",
    ),
    hard(
        "new damage of a ledger in the moment in which its repair ends",
        "repair: a marker was written while its ledger was repaired",
    ),
    seeds(10_000, "repair: a session was lost"),
    property("repair_model::repair_keeps_every_copy", "repair: all sources asked again"),
    property("repair_model::repair_keeps_every_copy", "repair: an open tail was fenced"),
    scenario(
        "bookie_loss::publishing_goes_on_without",
        "repair: an open tail without a spare is left alone",
    ),
    hard("the bookie that copies go to fails under the copy", "repair: another target is chosen"),
    seeds(100, "repair: copies written again where they were missing"),
    hard(
        "beyond the promises: every copy of an entry is lost",
        "repair: no replica has a good copy of an entry",
    ),
    scenario("bookie_loss::publishing_goes_on_without", "repair: no spare bookie for a copy"),
    property("repair_model::a_copy_that_took", "repair: the record changed during a copy"),
    hard(
        "the bookie that copies go to falls silent under the copy",
        "repair: the target did not answer",
    ),
    unit("rpc::tests::a_later_protocol", "rpc: a call of a later protocol version refused"),
    seeds(100, "rpc: a call ran out of time"),
    property("grpc_streams::sessions_beyond_the_limit", "rpc: a connection made no call in time"),
    seeds(40, "rpc: a service was asked for before it had started"),
    hard("needs a system out of file descriptors", "rpc: accept failed"),
    seeds(1_000, "topic: a read for dispatch failed"),
    hard(
        "reads of a ledger end before this deadline by themselves",
        "topic: a read for dispatch timed out",
    ),
    hard(
        "a cursor's ledger cannot be read just when its topic is loaded",
        "topic: a stored cursor could not be opened",
    ),
    unit("lifecycle::a_topic_taken_over", "topic: fenced"),
    unit("publishing::made_names_differ_and", "topic: producer replaced by a higher epoch"),
    seeds(300, "topic: publish refused, too many pending"),
    seeds(100, "workload: a register's change is of unknown outcome"),
];
