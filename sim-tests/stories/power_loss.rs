//! A receipt survives the loss of power everywhere at once.

use crate::story::story;

#[test]
fn a_standalone_node_keeps_what_it_acknowledged() {
    let mut story = story!(P1, I10).standalone().publishes(30);
    for moment in 0..3 {
        story = story
            .begins_to_publish(10)
            .pass_micros(5_000 + 3_000 * moment)
            .power_loss("node-0")
            .all_serve()
            .publishes(5);
    }
    story.tell();
}

#[test]
fn a_cluster_keeps_what_it_acknowledged_when_the_whole_site_goes_dark() {
    story!(P1, I12)
        .publishes(30)
        .begins_to_publish(10)
        .pass_micros(10_000)
        .power_loss("everything")
        .all_serve()
        .publishes(5)
        .tell();
}

#[test]
fn a_group_keeps_what_it_acknowledged_when_the_whole_site_goes_dark() {
    story!(P1, I11, I12)
        .metadata_nodes(3)
        .brokers(2)
        .entries_a_ledger(10)
        .publishes(25)
        .begins_to_publish(10)
        .pass_micros(10_000)
        .power_loss("everything")
        .all_serve()
        .publishes(5)
        .tell();
}

#[test]
fn a_failed_sync_poisons_and_a_restart_mends() {
    story!(P1, I10)
        .standalone()
        .publishes(10)
        .syncs_fail("node-0")
        .cannot_publish()
        .heal_disk("node-0")
        .power_loss("node-0")
        .all_serve()
        .publishes_at_once(3)
        .tell();
}
