//! A writer dies at each step of an append and of a close, and what it confirmed is there.

use crate::story::{Ending, story};

/// Nothing is sent yet, or on its way, or stored by some, or answered by some, or confirmed.
#[test]
fn a_writer_that_dies_at_any_moment_of_an_append_loses_nothing() {
    for half_milliseconds in 0..12 {
        story!(P1, I2, I5)
            .writer("w")
            .writes("w", 2)
            .sends("w", 3)
            .pass_micros(500 * half_milliseconds)
            .kill("w")
            .recovers_within("r", "w", 2..=5)
            .tell();
    }
}

/// Entry 2 is stored twice and entry 1 once: nothing is confirmed over the hole, whoever dies.
#[test]
fn nothing_is_confirmed_over_a_hole() {
    story!(P2, I5)
        .bookies(5)
        .quorum(5, 2, 2)
        .writer("w")
        .writes("w", 5)
        .cut_one_way("w", "first of w")
        .sends("w", 5)
        .has_no_more_than("w", 5, 2)
        .heal_all_links()
        .has_confirmed("w", 10)
        .tell();
}

#[test]
fn a_writer_that_dies_before_its_close_is_made_is_recovered() {
    story!(P1, I2)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .starts_to_close("w")
        .until_held("w")
        .kill("w")
        .recovers("r", "w", 3)
        .tell();
}

/// The close is made and its writer never hears of it.
#[test]
fn a_close_whose_answer_is_lost_stands() {
    story!(P2, I2)
        .writer("w")
        .writes("w", 3)
        .cut_one_way("metadata", "w")
        .starts_to_close("w")
        .pass(1)
        .kill("w")
        .recovers("r", "w", 3)
        .tell();
}

#[test]
fn a_close_during_recovery_does_not_move_the_end() {
    story!(P5, I2, I9)
        .writer("w")
        .writes("w", 3)
        .holds_changes("w", 0)
        .starts_to_close("w")
        .until_held("w")
        .recovers("r", "w", 3)
        .lets_changes("w")
        .finishes_close("w", Some(3))
        .tell();
}

/// Recovery has claimed the ledger and found one entry more than its writer knows of: the writer's close is refused.
#[test]
fn a_close_at_an_older_end_is_refused() {
    story!(P5, I2, I3)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("bookies", "w")
        .sends("w", 1)
        .has_no_more_than("w", 2, 1)
        .recovers("r", "w", 3)
        .starts_to_close("w")
        .finishes_close("w", None)
        .tell();
}

#[test]
fn a_closed_ledger_is_recovered_where_it_was_closed() {
    story!(P2, I2)
        .writer("w")
        .writes("w", 4)
        .closes("w", 4)
        .kill("third of w")
        .recovers("r", "w", 4)
        .sees("reader", "w", 4)
        .start("third of w")
        .tell();
}

#[test]
fn a_slow_bookie_holds_nobody_up() {
    story!(P6)
        .writer("w")
        .writes("w", 2)
        .stall_disk("third of w")
        .writes("w", 5)
        .pause("second of w")
        .sends("w", 1)
        .has_no_more_than("w", 7, 2)
        .resume("second of w")
        .has_confirmed("w", 8)
        .tell();
}

/// The writer's clock stands still, so it never times out; it must not confirm anything either that was taken from it.
#[test]
fn a_writer_whose_clock_stands_still_confirms_nothing_after_the_fence() {
    story!(P5, I3)
        .writer("w")
        .writes("w", 2)
        .cut_one_way("w", "bookies")
        .freeze_clock("w")
        .sends("w", 2)
        .recovers("r", "w", 2)
        .heal_all_links()
        .has_no_more_than("w", 2, 20)
        .ends("w", Ending::Fenced)
        .tell();
}
