//! What a subscription has acknowledged it never gets again, and what it has not it gets, wherever the topic is.

use crate::story::story;

#[test]
fn acknowledgements_outlive_the_owner() {
    story!(P4, I13)
        .brokers(2)
        .publishes(10)
        .subscribes("s")
        .consumes("s", 4)
        .call("old", "owner")
        .kill("old")
        .has_the_rest("s")
        .consumes("s", 3)
        .start("old")
        .tell();
}

#[test]
fn a_cumulative_acknowledgement_outlives_a_failover() {
    story!(P4, I13)
        .brokers(2)
        .publishes(12)
        .subscribes("s")
        .acknowledges_up_to("s", 7)
        .call("old", "owner")
        .kill("old")
        .has_the_rest("s")
        .acknowledges_up_to("s", 2)
        .start("old")
        .all_serve()
        .restart("brokers")
        .tell();
}

#[test]
fn acknowledgements_with_holes_outlive_a_power_loss_everywhere() {
    story!(P4, I13)
        .publishes(10)
        .subscribes("s")
        .acknowledges_some("s", 10, &[1, 2, 5, 9])
        .power_loss("everything")
        .all_serve()
        .has_the_rest("s")
        .acknowledges_some("s", 6, &[0, 3])
        .restart("brokers")
        .tell();
}

#[test]
fn a_partly_acknowledged_batch_survives_an_unload() {
    story!(P4, I13)
        .brokers(2)
        .publishes_a_batch(6)
        .subscribes("s")
        .acknowledges_some("s", 6, &[0, 2, 3])
        .owner_gives_up()
        .has_the_rest("s")
        .acknowledges_some("s", 3, &[1])
        .owner_gives_up()
        .has_the_rest("s")
        .tell();
}

/// Parts of one batch acknowledged in several turns add up.
#[test]
fn acknowledgements_of_one_batch_add_up() {
    story!(P4, I13)
        .publishes_a_batch(6)
        .subscribes("s")
        .acknowledges_some("s", 6, &[0, 1])
        .acknowledges_some("s", 4, &[3])
        .has_the_rest("s")
        .restart("owner")
        .has_the_rest("s")
        .tell();
}

/// A subscription that begins while others let ledgers be deleted gets everything from where it began.
#[test]
fn a_subscription_that_begins_during_a_trim_misses_nothing() {
    story!(P4, I15)
        .trims()
        .entries_a_ledger(3)
        .subscribes("first")
        .publishes(9)
        .consumes("first", 8)
        .subscribes_from_here("second")
        .pass(4)
        .publishes(4)
        .restart("owner")
        .has_the_rest("first")
        .tell();
}

#[test]
fn nothing_is_trimmed_that_a_slow_subscription_needs() {
    story!(P4, I14, I15)
        .trims()
        .entries_a_ledger(3)
        .subscribes("slow")
        .subscribes("fast")
        .publishes(12)
        .consumes("fast", 12)
        .pass(10)
        .has_the_rest("slow")
        .restart("owner")
        .has_the_rest("slow")
        .consumes("slow", 5)
        .pass(10)
        .has_the_rest("slow")
        .tell();
}

/// A consumer is cut off with messages in its hands; another one gets them.
#[test]
fn what_a_dead_consumer_held_goes_to_the_next() {
    story!(P4, I14)
        .publishes(8)
        .subscribes("s")
        .consumes("s", 2)
        .gets_and_dies("s", 3)
        .has_the_rest("s")
        .tell();
}

/// Where the cursor's ledger is rolled at every few changes, a power loss may come at any of them.
#[test]
fn a_cursor_whose_ledger_is_rolled_keeps_its_place() {
    story!(P4, I13)
        .plan(|plan| plan.cursor_ledger_entries_max = 2)
        .publishes(12)
        .subscribes("s")
        .consumes("s", 7)
        .power_loss("everything")
        .all_serve()
        .has_the_rest("s")
        .consumes("s", 3)
        .restart("brokers")
        .tell();
}
