//! Protects P1: after a failed sync nothing is acknowledged until a restart, and nothing acknowledged
//! before is lost (the lesson of fsync failures: a later success does not make up for it).

use std::time::Duration;

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn a_failed_sync_poisons_and_a_restart_mends() {
    scenario(Topology::Standalone, |mut stage| async move {
        stage.keep_everything().await;
        let before = stage.publish(10).await;
        assert_eq!(before.len(), 10);
        let machine = stage.machine("node-0");
        machine.set_disk(|disk| disk.sync_error_rate = 1.0);
        let during = stage.publish(10).await;
        assert_eq!(during, [], "nothing is acknowledged when no sync succeeds");
        machine.heal_disk();
        machine.power_loss();
        stage.wait_until_served().await;
        stage.all_there(&before).await;
        assert_eq!(stage.publish(3).await.len(), 3);
    });
}

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
