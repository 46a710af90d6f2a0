//! A bookie is replaced while its ledger is written: the record first, and only then what is confirmed under it.

use crate::story::{Ending, story};

#[test]
fn a_dead_bookie_is_replaced_and_the_writer_goes_on() {
    story!(P6, I6)
        .bookies(4)
        .writer("w")
        .writes("w", 3)
        .kill("third of w")
        .writes("w", 3)
        .fragments("w", 2)
        .writes("w", 3)
        .start("third of w")
        .tell();
}

/// Every copy is needed, one bookie is dead, and metadata does not answer the change: nothing may be confirmed on the
/// new bookie before the record names it.
#[test]
fn nothing_is_confirmed_while_an_ensemble_change_waits_for_metadata() {
    story!(P1, I2, I9)
        .bookies(4)
        .quorum(3, 3, 3)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .kill("third of w")
        .sends("w", 2)
        .until_held("w")
        .has_no_more_than("w", 3, 2)
        .lets_changes("w")
        .has_confirmed("w", 5)
        .fragments("w", 2)
        .start("third of w")
        .tell();
}

/// With two copies of three enough, entries could be complete on the two that live. While the change is under way they
/// are not confirmed: the record of the change begins with them.
#[test]
fn what_completes_during_an_ensemble_change_waits_for_it() {
    story!(P1, I2, I5)
        .bookies(4)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .kill("third of w")
        .sends("w", 1)
        .until_held("w")
        .sends("w", 3)
        .has_no_more_than("w", 4, 5)
        .lets_changes("w")
        .has_confirmed("w", 7)
        .start("third of w")
        .tell();
}

/// The third bookie alone has the entry, and loses its disk. When the first has it, too, there is one copy in the
/// ensemble, unless the replacement was sent it.
#[test]
fn a_copy_on_a_replaced_bookie_counts_no_more() {
    story!(P1, I1, I6)
        .bookies(4)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("w", ["first of w", "second of w"])
        .sends("w", 1)
        .has_no_more_than("w", 2, 1)
        .lose_disk("third of w")
        .sends("w", 1)
        .fragments("w", 2)
        .heal("w", "first of w")
        .has_confirmed("w", 4)
        .kill(["w", "first of w"])
        .recovers("r", "w", 4)
        .start("first of w")
        .tell();
}

/// The writer stands before its change of the record when someone else recovers the ledger: the change must not be made.
#[test]
fn recovery_during_an_ensemble_change_stops_the_writer() {
    story!(P5, I2, I3, I9)
        .bookies(4)
        .quorum(3, 3, 3)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .kill("third of w")
        .sends("w", 2)
        .until_held("w")
        .recovers_within("r", "w", 3..=5)
        .lets_changes("w")
        .ends("w", Ending::Fenced)
        .start("third of w")
        .tell();
}

/// The record names the new bookie, and the writer dies before the new bookie has anything.
#[test]
fn a_writer_that_dies_right_after_its_ensemble_change_loses_nothing() {
    story!(P1, I2)
        .bookies(4)
        .writer("w")
        .writes("w", 3)
        .cut_one_way("w", "spares of w")
        .kill("third of w")
        .sends("w", 1)
        .fragments("w", 2)
        .kill("w")
        .recovers_within("r", "w", 3..=4)
        .start("third of w")
        .tell();
}

/// The writer dies between finding a replacement and the change of the record.
#[test]
fn a_writer_that_dies_before_its_ensemble_change_loses_nothing() {
    story!(P1, I2)
        .bookies(4)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .kill("third of w")
        .sends("w", 1)
        .until_held("w")
        .kill("w")
        .recovers_within("r", "w", 3..=4)
        .start("third of w")
        .tell();
}

/// Two bookies die one after the other: the second change is made while the first one's entries are still owed.
#[test]
fn two_ensemble_changes_one_after_the_other_lose_nothing() {
    story!(P1, P6, I6)
        .bookies(5)
        .writer("w")
        .writes("w", 3)
        .kill("third of w")
        .sends("w", 2)
        .fragments("w", 2)
        .kill("second of w")
        .writes("w", 3)
        .start(["second of w", "third of w"])
        .tell();
}

/// Repair replaces a lost bookie in an older fragment while the writer's own change waits: both are in the record in the
/// end, and the lost bookie never comes back into it.
#[test]
fn an_ensemble_change_does_not_undo_what_repair_did() {
    story!(P1, I9)
        .bookies(5)
        .lost_after(1)
        .writer("w")
        .writes("w", 3)
        .kill("third of w")
        .writes("w", 3)
        .fragments("w", 2)
        .holds_changes("w", 0)
        .kill("second of w")
        .sends("w", 1)
        .until_held("w")
        .no_longer_names("w", "third of w")
        .lets_changes("w")
        .has_confirmed("w", 7)
        .never_names("w", "third of w", 3)
        .start(["second of w", "third of w"])
        .tell();
}

/// Two of three have the entry and it is confirmed; only then the third is found to be dead.
#[test]
fn a_bookie_that_fails_late_harms_nothing_confirmed() {
    story!(P1, I1)
        .bookies(4)
        .writer("w")
        .cut_one_way("third of w", "w")
        .writes("w", 3)
        .kill("third of w")
        .writes("w", 2)
        .fragments("w", 2)
        .kill("first of w")
        .recovers("r", "w", 5)
        .start(["first of w", "third of w"])
        .tell();
}

#[test]
fn without_a_spare_the_writer_goes_on_with_the_copies_it_has() {
    story!(P6)
        .writer("w")
        .writes("w", 2)
        .kill("third of w")
        .writes("w", 5)
        .fragments("w", 1)
        .start("third of w")
        .tell();
}

#[test]
fn too_few_bookies_end_the_writer_and_confirm_nothing() {
    story!(P1, I5)
        .writer("w")
        .writes("w", 2)
        .kill(["second of w", "third of w"])
        .sends("w", 2)
        .ends("w", Ending::TimedOut)
        .has_no_more_than("w", 2, 1)
        .start(["second of w", "third of w"])
        .tell();
}
