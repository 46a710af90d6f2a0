//! Protects P7: rotten copies are refused, and read from another bookie.

use std::time::Duration;

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn rotten_entry_logs_of_one_bookie_are_never_served() {
    scenario(Topology::Cluster, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(80).await;
        // Until the write caches are in entry logs.
        stage.pass(Duration::from_secs(15)).await;
        let machine = stage.machine("bookie-1");
        let is_entry_log =
            |path: &std::path::Path| path.extension().is_some_and(|end| end == "entries");
        let rotted = machine.rot(is_entry_log, 20);
        assert!(!rotted.is_empty(), "there was something to rot");
        // A new broker has no tail cache: every entry is read from bookies.
        assert!(stage.machine("broker-0").crash());
        stage.wait_until_served().await;
        stage.all_there(&acknowledged).await;
    });
}
