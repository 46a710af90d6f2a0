//! Bugs that other systems of this kind had, one row each, and which planted bug stands for which: how much of what went
//! wrong elsewhere would be seen here. Row numbers have gaps. Letters: L ledger, S storage, M consensus and metadata,
//! B broker and cursor, D dispatch, P producer and deduplication, T time.

/// One bug of another system.
#[derive(Debug)]
pub struct Row {
    /// Its letter and number.
    pub id: &'static str,
    /// What went wrong.
    pub what: &'static str,
    /// What stands for it here.
    pub standing: Standing,
}

/// What stands for a row of the catalogue here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Planted bugs, by their names in the code.
    Planted(&'static [&'static str]),
    /// This design has no place for it; `docs/internals/mutants.md` says why.
    CannotExist,
}

const fn planted(id: &'static str, names: &'static [&'static str], what: &'static str) -> Row {
    Row { id, what, standing: Standing::Planted(names) }
}

const fn cannot(id: &'static str, what: &'static str) -> Row {
    Row { id, what, standing: Standing::CannotExist }
}

/// Every row, by letter.
pub const CATALOGUE: &[&[Row]] = &[LEDGER, STORAGE, METADATA, BROKER, DISPATCH, PRODUCER, TIME];

const LEDGER: &[Row] = &[
    planted("L1", &["L1"], "recovery reads do not fence"),
    planted("L2", &["L2"], "recovery starts before the last fragment"),
    planted("L4", &["L4"], "recovery reads go to replacements"),
    planted("L5", &["L5"], "a failed recovery add closes the ledger"),
    planted("L7", &["L7"], "what a replaced bookie acknowledged counts for the new one"),
    planted("L8", &["L8"], "entries are confirmed while metadata is being changed"),
    planted("L10", &["L10"], "a conflict is resolved with a stale record"),
    planted("L11", &["L11"], "entries wait for ever after an ensemble change"),
    planted("L13", &["L13"], "an add that meets a fence during the close is never answered"),
    cannot("L14", "the writer's queue is changed from inside a send"),
    planted("L16", &["R-tail"], "the tail of an open ledger is copied and moved"),
    planted("L17", &["L17"], "a replacement is in the ensemble already"),
    planted("L19", &["L19"], "recovery waits for every bookie"),
    planted("L20", &["L20"], "bookies not heard count as heard"),
    planted("L22", &["L22"], "an entry is given up after too few answers"),
    planted("L23", &["L23"], "recovery adds tell an advancing last add confirmed"),
    planted("L25", &["L25"], "a repair makes the writer's close fail"),
    planted("L26", &["L26"], "a checksum is computed over the wrong bytes"),
    planted("L28", &["L28"], "an answer is taken for another bookie's"),
    planted("L29", &["L29"], "a reader does not check which entry it got"),
];

const STORAGE: &[Row] = &[
    planted("S1", &["S1"], "a fence is lost in a restart"),
    planted("S2", &["S2"], "a fence is lost when a ledger leaves the memory"),
    planted("S4", &["S4"], "a ledger deleted here takes entries again"),
    planted("S5", &["S5"], "one of several directories moves the mark for all"),
    planted("S7", &["S7"], "marks of several journals are compared as one"),
    planted("S8", &["S8"], "a group is answered without a sync"),
    planted("S10", &["S10"], "compaction removes its source before the copy is safe"),
    cannot("S11", "a flush undoes what compaction moved"),
    planted("S13", &["S13"], "a ledger that a listing left out is deleted"),
    planted("S14", &["S14"], "the id of an entry log is used again"),
    planted("S16", &["S16"], "a change of the index is missed by a flush"),
    planted("S17", &["S17"], "a bad journal record ends the replay"),
    planted("S19", &["S19"], "an empty disk is taken for a new bookie"),
    planted("S20", &["S20"], "an empty bookie takes a former one's address"),
    cannot("S22", "an entry lost without a journal is called absent"),
    planted("S23", &["S23"], "the first mark is compared the wrong way round"),
    cannot("S25", "two flushes at once"),
    planted("S26", &["S26"], "a negative answer does not wait for the fence"),
    planted("S28", &["S28"], "a checkpoint without entries skips the fences"),
    planted("S29", &["S29"], "a failed flush loses its place in line"),
    planted("S31", &["S31"], "rot is answered as absent"),
    planted("S32", &["S32"], "an unreadable list of ledgers is taken for an empty one"),
    planted("S34", &["S34"], "a torn tail of the journal stops the start"),
    planted("S35", &["S35"], "the only copy is acknowledged before its sync"),
    planted("S37", &["S37"], "a full disk refuses fences and recovery"),
    planted("S38", &["S38"], "a bookie outlives its journal and never answers"),
];

const METADATA: &[Row] = &[
    planted("M1", &["M1"], "success is claimed for what is not committed"),
    planted("M2", &["M2"], "what an append has not validated is committed"),
    planted("M4", &["M4"], "a late write confirms the entry that took its place"),
    planted("M5", &["M5"], "a vote is given before it is durable"),
    planted("M7", &["M7"], "membership changes before the change before is settled"),
    planted("M8", &["M8"], "a change of members lets a quorum form without the old one"),
    planted("M10", &["M10"], "the applied index is stored apart from what was applied"),
    planted("M11", &["M11"], "a term is stored before the log it vouches for"),
    planted("M13", &["M13"], "a log with a hole is served to others"),
    planted("M14", &["M14"], "members apply the same command differently"),
    planted("M16", &["M16"], "a follower never syncs its last batch"),
    planted("M17", &["M17"], "a follower that is behind campaigns for ever"),
    planted("M19", &["M19"], "a follower compares indexes and not terms"),
    planted("M20", &["M20"], "an answer of an older term counts"),
    planted("M22", &["M-log-sync"], "the metadata log loses what was acknowledged"),
    planted("M23", &["M-once"], "a create asked for twice is told as refused"),
    planted("M25", &["M25"], "the log is dropped before the snapshot is durable"),
];

const BROKER: &[Row] = &[
    planted("B1", &["B1"], "an empty ledger is deleted before the chain drops it"),
    cannot("B2", "an empty ledger is never rolled"),
    planted("B4", &["B4"], "an answer of an old ledger counts for the new one"),
    planted("B5", &["B5"], "a refused entry stays in the queue"),
    planted("B7", &["B7"], "ranges below mark-delete stall it"),
    planted("B8", &["B8"], "what cannot be read any more holds mark-delete"),
    planted("B10", &["B10"], "a cursor begins where a trim deletes"),
    planted("B11", &["B11"], "trimming leaves a gap"),
    planted("B13", &["B13"], "a cursor's properties are dropped"),
    cannot("B14", "compaction moves its cursor before its ledger is durable"),
    planted("B16", &["B16"], "bit sets of batches are mixed up"),
    planted("B17", &["B17"], "acknowledgements of parts of a batch are rolled back"),
    cannot("B19", "readers skip what compaction has kept"),
    cannot("B20", "only the newest of several reads times out"),
    planted("B22", &["B22"], "a cursor is ahead of the data after a restart"),
];

const DISPATCH: &[Row] = &[
    planted("D1", &["D1"], "a cancelled read leaves its flag set"),
    planted("D2", &["D2"], "an old read clears the flag of a newer one"),
    cannot("D4", "new messages overtake a blocked replay"),
    cannot("D5", "a consumer that joins gets a key's earlier messages"),
    cannot("D7", "joins out of order stop delivery"),
    planted("D8", &["D8"], "a message sent before a rewind is acknowledged after it"),
    planted("D10", &["D10"], "a new owner skips what has to come again"),
    planted("D11", &["D11"], "messages from memory overtake those from disk"),
    planted("D13", &["D13"], "mark-delete releases what is still being worked on"),
    planted("D14", &["D14"], "permits drift apart after a lost message"),
    planted("D16", &["D16"], "a consumer that leaves takes a newer one's wake-up along"),
];

const PRODUCER: &[Row] = &[
    planted("P1", &["P1"], "a message never stored is dropped as a duplicate"),
    planted("P2", &["P2"], "only one number of a batch is compared"),
    planted("P4", &["P4"], "what is known of inactive producers is purged wrongly"),
    planted("P5", &["P5"], "sequence ids of several sources are mixed"),
    planted("P7", &["P7"], "a duplicate older than the log is answered with an error"),
    planted("P8", &["P8"], "a sequence id under way survives a change of owner"),
    planted("P10", &["P10"], "a snapshot claims what is not durable"),
    cannot("P11", "a late request joins the producer's next transaction"),
    planted("P13", &["P13"], "an unexpected receipt stops the producer for good"),
    cannot("P14", "a copy of a log looks for duplicates again"),
];

const TIME: &[Row] = &[
    planted("T1", &["T1"], "file ids come from a clock"),
    planted("T2", &["T2"], "a deposed leader ends sessions"),
    planted("T4", &["T4"], "members forget by their own clocks"),
    planted("T5", &["M-stale-read"], "a leader trusts its clock and answers reads"),
    planted("T7", &["T7"], "trimming by time takes times for sorted"),
    planted("T8", &["T8"], "a time stamp is used twice"),
    planted("T10", &["T10"], "a time-out is told as a failure"),
    planted("T11", &["T11"], "a grace period is measured by wall clock"),
];

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    CATALOGUE.iter().copied().flatten()
}

/// How many rows there are, and what stands for them.
pub fn summary() -> String {
    let count = |has: fn(Standing) -> bool| rows().filter(|row| has(row.standing)).count();
    format!(
        "catalogue of known bugs: {} rows, {} planted, {} cannot exist here",
        rows().count(),
        count(|standing| matches!(standing, Standing::Planted(_))),
        count(|standing| standing == Standing::CannotExist),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulator::mutant_list::MUTANTS;

    #[test]
    fn rows_are_named_once_and_what_stands_for_them_is_planted() {
        let listed: BTreeSet<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
        let mut seen = BTreeSet::new();
        for row in rows() {
            assert!(seen.insert(row.id), "{} is there twice", row.id);
            match row.standing {
                Standing::Planted(names) => {
                    assert!(!names.is_empty(), "{}: nothing planted", row.id);
                    for name in names {
                        assert!(listed.contains(name), "{}: {name} is not planted", row.id);
                    }
                }
                Standing::CannotExist => {
                    assert!(!listed.contains(row.id), "{} is planted", row.id);
                }
            }
        }
    }
}
