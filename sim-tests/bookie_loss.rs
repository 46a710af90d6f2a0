//! Protects P6: with 3/3/2, publishing goes on while any one bookie is away, and what it missed does not
//! make it lie later.

use std::time::Duration;

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn publishing_goes_on_without_one_bookie() {
    scenario(Topology::Cluster, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = stage.publish(5).await;
        for name in ["bookie-0", "bookie-1", "bookie-2"] {
            stage.keep_down(name, Duration::from_secs(30));
            assert!(stage.machine(name).crash());
            let without = stage.publish(5).await;
            assert_eq!(without.len(), 5, "without {name}");
            acknowledged.extend(without);
            stage.pass(Duration::from_secs(31)).await;
            stage.wait_until_served().await;
        }
        stage.all_there(&acknowledged).await;
    });
}
