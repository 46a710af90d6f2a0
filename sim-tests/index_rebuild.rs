//! Protects design rule "nothing is ever only in the index": it is lost, and everything is still there.

use seawall::simulator::plan::Topology;

use crate::support::scenario;

#[test]
fn a_broken_index_is_made_again() {
    scenario(Topology::Standalone, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(60).await;
        stage.pass(std::time::Duration::from_secs(15)).await;
        let machine = stage.machine("node-0");
        assert!(machine.break_indexes(|_| true));
        assert!(machine.crash());
        stage.wait_until_served().await;
        stage.all_there(&acknowledged).await;
    });
}
