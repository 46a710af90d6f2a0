//! A topic moves between brokers: owners die, stand still, are cut off, give up, or have wrong clocks.

use crate::story::story;

#[test]
fn another_broker_takes_over_when_the_owner_dies() {
    let mut story = story!(P1, P6, I12).brokers(3).publishes(20);
    for _ in 0..3 {
        story = story
            .call("dead", "owner")
            .kill("dead")
            .publishes(20)
            .served_by_another_than("dead")
            .pass(61)
            .start("dead")
            .all_serve();
    }
    story.tell();
}

/// Given up by its owner, or taken from one that is cut off and does not know.
#[test]
fn a_bundle_passed_back_and_forth_loses_nothing() {
    let mut story = story!(P1, P5, I11, I12).brokers(2);
    for _ in 0..3 {
        story = story
            .publishes(5)
            .call("giving", "owner")
            .owner_gives_up()
            .serves_no_longer("giving")
            .publishes(5)
            .call("cut off", "owner")
            .isolate("cut off")
            .publishes(5)
            .heal_all_links()
            .serves_no_longer("cut off");
    }
    story.tell();
}

/// The owner stands still with messages on their way, another one takes the topic over, and then the old one goes on:
/// what it tells its producers then must be true.
#[test]
fn late_answers_of_a_deposed_owner_are_true() {
    story!(P1, P5, I3)
        .brokers(2)
        .publishes(10)
        .call("old", "owner")
        .call("new", "other broker")
        .begins_to_publish(20)
        .pass_micros(4_000)
        .pause("old")
        .clients_ask_only("new")
        .publishes(10)
        .served_by_another_than("old")
        .resume("old")
        .clients_ask_all()
        .serves_no_longer("old")
        .tell();
}

#[test]
fn an_owner_that_metadata_forgot_serves_no_longer() {
    story!(P5, I3)
        .brokers(2)
        .publishes(5)
        .call("old", "owner")
        .cut("old", "metadata")
        .pass(8)
        .clients_ask_only("other broker")
        .publishes(10)
        .heal_all_links()
        .serves_no_longer("old")
        .tell();
}

/// Its session runs out while its own clocks stand still, so by its own count no time has passed.
#[test]
fn an_owner_whose_clocks_stand_still_confirms_nothing_once_deposed() {
    story!(P5, I3)
        .brokers(2)
        .publishes(5)
        .call("old", "owner")
        .call("new", "other broker")
        .freeze_clock("old")
        .begins_to_publish(5)
        .pass(8)
        .clients_ask_only("new")
        .publishes(10)
        .served_by_another_than("old")
        .tries_to_publish(5)
        .thaw_clock("old")
        .serves_no_longer("old")
        .tell();
}

/// The client does not hear the owner, all others do: it gets no wrong answer, and no other broker takes the topic from
/// an owner that lives.
#[test]
fn a_client_that_does_not_reach_the_owner_moves_nothing() {
    story!(P5, P6)
        .brokers(2)
        .publishes(5)
        .call("serving", "owner")
        .cut("client-0", "serving")
        .cannot_publish()
        .serves("serving")
        .heal_all_links()
        .publishes(5)
        .serves("serving")
        .tell();
}

#[test]
fn wrong_wall_clocks_of_the_owner_harm_nothing() {
    story!(P5, I12)
        .brokers(2)
        .publishes(5)
        .step_clock("owner", 7)
        .publishes(5)
        .step_clock("owner", -20)
        .publishes_at_once(5)
        .call("old", "owner")
        .kill("old")
        .publishes(5)
        .start("old")
        .tell();
}

#[test]
fn an_owner_whose_clock_runs_away_loses_nothing() {
    story!(P1, P5)
        .brokers(2)
        .publishes(5)
        .clock_drifts("owner", 300)
        .publishes(10)
        .pass(10)
        .publishes(10)
        .tell();
}

/// Ledgers of four entries: the owner dies before, in and after a roll.
#[test]
fn an_owner_that_dies_at_any_moment_of_a_roll_loses_nothing() {
    for milliseconds in 0..6 {
        story!(P1, I11, I12)
            .brokers(2)
            .entries_a_ledger(4)
            .publishes(3)
            .call("old", "owner")
            .begins_to_publish(6)
            .pass_micros(20_000 + 4_000 * milliseconds)
            .kill("old")
            .publishes(5)
            .start("old")
            .tell();
    }
}

/// The chain's compare-and-set cannot be made while metadata is away: the topic waits and goes on.
#[test]
fn a_roll_waits_for_metadata() {
    story!(P1, P6, I11)
        .entries_a_ledger(5)
        .publishes(4)
        .kill("metadata")
        .tries_to_publish(6)
        .start("metadata")
        .publishes(10)
        .tell();
}

#[test]
fn an_open_ledger_is_written_while_metadata_is_away() {
    story!(P6).publishes(3).kill("metadata").publishes_at_once(5).start("metadata").tell();
}

#[test]
fn everything_is_restarted_in_turn_and_nothing_is_lost() {
    story!(P1, P6, I12)
        .metadata_nodes(3)
        .brokers(2)
        .publishes(5)
        .stop_in_order("metadata-0")
        .all_serve()
        .stop_in_order("metadata-1")
        .all_serve()
        .stop_in_order("metadata-2")
        .all_serve()
        .publishes(5)
        .stop_in_order("bookie-0")
        .all_serve()
        .stop_in_order("bookie-1")
        .all_serve()
        .stop_in_order("bookie-2")
        .all_serve()
        .publishes(5)
        .stop_in_order("broker-0")
        .all_serve()
        .stop_in_order("broker-1")
        .all_serve()
        .publishes(5)
        .tell();
}
