//! Protects P1 and P7 over time: copies that were lost, damaged or are to move are made again elsewhere, by
//! themselves, while clients go on.

use std::time::Duration;

use seawall::ledger::repair::{DrainState, Drains, RepairMarker};
use seawall::simulator::plan::Topology;

use crate::support::bookies::{id_of, metadata, on_bookies, repaired_without};
use crate::support::scenario_with;

#[test]
fn a_wiped_disk_comes_back_as_another_and_is_filled_again() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 3),
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = stage.publish(45).await;
            assert_eq!(acknowledged.len(), 45);
            let before = id_of(&stage, "bookie-1");
            let machine = stage.machine("bookie-1");
            stage.keep_down("bookie-1", Duration::from_secs(2));
            assert!(machine.crash() && machine.wipe_disk());
            // Reads and writes go on with the other two.
            acknowledged.extend(stage.publish(5).await);
            stage.all_there(&acknowledged).await;
            stage.wait_until_served().await;
            assert_ne!(id_of(&stage, "bookie-1"), before, "an empty disk is another bookie");
            let compared = repaired_without(&mut stage, Some(before)).await;
            assert!(compared >= 3 * 45, "only {compared} copies");
            acknowledged.extend(stage.publish(5).await);
            assert_eq!(acknowledged.len(), 55);
            // The copies made are good ones: another bookie may go now.
            stage.keep_down("bookie-0", Duration::from_secs(3600));
            assert!(stage.machine("bookie-0").crash());
            assert!(stage.machine("broker-0").crash());
            stage.pass(Duration::from_secs(20)).await;
            stage.keep_down("bookie-0", Duration::ZERO);
            stage.wait_until_served().await;
            stage.all_there(&acknowledged).await;
        },
    );
}

#[test]
fn rot_in_entry_logs_is_found_and_written_again() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 3),
        |mut stage| async move {
            stage.keep_everything().await;
            let acknowledged = stage.publish(80).await;
            // Until the write caches are in entry logs.
            stage.pass(Duration::from_secs(15)).await;
            let before = repaired_without(&mut stage, None).await;
            let is_entry_log =
                |path: &std::path::Path| path.extension().is_some_and(|end| end == "entries");
            let rotted = stage.machine("bookie-2").rot(is_entry_log, 20);
            assert!(!rotted.is_empty(), "there was something to rot");
            let after = repaired_without(&mut stage, None).await;
            assert!(after >= before, "{after} copies of {before}");
            stage.all_there(&acknowledged).await;
        },
    );
}

#[test]
fn a_bookie_with_a_rotten_journal_is_replaced() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 4),
        |mut stage| async move {
            stage.keep_everything().await;
            let acknowledged = stage.publish(60).await;
            let before = id_of(&stage, "bookie-1");
            let machine = stage.machine("bookie-1");
            stage.keep_down("bookie-1", Duration::from_secs(10));
            assert!(machine.crash());
            let is_journal =
                |path: &std::path::Path| path.extension().is_some_and(|end| end == "journal");
            assert!(!machine.rot(is_journal, 400).is_empty());
            // Whether it refuses to start or the rot was in what no longer counts, the operator wipes it.
            stage.pass(Duration::from_secs(20)).await;
            stage.keep_down("bookie-1", Duration::from_secs(5));
            machine.crash();
            assert!(machine.wipe_disk());
            stage.wait_until_served().await;
            repaired_without(&mut stage, Some(before)).await;
            stage.all_there(&acknowledged).await;
        },
    );
}

#[test]
fn a_bookie_is_drained_while_clients_write() {
    scenario_with(
        Topology::Swarm,
        |plan| on_bookies(plan, 4),
        |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = stage.publish(40).await;
            let leaving = id_of(&stage, "bookie-2");
            let drains = Drains::new(metadata(&stage));
            let asked = drains.clone();
            stage.client(async move { asked.begin(leaving).await }).await.unwrap();
            let until = stage.world.now() + Duration::from_secs(180);
            loop {
                // A topic whose ledger is fenced under it is loaded again by the next producer.
                acknowledged.extend(stage.publish(3).await);
                stage.pass(Duration::from_secs(1)).await;
                let asked = drains.clone();
                let found = stage.client(async move { asked.get(leaving).await }).await;
                if found.unwrap().unwrap().state == DrainState::Drained {
                    break;
                }
                assert!(stage.world.now() < until, "not drained");
            }
            repaired_without(&mut stage, Some(leaving)).await;
            // It may leave for ever.
            stage.keep_down("bookie-2", Duration::from_secs(36_000));
            assert!(stage.machine("bookie-2").crash());
            let last = stage.publish(5).await;
            assert_eq!(last.len(), 5);
            acknowledged.extend(last);
            stage.all_there(&acknowledged).await;
        },
    );
}

/// A bookie is away for less than its grace when somebody sets the clocks right.
#[test]
fn a_step_of_the_wall_clock_makes_no_bookie_lost() {
    scenario_with(
        Topology::Swarm,
        |plan| {
            on_bookies(plan, 4);
            plan.lost_bookie_grace = Duration::from_secs(300);
        },
        |mut stage| async move {
            stage.keep_everything().await;
            let acknowledged = stage.publish(20).await;
            stage.keep_down("bookie-1", Duration::from_secs(60));
            assert!(stage.machine("bookie-1").crash());
            // Until its session is over and an auditor has missed it.
            stage.pass(Duration::from_secs(30)).await;
            for node in &stage.cluster.nodes {
                assert!(node.machine.step_wall_clock(3_600_000));
            }
            for _ in 0..20 {
                stage.pass(Duration::from_secs(1)).await;
                let metadata = metadata(&stage);
                let listing = async move { metadata.list(RepairMarker::PREFIX, None, 10).await };
                assert_eq!(stage.client(listing).await.unwrap(), [], "it counts as lost");
            }
            stage.wait_until_served().await;
            stage.all_there(&acknowledged).await;
        },
    );
}
