//! What a bookie has acknowledged it has: through power losses, failing disks and full ones; and it does not start with
//! less.

use crate::story::story;

/// The power goes on all bookies in the middle of a sync: the journals end in torn groups.
#[test]
fn a_torn_tail_of_every_journal_loses_nothing_confirmed() {
    for nth in 1..=4 {
        story!(P1, I10)
            .writer("w")
            .writes("w", 4)
            .sends("w", 3)
            .power_loss_in_sync("bookies", nth)
            .all_serve()
            .recovers_within("r", "w", 4..=7)
            .tell();
    }
}

/// Two of three disks fail their syncs: nothing is confirmed on them until they have been started again.
#[test]
fn two_disks_that_fail_their_syncs_confirm_nothing() {
    story!(P1, I10)
        .writer("w")
        .writes("w", 3)
        .syncs_fail(["first of w", "second of w"])
        .sends("w", 2)
        .has_no_more_than("w", 3, 5)
        .heal_disk(["first of w", "second of w"])
        .power_loss(["first of w", "second of w"])
        .all_serve()
        .recovers_within("r", "w", 3..=5)
        .tell();
}

#[test]
fn a_lost_index_is_made_again() {
    story!(P1, I10)
        .plan(|plan| plan.checkpoint_interval = std::time::Duration::from_millis(500))
        .writer("w")
        .writes("w", 6)
        .pass(3)
        .lose_index("bookies")
        .all_serve()
        .recovers("r", "w", 6)
        .tell();
}

/// Disks are so full that nothing is added any more, and yet ledgers can be fenced and read.
#[test]
fn full_bookies_take_nothing_and_can_still_be_fenced() {
    story!(P6, I7)
        .writer("w")
        .writes("w", 3)
        .fill_disk("bookies", 1024)
        .pass(15)
        .sends("w", 1)
        .has_no_more_than("w", 3, 12)
        .recovers("r", "w", 3)
        .heal_disk("bookies")
        .pass(5)
        .writer("v")
        .writes("v", 2)
        .tell();
}

/// Who a bookie is is on its disk, not in its address: with the disks exchanged each serves at the other's address, and
/// what either has promised and stored goes with the disk.
#[test]
fn bookies_that_exchange_their_disks_exchange_their_names() {
    story!(P1, I4, I7)
        .writer("w")
        .writes("w", 4)
        .recovers("r", "w", 4)
        .writer("v")
        .writes("v", 3)
        .kill(["first of w", "second of w"])
        .swap_disks("first of w", "second of w")
        .start(["first of w", "second of w"])
        .all_serve()
        .kill("third of w")
        .sees("reader", "w", 4)
        .sends("w", 1)
        .has_no_more_than("w", 4, 5)
        .recovers("r", "v", 3)
        .start("third of w")
        .tell();
}

/// An exchanged disk makes another bookie: the copies of the first are made anew on it or elsewhere.
#[test]
fn the_copies_of_a_lost_disk_are_made_again() {
    story!(P1, I6)
        .bookies(4)
        .lost_after(2)
        .writer("w")
        .writes("w", 5)
        .closes("w", 5)
        .call("lost", "third of w")
        .lose_disk("lost")
        .all_serve()
        .repaired_without("lost")
        .kill(["first of w", "second of w"])
        .sees("reader", "w", 5)
        .start(["first of w", "second of w"])
        .tell();
}

/// Only the auditor's machine does not reach a bookie. It is registered, so nothing is wrong with it, and the open
/// ledger on it is left alone.
#[test]
fn a_bookie_that_only_the_auditor_cannot_reach_is_left_alone() {
    story!(P6, I16)
        .bookies(4)
        .lost_after(1)
        .writer("w")
        .writes("w", 3)
        .call("auditor", "auditor")
        .cut("auditor", "first of w")
        .writes("w", 3)
        .pass(15)
        .fragments("w", 1)
        .writes("w", 3)
        .heal_all_links()
        .tell();
}

/// A bookie gives its copies away while a reader reads, and leaves for ever.
#[test]
fn a_drained_bookie_leaves_and_readers_notice_nothing() {
    story!(P1, P6, I6)
        .bookies(4)
        .writer("w")
        .writes("w", 6)
        .closes("w", 6)
        .call("leaving", "second of w")
        .drain("leaving")
        .sees("reader", "w", 6)
        .drained("leaving")
        .no_longer_names("w", "leaving")
        .kill("leaving")
        .sees("reader", "w", 6)
        .start("leaving")
        .tell();
}
