//! Protects P1: a sync that fails while a node starts ends the start, at whatever moment it fails.

use std::time::Duration;

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn a_sync_that_fails_while_the_node_starts_ends_the_start() {
    scenario(Topology::Standalone, |mut stage| async move {
        stage.keep_everything().await;
        let before = stage.publish(3).await;
        let machine = stage.machine("node-0");
        // One of these moments lies between the start of metadata and the first change made to it.
        for moment in 0..20 {
            machine.crash();
            stage.start_and_pass(Duration::from_millis(2) * moment).await;
            machine.set_disk(|disk| disk.sync_error_rate = 1.0);
            stage.pass(Duration::from_millis(200)).await;
            machine.heal_disk();
            stage.wait_until_served().await;
        }
        stage.all_there(&before).await;
        assert_eq!(stage.publish(3).await.len(), 3);
    });
}
