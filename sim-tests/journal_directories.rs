//! Protects P1 on bookies with several journal directories: power loss, a flipped byte in one of them, and a disk
//! that is not there any more.

use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall::bookie::inspect::{self, JournalRecord};
use seawall::domain::BookieId;
use seawall::simulator::plan::{Plan, Topology};

use crate::support::bookies::{id_of, on_bookies, repaired_without};
use crate::support::{Stage, scenario_with};

const NAMES: [&str; 3] = ["bookie-0", "bookie-1", "bookie-2"];
const HIT: &str = "bookie-1";
const SECOND: &str = "/data/journal-2";

fn two_journals(plan: &mut Plan) {
    on_bookies(plan, 3);
    plan.journal_directories = 2;
    plan.ledger_directories = 2;
    plan.checkpoint_interval = Duration::from_secs(2);
}

/// Entries stay in the journals.
fn two_journals_without_checkpoints(plan: &mut Plan) {
    two_journals(plan);
    plan.checkpoint_interval = Duration::from_secs(3600);
    plan.write_cache_bytes = 1 << 24;
}

/// Groups with records of a journal, by number: file and offset.
async fn groups(stage: &Stage, name: &str, folder: &str) -> Vec<(u64, PathBuf, u64)> {
    let (disk, folder) = (stage.machine(name).runtime().disk, PathBuf::from(folder));
    let mut groups = Vec::new();
    for file in inspect::journal_files(&disk, &folder).await.unwrap() {
        for record in inspect::journal_records(&disk, &folder, file.id).await.unwrap() {
            if let JournalRecord::Group { offset, sequence, records: 1.., .. } = record {
                groups.push((sequence, folder.join(&file.name), offset));
            }
        }
    }
    groups.sort();
    groups
}

fn refusal(stage: &Stage) -> String {
    let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == HIT);
    node.unwrap().gave_up_because.clone().expect("it does not start")
}

/// The bookie that does not start any more gets empty disks; its successor is filled.
async fn replaced(stage: &mut Stage, before: BookieId) {
    stage.keep_down(HIT, Duration::from_secs(1));
    let machine = stage.machine(HIT);
    machine.crash();
    assert!(machine.wipe_disk());
    stage.wait_until_served().await;
    repaired_without(stage, Some(before)).await;
}

#[test]
fn power_goes_everywhere() {
    for plan in [two_journals, two_journals_without_checkpoints] {
        scenario_with(Topology::Swarm, plan, |mut stage| async move {
            stage.keep_everything().await;
            let mut acknowledged = stage.publish(80).await;
            assert_eq!(acknowledged.len(), 80);
            for name in NAMES {
                for folder in ["/data/journal", SECOND] {
                    assert!(groups(&stage, name, folder).await.len() > 2, "{name} {folder}");
                }
            }
            for round in 0..4 {
                // Between checkpoints, and in the middle of one.
                stage.pass(Duration::from_millis(700)).await;
                acknowledged.extend(stage.publish(20).await);
                assert_eq!(acknowledged.len(), 100 + 20 * round);
                for name in NAMES {
                    assert!(stage.machine(name).power_loss());
                    assert!(stage.machine(name).break_indexes(|_| round == 2));
                }
                assert!(stage.machine("broker-0").power_loss());
                stage.wait_until_served().await;
                stage.all_there(&acknowledged).await;
            }
            repaired_without(&mut stage, None).await;
        });
    }
}

#[test]
fn a_flipped_byte_in_one_journal_is_found() {
    let plan = two_journals_without_checkpoints;
    scenario_with(Topology::Swarm, plan, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(80).await;
        assert_eq!(acknowledged.len(), 80);
        stage.pass(Duration::from_secs(1)).await;
        let before = id_of(&stage, HIT);
        // The very last group with records of the second journal: its witness tells that it was synced.
        let (_, path, offset) = groups(&stage, HIT, SECOND).await.pop().unwrap();
        stage.keep_down(HIT, Duration::from_secs(2));
        assert!(stage.machine(HIT).crash());
        assert!(stage.machine(HIT).flip(&path, offset + 70, 3));
        stage.pass(Duration::from_secs(5)).await;
        let reason = refusal(&stage);
        assert!(reason.contains("corrupt data: journal group"), "{reason}");
        stage.all_there(&acknowledged).await;
        replaced(&mut stage, before).await;
        stage.all_there(&acknowledged).await;
    });
}

#[test]
fn a_bookie_that_lost_one_of_its_journals_does_not_start() {
    scenario_with(Topology::Swarm, two_journals, |mut stage| async move {
        stage.keep_everything().await;
        let acknowledged = stage.publish(60).await;
        stage.pass(Duration::from_secs(10)).await;
        let before = id_of(&stage, HIT);
        let disk = stage.machine(HIT).runtime().disk;
        disk.remove_directory(Path::new(SECOND)).await.unwrap();
        disk.sync_directory(Path::new("/data")).await.unwrap();
        stage.keep_down(HIT, Duration::from_secs(1));
        assert!(stage.machine(HIT).crash());
        stage.pass(Duration::from_secs(5)).await;
        let reason = refusal(&stage);
        assert!(reason.contains("/data/journal-2 has no cookie"), "{reason}");
        stage.all_there(&acknowledged).await;
        replaced(&mut stage, before).await;
        stage.all_there(&acknowledged).await;
    });
}
