//! The metadata group: what a minority, an old leader and a member that was away may say.

use crate::story::story;

#[test]
fn a_minority_says_nothing_and_goes_on_with_the_others() {
    story!(P5, P6, I9)
        .metadata_nodes(3)
        .someone_leads()
        .sets("metadata", "/register", "before")
        .call("alone", "leader")
        .power_off("followers")
        .cannot_set("alone", "/other", "no")
        .gets_or_nothing("alone", "/register", "before")
        .start("metadata")
        .all_serve()
        .sets("metadata", "/register", "after")
        .tell();
}

#[test]
fn a_leader_that_was_paused_is_not_believed() {
    story!(P5, I9)
        .metadata_nodes(3)
        .someone_leads()
        .sets("leader", "/register", "before")
        .call("old", "leader")
        .call("others", "followers")
        .pause("old")
        .leads_another_than("old")
        .sets("others", "/register", "after")
        .resume("old")
        .gets_or_nothing("old", "/register", "after")
        .gets("metadata", "/register", "after")
        .tell();
}

/// The leader's clock stands still: it never notices that it is none any more.
#[test]
fn a_leader_whose_clock_stands_still_reads_nothing_old() {
    story!(P5, I9)
        .metadata_nodes(3)
        .someone_leads()
        .sets("leader", "/register", "before")
        .call("old", "leader")
        .call("others", "followers")
        .freeze_clock("old")
        .cut("old", "others")
        .leads_another_than("old")
        .sets("others", "/register", "after")
        .believes_it_leads("old")
        .gets_or_nothing("old", "/register", "after")
        .thaw_clock("old")
        .heal_all_links()
        .gets("old", "/register", "after")
        .tell();
}

/// It hears nobody and is heard: its followers see a leader, and nobody can change anything until it steps down.
#[test]
fn a_leader_that_hears_nobody_steps_down() {
    story!(P6, I16)
        .metadata_nodes(3)
        .someone_leads()
        .call("old", "leader")
        .cut_one_way("followers", "old")
        .leads_another_than("old")
        .sets("metadata", "/register", "after")
        .tell();
}

#[test]
fn what_was_answered_outlives_a_power_loss_of_the_whole_group() {
    story!(P1, I9)
        .metadata_nodes(3)
        .sets("metadata", "/one", "1")
        .sets("metadata", "/two", "2")
        .power_loss("metadata")
        .all_serve()
        .gets("metadata", "/one", "1")
        .sets("metadata", "/two", "3")
        .power_loss("metadata")
        .tell();
}

/// Who was away while two hundred keys were written needs a snapshot; and its own log is long enough that it takes none
/// itself soon after. From then on it counts, and what it says it has it must have after a power loss, too.
#[test]
fn a_snapshot_taken_over_outlives_the_power() {
    story!(P1, P6)
        .metadata_nodes(3)
        .plan(|plan| {
            plan.metadata_log_bytes = 64 * 1024;
            plan.metadata_log_kept = 0;
        })
        .someone_leads()
        .call("first", "leader")
        .call("second", "first follower")
        .call("late", "second follower")
        .kill("late")
        .sets_many(["first", "second"], 200)
        .start("late")
        .takes_a_snapshot_over("late")
        .kill("second")
        .sets(["first", "late"], "/kept", "yes")
        .power_off(["first", "late"])
        .start(["late", "second"])
        .gets(["second", "late"], "/kept", "yes")
        .tell();
}

/// With its disk gone a member must not come back under its id: with one that was away it could otherwise agree that
/// nothing was ever written.
#[test]
fn a_member_with_an_empty_disk_agrees_to_nothing() {
    story!(P1, P2, I9)
        .metadata_nodes(3)
        .someone_leads()
        .call("first", "leader")
        .call("wiped", "first follower")
        .call("late", "second follower")
        .power_off("late")
        .sets(["first", "wiped"], "/kept", "yes")
        .power_off("first")
        .lose_disk("wiped")
        .start("late")
        .cannot_set(["wiped", "late"], "/other", "no")
        .start("first")
        .gets(["first", "late"], "/kept", "yes")
        .never_comes_back("wiped")
        .tell();
}

/// An operator replaces every member, one after the other, the leader last. The log begins with the founders, of whom none
/// is left: the last one to join reads their membership first, and must answer a leader that is not in it. In the end it
/// is needed for what the other one cannot do alone.
#[test]
fn every_member_is_replaced_and_the_last_one_catches_up() {
    story!(P6, I9, I16)
        .metadata_nodes(3)
        .plan(|plan| plan.metadata_log_bytes = 16 * 1024 * 1024)
        .someone_leads()
        .sets_many("leader", 200)
        .call("first", "leader")
        .call("second", "first follower")
        .call("third", "second follower")
        .replaces_member("second", 101)
        .replaces_member("third", 102)
        .replaces_member("first", 103)
        .kill("second")
        .sets(["first", "third"], "/kept", "yes")
        .tell();
}

/// The leader dies at each moment of a change, some of them between its being made and its being answered. The client asks
/// another leader again; the change is made once.
#[test]
fn a_change_asked_for_again_is_made_once() {
    for half_milliseconds in 4..16 {
        story!(P2, I9)
            .metadata_nodes(3)
            .someone_leads()
            .has_a_known_client()
            .call("old", "leader")
            .begins_to_create("/created", "once")
            .pass_micros(500 * half_milliseconds)
            .kill("old")
            .leads_another_than("old")
            .has_created("/created", "once")
            .start("old")
            .tell();
    }
}

/// A member's disk fails its syncs: it says nothing more, and the others go on.
#[test]
fn a_member_whose_syncs_fail_is_left_behind() {
    story!(P1, P6)
        .metadata_nodes(3)
        .someone_leads()
        .sets("metadata", "/register", "before")
        .call("sick", "leader")
        .syncs_fail("sick")
        .sets("metadata", "/register", "after")
        .heal_disk("sick")
        .power_loss("metadata")
        .all_serve()
        .gets("metadata", "/register", "after")
        .tell();
}

#[test]
fn a_full_log_takes_nothing_and_goes_on_with_room() {
    story!(P1, P6)
        .metadata_nodes(3)
        .someone_leads()
        .sets("metadata", "/register", "before")
        .fill_disk("metadata", 0)
        .cannot_set("metadata", "/other", "no")
        .heal_disk("metadata")
        .all_serve()
        .sets("metadata", "/register", "after")
        .tell();
}

#[test]
fn clocks_that_drift_apart_break_no_promise() {
    story!(P5, P6)
        .metadata_nodes(3)
        .someone_leads()
        .clock_drifts("metadata-0", 20)
        .clock_drifts("metadata-1", -20)
        .step_clock("metadata-2", 5)
        .sets("metadata", "/register", "one")
        .pass(20)
        .restart("leader")
        .sets("metadata", "/register", "two")
        .tell();
}

/// A broker that restarts needs metadata to take its topics over.
#[test]
fn publishing_goes_on_without_any_one_leader() {
    let mut story = story!(P1, P6)
        .metadata_nodes(3)
        .brokers(2)
        .plan(|plan| plan.metadata_log_bytes = 8 * 1024)
        .publishes(10);
    for _ in 0..3 {
        story = story
            .someone_leads()
            .call("down", "leader")
            .power_off("down")
            .restart("broker-0")
            .publishes(10)
            .pass(31)
            .start("down")
            .all_serve();
    }
    story.tell();
}

#[test]
fn three_nodes_with_every_role_go_on_without_any_one() {
    let mut story = story!(P1, P6)
        .metadata_nodes(3)
        .brokers(3)
        .plan(|plan| plan.shape.shares_nodes = true)
        .publishes(10);
    for node in ["node-0", "node-1", "node-2"] {
        story = story.kill(node).publishes(10).pass(41).start(node).all_serve();
    }
    story.tell();
}
