//! Finding the end of a ledger: with few bookies, with several recoverers, with bookies that fail on the way.

use crate::story::{Ending, story};

/// Two of three bookies answer. One of them has what was confirmed last, the other was never sent it.
#[test]
fn recovery_finds_everything_with_exactly_the_quorum_alive() {
    story!(P1, I2, I6)
        .writer("w")
        .cut_one_way("w", "third of w")
        .writes("w", 3)
        .kill("first of w")
        .recovers("r", "w", 3)
        .start("first of w")
        .tell();
}

/// The third bookie was not fenced: its streams broke. What it says it lacks when it is read it must never take later,
/// or the writer would confirm, with the first bookie's copy, an entry that recovery left out.
#[test]
fn a_bookie_that_is_read_for_recovery_is_fenced_by_that() {
    story!(P5, I2, I3)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 1)
        .has_no_more_than("w", 2, 1)
        .sees("r", "w", 2)
        .cut("r", "second of w")
        .pause("third of w")
        .starts_recovery("r", "w")
        .pass(1)
        .cut("r", "first of w")
        .reset("r", "third of w")
        .resume("third of w")
        .pass(1)
        .heal("r", "second of w")
        .finishes_recovery("r", "w", 2..=2)
        .heal("w", "third of w")
        .has_no_more_than("w", 2, 2)
        .heal_all_links()
        .ends("w", Ending::Fenced)
        .has_no_more_than("w", 2, 5)
        .tell();
}

/// The two new bookies of the last fragment know nothing of what was confirmed before it, and the third is not heard.
#[test]
fn what_precedes_the_last_fragment_is_confirmed() {
    story!(P1, I2)
        .bookies(5)
        .writer("w")
        .writes("w", 3)
        .cut_one_way("w", "spares of w")
        .kill(["second of w", "third of w"])
        .sends("w", 1)
        .fragments("w", 2)
        .kill("w")
        .start(["second of w", "third of w"])
        .all_serve()
        .with("r")
        .cut("r", "first of w")
        .recovers("r", "w", 3)
        .tell();
}

/// One of the two bookies that are left has room for a fence and not for an entry: what was found cannot be written back,
/// and the ledger stays open to a later recovery.
#[test]
fn a_recovery_that_cannot_write_back_closes_nothing() {
    story!(P1, I6)
        .writer("w")
        .cut_one_way("w", "third of w")
        .writes("w", 3)
        .kill(["w", "second of w"])
        .fill_disk("third of w", 1024)
        .pass(15)
        .cannot_recover("r", "w")
        .heal_disk("third of w")
        .start("second of w")
        .all_serve()
        .pass(5)
        .recovers("s", "w", 3)
        .has_every_copy()
        .tell();
}

/// A recoverer has written back an entry that nobody confirmed and has not closed yet: the next one may decide otherwise,
/// so nobody may read it.
#[test]
fn what_recovery_writes_back_is_not_read_before_the_close() {
    story!(P2, I4, I8)
        .writer("w")
        .writes("w", 1)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 2)
        .has_no_more_than("w", 1, 1)
        .kill("w")
        .with("r")
        .cut("r", "second of w")
        .holds_changes("r", 1)
        .starts_recovery("r", "w")
        .until_held("r")
        .sees("reader", "w", 1)
        .lets_changes("r")
        .finishes_recovery("r", "w", 3..=3)
        .sees("reader", "w", 3)
        .tell();
}

/// With one bookie heard nobody knows what the other two confirmed without it.
#[test]
fn recovery_that_hears_too_few_decides_nothing() {
    story!(P1, I2)
        .writer("w")
        .cut_one_way("w", "third of w")
        .writes("w", 3)
        .kill(["first of w", "second of w"])
        .cannot_recover("r", "w")
        .start("second of w")
        .all_serve()
        .recovers("r", "w", 3)
        .tell();
}

#[test]
fn two_recoverers_at_once_agree() {
    story!(P2, I2, I9)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("w", "third of w")
        .writes("w", 2)
        .starts_recovery("r", "w")
        .starts_recovery("s", "w")
        .finishes_recovery("r", "w", 4..=4)
        .finishes_recovery("s", "w", 4..=4)
        .tell();
}

/// One copy of an entry that was never confirmed: the first recoverer sees it and has not closed yet, the second does
/// not reach the bookie that has it. Whoever closes, the end is one.
#[test]
fn two_recoverers_that_see_different_copies_agree() {
    story!(P2, I2, I4)
        .writer("w")
        .writes("w", 1)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 1)
        .has_no_more_than("w", 1, 1)
        .holds_changes("r", 1)
        .with("s")
        .cut("s", "first of w")
        .starts_recovery("r", "w")
        .until_held("r")
        .starts_recovery("s", "w")
        .finishes_recovery("s", "w", 1..=2)
        .lets_changes("r")
        .finishes_recovery("r", "w", 1..=2)
        .tell();
}

/// The first recoverer does not reach the bookie that has an entry nobody confirmed; before it closes, a second one finds
/// that entry and writes it back. The first one's end is the ledger's, and the second has to say so, too.
#[test]
fn a_recovery_that_found_more_and_closes_later_tells_the_end_of_the_record() {
    story!(P2, I2, I9)
        .writer("w")
        .writes("w", 1)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 1)
        .has_no_more_than("w", 1, 1)
        .with("r")
        .cut("r", "first of w")
        .holds_changes("r", 1)
        .starts_recovery("r", "w")
        .until_held("r")
        .holds_changes("s", 0)
        .starts_recovery("s", "w")
        .until_held("s")
        .lets_changes("r")
        .finishes_recovery("r", "w", 1..=1)
        .lets_changes("s")
        .finishes_recovery("s", "w", 1..=1)
        .tell();
}

/// The writer was idle long enough to tell how far it was, so that recovery finds nothing beyond that.
#[test]
fn a_ledger_without_a_tail_keeps_its_length() {
    story!(P1, I2).writer("w").writes("w", 3).pass(5).recovers("r", "w", 3).tell();
}

#[test]
fn a_recoverer_that_dies_before_it_closes_is_followed_by_another() {
    story!(P6, I16)
        .writer("w")
        .writes("w", 3)
        .holds_changes("r", 1)
        .starts_recovery("r", "w")
        .until_held("r")
        .kill("r")
        .recovers("s", "w", 3)
        .tell();
}

/// A recoverer is held up just before its close while another one recovers and closes; then it goes on.
#[test]
fn a_recoverer_that_is_late_changes_nothing() {
    story!(P2, I2, I9)
        .writer("w")
        .writes("w", 3)
        .holds_changes("r", 1)
        .starts_recovery("r", "w")
        .until_held("r")
        .recovers("s", "w", 3)
        .lets_changes("r")
        .finishes_recovery("r", "w", 3..=3)
        .tell();
}

/// The bookie dies after recovery has fenced it and before anything is written back: a spare takes its place.
#[test]
fn a_bookie_that_fails_in_the_middle_of_recovery_is_replaced() {
    story!(P1, P6, I6)
        .bookies(4)
        .quorum(3, 3, 3)
        .writer("w")
        .writes("w", 4)
        .with("r")
        .cut_one_way("r", "third of w")
        .starts_recovery("r", "w")
        .pass(1)
        .kill("third of w")
        .finishes_recovery("r", "w", 4..=4)
        .no_longer_names("w", "third of w")
        .start("third of w")
        .tell();
}

/// What the first bookie holds is confirmed by nobody; after the second recovery has found the end without it, it must
/// not come back.
#[test]
fn what_recovery_left_out_stays_out() {
    story!(P2, I3, I4)
        .writer("w")
        .writes("w", 1)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 1)
        .has_no_more_than("w", 1, 1)
        .kill(["w", "first of w"])
        .recovers("r", "w", 1)
        .start("first of w")
        .all_serve()
        .recovers("s", "w", 1)
        .sees("reader", "w", 1)
        .tell();
}

/// Entries are spread over five bookies; the two that are away are not enough to hide a confirmed entry from anyone.
#[test]
fn recovery_covers_every_write_set_of_a_wide_ensemble() {
    story!(P1, I2)
        .bookies(5)
        .quorum(5, 3, 2)
        .writer("w")
        .writes("w", 12)
        .cut_one_way("w", "third of w")
        .writes("w", 3)
        .kill("first of w")
        .recovers("r", "w", 15)
        .start("first of w")
        .tell();
}

#[test]
fn recovery_goes_on_where_metadata_was_away() {
    story!(P6, I16)
        .writer("w")
        .writes("w", 3)
        .kill("metadata")
        .starts_recovery("r", "w")
        .pass(3)
        .start("metadata")
        .finishes_recovery("r", "w", 3..=3)
        .tell();
}

/// Every entry needs three copies and one of its bookies is gone for good: recovery writes them to the fourth. Bookies
/// look several times for what they need not keep before the record names it.
#[test]
fn copies_written_back_stay_until_the_record_names_them() {
    story!(P1, I6)
        .bookies(4)
        .quorum(3, 3, 3)
        .writer("w")
        .writes("w", 10)
        .kill(["w", "first of w"])
        .holds_changes("r", 1)
        .starts_recovery("r", "w")
        .until_held("r")
        .pass(20)
        .lets_changes("r")
        .finishes_recovery("r", "w", 10..=10)
        .has_every_copy()
        .tell();
}

/// The one copy that recovery reaches is damaged, the other was never written: that is not the end of the ledger.
#[test]
fn a_rotten_copy_is_not_taken_for_an_absent_entry() {
    story!(P7, I2)
        .plan(|plan| {
            plan.checkpoint_interval = std::time::Duration::from_millis(50);
            plan.read_cache_bytes = 0;
        })
        .writer("w")
        .cut_one_way("w", "third of w")
        .writes("w", 3)
        .kill("w")
        .pass(1)
        .rot("second of w", "entries", 400)
        .restart("second of w")
        .all_serve()
        .with("r")
        .cut("r", "first of w")
        .cannot_recover("r", "w")
        .heal_all_links()
        .recovers("r", "w", 3)
        .tell();
}
