//! Protects P7, one kind of a bookie's files after the other: bytes flip in it, while the bookie runs and
//! while it is down. The damage is found, never served, never taken for "absent", and the copies come back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall::bookie::inspect::{self, JournalRecord};
use seawall::domain::Position;
use seawall::simulator::history::MessageNumber;
use seawall::simulator::plan::{Plan, Topology};

use crate::support::bookies::{id_of, on_bookies, repaired_without};
use crate::support::{Stage, scenario_with};

const DAMAGED: &str = "bookie-1";

fn three(plan: &mut Plan) {
    on_bookies(plan, 3);
    plan.checkpoint_interval = Duration::from_secs(2);
}

/// Entries stay in the journal.
fn three_without_checkpoints(plan: &mut Plan) {
    on_bookies(plan, 3);
    plan.checkpoint_interval = Duration::from_secs(3600);
    plan.write_cache_bytes = 1 << 24;
}

fn ends_in(ending: &'static str) -> impl Fn(&Path) -> bool {
    move |path| path.extension().is_some_and(|end| end == ending)
}

async fn published(stage: &mut Stage, count: u64) -> Vec<(MessageNumber, Position)> {
    stage.keep_everything().await;
    let acknowledged = stage.publish(count).await;
    assert_eq!(acknowledged.len() as u64, count);
    acknowledged
}

fn gave_up_because(stage: &Stage) -> Option<&str> {
    let node = stage.cluster.nodes.iter().find(|node| node.machine.name() == DAMAGED);
    node.expect("it is there").gave_up_because.as_deref()
}

/// The process dies and the damage is done before it is started again.
async fn damaged_while_down(stage: &mut Stage, damage: impl FnOnce(&Stage)) {
    stage.keep_down(DAMAGED, Duration::from_secs(2));
    assert!(stage.machine(DAMAGED).crash());
    damage(stage);
    stage.pass(Duration::from_secs(5)).await;
}

/// The start was refused for damage of this kind. The operator gives the bookie an empty disk, and its
/// successor is filled.
async fn refused_and_replaced(
    stage: &mut Stage,
    why: &str,
    before: seawall::domain::BookieId,
    acknowledged: &[(MessageNumber, Position)],
) {
    let reason = gave_up_because(stage).expect("it does not start").to_owned();
    assert!(reason.contains(why), "{reason}");
    // The others serve meanwhile.
    stage.all_there(acknowledged).await;
    stage.keep_down(DAMAGED, Duration::from_secs(2));
    let machine = stage.machine(DAMAGED);
    machine.crash();
    assert!(machine.wipe_disk());
    stage.wait_until_served().await;
    assert_ne!(id_of(stage, DAMAGED), before);
    let compared = repaired_without(stage, Some(before)).await;
    assert!(compared >= 3 * acknowledged.len() as u64, "only {compared} copies");
    stage.all_there(acknowledged).await;
}

/// All copies are back where they were, the damaged bookie's own among them.
async fn filled_again(stage: &mut Stage, acknowledged: &[(MessageNumber, Position)]) {
    stage.wait_until_served().await;
    repaired_without(stage, None).await;
    // A new broker has no tail cache: every entry is read from bookies.
    assert!(stage.machine("broker-0").crash());
    stage.wait_until_served().await;
    stage.all_there(acknowledged).await;
}

/// The last journal group with records: its file, where it begins and ends, and whether another follows.
async fn last_group_with_records(stage: &mut Stage) -> (PathBuf, u64, u64, bool) {
    let disk = stage.machine(DAMAGED).runtime().disk;
    let folder = PathBuf::from("/data/journal");
    let mut groups = Vec::new();
    for file in inspect::journal_files(&disk, &folder).await.unwrap() {
        for record in inspect::journal_records(&disk, &folder, file.id).await.unwrap() {
            if let JournalRecord::Group { offset, sequence, length, records, .. } = record {
                groups.push((sequence, folder.join(&file.name), offset, length, records));
            }
        }
    }
    groups.sort();
    let at = groups.iter().rposition(|group| group.4 > 0).expect("something was added");
    let (_, path, offset, length, _) = groups[at].clone();
    let bytes = disk.read_file(&path).await.unwrap().unwrap();
    let group = &bytes[offset as usize..(offset + length) as usize];
    let last_byte = group.iter().rposition(|byte| *byte != 0).expect("not empty") as u64;
    (path, offset, offset + last_byte, at + 1 < groups.len())
}

#[test]
fn in_entry_logs_while_the_bookie_runs() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let acknowledged = published(&mut stage, 80).await;
        stage.pass(Duration::from_secs(15)).await;
        assert!(!stage.machine(DAMAGED).rot(ends_in("entries"), 20).is_empty());
        filled_again(&mut stage, &acknowledged).await;
    });
}

#[test]
fn in_entry_logs_and_the_index_is_made_from_them() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let acknowledged = published(&mut stage, 80).await;
        stage.pass(Duration::from_secs(15)).await;
        damaged_while_down(&mut stage, |stage| {
            let machine = stage.machine(DAMAGED);
            assert!(!machine.rot(ends_in("entries"), 20).is_empty());
            assert!(machine.break_indexes(|_| true));
        })
        .await;
        assert_eq!(gave_up_because(&stage), None);
        filled_again(&mut stage, &acknowledged).await;
    });
}

#[test]
fn in_the_index_while_the_bookie_runs() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let acknowledged = published(&mut stage, 80).await;
        stage.pass(Duration::from_secs(15)).await;
        let before = id_of(&stage, DAMAGED);
        assert!(stage.machine(DAMAGED).rot_indexes(|_| true, 100) > 0);
        filled_again(&mut stage, &acknowledged).await;
        // It gave up, made its index again, and is the bookie it was.
        let reason = gave_up_because(&stage).expect("the damage was met");
        assert!(reason.contains("the index must be made again"), "{reason}");
        assert_eq!(id_of(&stage, DAMAGED), before);
    });
}

#[test]
fn in_the_index_while_the_bookie_is_down() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let acknowledged = published(&mut stage, 80).await;
        stage.pass(Duration::from_secs(15)).await;
        damaged_while_down(&mut stage, |stage| {
            assert!(stage.machine(DAMAGED).rot_indexes(|_| true, 3) > 0);
        })
        .await;
        assert_eq!(gave_up_because(&stage), None);
        filled_again(&mut stage, &acknowledged).await;
    });
}

#[test]
fn in_the_journal_while_the_bookie_runs() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let mut acknowledged = published(&mut stage, 40).await;
        assert!(!stage.machine(DAMAGED).rot(ends_in("journal"), 400).is_empty());
        acknowledged.extend(stage.publish(20).await);
        assert_eq!(acknowledged.len(), 60);
        // What was damaged is in memory, too, and comes to entry logs.
        stage.pass(Duration::from_secs(10)).await;
        assert!(stage.machine(DAMAGED).crash());
        filled_again(&mut stage, &acknowledged).await;
        assert_eq!(gave_up_because(&stage), None);
    });
}

/// A flipped byte in the very last thing acknowledged must not pass for the torn end of a write.
#[test]
fn in_the_last_journal_group_while_the_bookie_is_down() {
    for in_header in [false, true] {
        let play = move |mut stage: Stage| async move {
            let acknowledged = published(&mut stage, 20).await;
            stage.pass(Duration::from_secs(1)).await;
            let before = id_of(&stage, DAMAGED);
            let (path, begins, ends, is_witnessed) = last_group_with_records(&mut stage).await;
            assert!(is_witnessed);
            let at = if in_header { begins } else { ends };
            damaged_while_down(&mut stage, |stage| {
                assert!(stage.machine(DAMAGED).flip(&path, at, 3));
            })
            .await;
            refused_and_replaced(&mut stage, "corrupt data: journal", before, &acknowledged).await;
        };
        scenario_with(Topology::Swarm, three_without_checkpoints, play);
    }
}

#[test]
fn in_the_checkpoint_file_while_the_bookie_runs() {
    scenario_with(Topology::Swarm, three, |mut stage| async move {
        let mut acknowledged = published(&mut stage, 20).await;
        let is_checkpoint = |path: &Path| path.ends_with("checkpoint");
        assert!(!stage.machine(DAMAGED).rot(is_checkpoint, 5).is_empty());
        // The next checkpoint replaces it unread.
        acknowledged.extend(stage.publish(20).await);
        stage.pass(Duration::from_secs(10)).await;
        assert!(stage.machine(DAMAGED).crash());
        filled_again(&mut stage, &acknowledged).await;
        assert_eq!(gave_up_because(&stage), None);
    });
}

/// Damage that is met at a start only, whenever it happened.
fn refuses_the_start(kind: fn(&Path) -> bool, why: &'static str, is_running: bool) {
    scenario_with(Topology::Swarm, three, move |mut stage| async move {
        let acknowledged = published(&mut stage, 40).await;
        stage.pass(Duration::from_secs(10)).await;
        let before = id_of(&stage, DAMAGED);
        let damage = move |stage: &Stage| {
            let machine = stage.machine(DAMAGED);
            let files = machine.files().into_iter().filter(|(path, _)| kind(path));
            for (path, length) in files {
                assert!(machine.flip(&path, length / 2, 0));
            }
        };
        if is_running {
            damage(&stage);
            stage.pass(Duration::from_secs(1)).await;
            damaged_while_down(&mut stage, |_| {}).await;
        } else {
            damaged_while_down(&mut stage, damage).await;
        }
        refused_and_replaced(&mut stage, why, before, &acknowledged).await;
    });
}

#[test]
fn in_the_checkpoint_file_while_the_bookie_is_down() {
    refuses_the_start(|path| path.ends_with("checkpoint"), "corrupt data: the checkpoint", false);
}

#[test]
fn in_the_facts_log() {
    let is_facts = |path: &Path| path.extension().is_some_and(|end| end == "facts");
    refuses_the_start(is_facts, "corrupt data: facts log", true);
    refuses_the_start(is_facts, "corrupt data: facts log", false);
}

#[test]
fn in_a_cookie() {
    let is_cookie = |path: &Path| path.ends_with("ledgers/cookie");
    refuses_the_start(is_cookie, "cookie mismatch", true);
    refuses_the_start(is_cookie, "cookie mismatch", false);
}
