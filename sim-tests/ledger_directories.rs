//! Protects P1 on bookies with several ledger directories: power loss, an index made from all of them, and a
//! disk that is not there any more.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall::simulator::plan::{Plan, Topology};

use crate::support::bookies::{id_of, on_bookies, repaired_without};
use crate::support::{Stage, scenario_with};

fn two_directories(plan: &mut Plan) {
    on_bookies(plan, 3);
    plan.ledger_directories = 2;
    plan.checkpoint_interval = Duration::from_secs(2);
}

/// Folders of a bookie that hold entry logs.
fn used(stage: &Stage, name: &str) -> BTreeSet<PathBuf> {
    let files = stage.machine(name).files();
    let logs = files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "entries"));
    logs.filter_map(|(path, _)| path.parent().map(Path::to_owned)).collect()
}

#[test]
fn power_goes_everywhere_and_indexes_are_made_again() {
    scenario_with(Topology::Swarm, two_directories, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = stage.publish(80).await;
        assert_eq!(acknowledged.len(), 80);
        stage.pass(Duration::from_secs(10)).await;
        for name in ["bookie-0", "bookie-1", "bookie-2"] {
            assert_eq!(used(&stage, name).len(), 2, "{name}");
        }
        for round in 0..3 {
            acknowledged.extend(stage.publish(20).await);
            assert_eq!(acknowledged.len(), 100 + 20 * round);
            for name in ["bookie-0", "bookie-1", "bookie-2"] {
                assert!(stage.machine(name).power_loss());
                assert!(stage.machine(name).break_indexes(|_| round > 0));
            }
            assert!(stage.machine("broker-0").power_loss());
            stage.wait_until_served().await;
            stage.all_there(&acknowledged).await;
        }
        repaired_without(&mut stage, None).await;
    });
}

#[test]
fn a_bookie_that_lost_one_of_its_disks_does_not_start() {
    scenario_with(Topology::Swarm, two_directories, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(60).await;
        stage.pass(Duration::from_secs(10)).await;
        let before = id_of(&stage, "bookie-1");
        let machine = stage.machine("bookie-1");
        let disk = machine.runtime().disk;
        disk.remove_directory(Path::new("/data/ledgers-2")).await.unwrap();
        disk.sync_directory(Path::new("/data")).await.unwrap();
        stage.keep_down("bookie-1", Duration::from_secs(1));
        assert!(machine.crash());
        stage.pass(Duration::from_secs(5)).await;
        let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == "bookie-1");
        let reason = node.unwrap().gave_up_because.clone().expect("it does not start");
        assert!(reason.contains("/data/ledgers-2 has no cookie"), "{reason}");
        stage.all_there(&acknowledged).await;
        stage.keep_down("bookie-1", Duration::from_secs(1));
        machine.crash();
        assert!(machine.wipe_disk());
        stage.wait_until_served().await;
        repaired_without(&mut stage, Some(before)).await;
        stage.all_there(&acknowledged).await;
    });
}
