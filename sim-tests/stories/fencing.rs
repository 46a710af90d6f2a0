//! Who was fenced off stays so: through power losses, restarts, late messages and empty disks.

use crate::story::{Ending, story};

#[test]
fn a_fence_outlives_restarts_and_stops_the_old_writer() {
    story!(P5, I3, I7)
        .writer("w")
        .writes("w", 2)
        .recovers("r", "w", 2)
        .power_loss("bookies")
        .all_serve()
        .sends("w", 1)
        .has_no_more_than("w", 2, 30)
        .tell();
}

#[test]
fn a_fence_is_durable_before_it_is_answered() {
    story!(I3, I7)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("w", "bookies")
        .starts_recovery("r", "w")
        .power_loss_in_sync("bookies", 1)
        .all_serve()
        .finishes_recovery("r", "w", 2..=2)
        .sends("w", 1)
        .heal_all_links()
        .has_no_more_than("w", 2, 20)
        .tell();
}

/// The add is on its way to every bookie while the ledger is recovered and closed without it.
#[test]
fn an_add_that_arrives_after_the_close_is_refused() {
    story!(P5, I2, I3)
        .writer("w")
        .writes("w", 3)
        .cut_one_way("w", "bookies")
        .sends("w", 1)
        .recovers("r", "w", 3)
        .heal_all_links()
        .has_no_more_than("w", 3, 20)
        .ends("w", Ending::Fenced)
        .tell();
}

/// One bookie of three has the add when the ledger is recovered, and it is the one that recovery does not hear.
#[test]
fn an_add_that_one_unheard_bookie_has_is_not_confirmed_after_the_close() {
    story!(P5, I2, I3)
        .writer("w")
        .writes("w", 2)
        .with("r")
        .cut_one_way("w", ["second of w", "third of w"])
        .cut("r", "first of w")
        .sends("w", 1)
        .has_no_more_than("w", 2, 2)
        .recovers("r", "w", 2)
        .heal_all_links()
        .ends("w", Ending::Fenced)
        .has_no_more_than("w", 2, 5)
        .tell();
}

/// Answers of bookies are on their way to the writer while the ledger is recovered: what they confirm is in it.
#[test]
fn answers_that_were_late_confirm_only_what_recovery_found() {
    story!(P1, I2)
        .writer("w")
        .writes("w", 1)
        .cut_one_way("bookies", "w")
        .sends("w", 3)
        .has_no_more_than("w", 1, 1)
        .recovers("r", "w", 4)
        .heal_all_links()
        .tell();
}

#[test]
fn a_ledger_recovered_again_and_again_has_one_end() {
    story!(P2, I2, I7)
        .writer("w")
        .writes("w", 4)
        .recovers("r", "w", 4)
        .power_loss("bookies")
        .all_serve()
        .recovers("s", "w", 4)
        .lose_index("bookies")
        .all_serve()
        .recovers("t", "w", 4)
        .tell();
}

/// The bookie that answers at the old address has another disk: it never promised anything and must not speak for
/// the one that did.
#[test]
fn another_bookie_at_the_same_address_does_not_speak_for_the_first() {
    story!(P5, I3)
        .writer("w")
        .writes("w", 2)
        .with("r")
        .cut_one_way("w", ["second of w", "third of w"])
        .cut("r", "first of w")
        .recovers("r", "w", 2)
        .lose_disk("first of w")
        .all_serve()
        .sends("w", 2)
        .has_no_more_than("w", 2, 15)
        .tell();
}
