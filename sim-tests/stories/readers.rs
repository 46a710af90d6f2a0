//! Reading a ledger that is still written, without recovering it.

use crate::story::story;

/// Two entries have one copy each: they may be lost, and so nobody may have read them.
#[test]
fn a_reader_never_passes_the_last_add_confirmed() {
    story!(I8)
        .writer("w")
        .writes("w", 3)
        .cut_one_way("w", ["second of w", "third of w"])
        .sends("w", 2)
        .has_no_more_than("w", 3, 3)
        .sees("reader", "w", 3)
        .kill(["w", "first of w"])
        .recovers("r", "w", 3)
        .sees("reader", "w", 3)
        .start("first of w")
        .tell();
}

#[test]
fn a_reader_hears_of_the_last_entry_of_an_idle_writer() {
    story!(I8, I14)
        .writer("w")
        .writes("w", 1)
        .sees("reader", "w", 1)
        .writes("w", 4)
        .sees("reader", "w", 5)
        .tell();
}

#[test]
fn a_reader_that_waits_is_woken_by_the_next_entry() {
    story!(I14)
        .writer("w")
        .writes("w", 1)
        .sees("reader", "w", 1)
        .waits_for_more("reader", "w", 100)
        .writes("w", 1)
        .stops_waiting("reader", 3)
        .sees("reader", "w", 2)
        .tell();
}

#[test]
fn a_wait_for_more_ends_when_the_writer_is_dead() {
    story!(P6, I16)
        .writer("w")
        .writes("w", 2)
        .sees("reader", "w", 2)
        .waits_for_more("reader", "w", 20)
        .kill("w")
        .recovers("r", "w", 2)
        .stops_waiting("reader", 25)
        .sees("reader", "w", 2)
        .tell();
}

#[test]
fn everything_confirmed_is_read_while_one_copy_of_two_is_lost() {
    story!(P1, I1)
        .writer("w")
        .cut_one_way("w", "third of w")
        .writes("w", 5)
        .closes("w", 5)
        .lose_disk("second of w")
        .sees("reader", "w", 5)
        .tell();
}

/// The bookie that is asked first stands still: after a while the next one is asked.
#[test]
fn a_reader_does_not_wait_for_a_bookie_that_stands_still() {
    story!(P6, I1)
        .writer("w")
        .writes("w", 5)
        .closes("w", 5)
        .pause(["first of w", "second of w"])
        .sees("reader", "w", 5)
        .tell();
}

#[test]
fn a_rotten_copy_is_refused_and_another_one_read() {
    story!(P7, I4)
        .plan(|plan| {
            plan.checkpoint_interval = std::time::Duration::from_millis(500);
            plan.read_cache_bytes = 0;
        })
        .writer("w")
        .writes("w", 8)
        .closes("w", 8)
        .pass(3)
        .rot("first of w", "entries", 200)
        .rot("second of w", "entries", 200)
        .sees("reader", "w", 8)
        .tell();
}
