//! Protects P1: a receipt survives the loss of power everywhere at once.

use std::time::Duration;

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn a_standalone_node_keeps_what_it_acknowledged() {
    scenario(Topology::Standalone, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = stage.publish(30).await;
        assert_eq!(acknowledged.len(), 30);
        for _ in 0..3 {
            assert!(stage.machine("node-0").power_loss());
            stage.wait_until_served().await;
            stage.all_there(&acknowledged).await;
            acknowledged.extend(stage.publish(5).await);
        }
        stage.all_there(&acknowledged).await;
    });
}

#[test]
fn a_cluster_keeps_what_it_acknowledged_when_the_whole_site_goes_dark() {
    scenario(Topology::Cluster, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(30).await;
        for name in ["metadata-0", "bookie-0", "bookie-1", "bookie-2", "broker-0"] {
            assert!(stage.machine(name).power_loss());
        }
        stage.wait_until_served().await;
        stage.all_there(&acknowledged).await;
        // And it takes messages again.
        stage.pass(Duration::from_secs(1)).await;
        assert_eq!(stage.publish(5).await.len(), 5);
    });
}
