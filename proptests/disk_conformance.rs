//! Files and directories: what both runtimes promise, and what a simulated power loss may do.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use seawall::runtime::sim::{DecisionKind, World};
use seawall::runtime::{CreateMode, Disk, DiskErrorKind, File, OpenMode};

use crate::both_conformance::{Place, on_real, on_sim, quick};

async fn open(disk: &Disk, path: &Path, create: CreateMode) -> File {
    disk.open(path, create, OpenMode::Shared).await.unwrap()
}

async fn files_hold_what_was_written(place: Place) {
    let disk = place.runtime.disk;
    let path = place.folder.join("file");
    for mode in [OpenMode::Shared, OpenMode::Dedicated] {
        let file = disk.open(&path, CreateMode::CreateIfMissing, mode).await.unwrap();
        file.set_length(0).await.unwrap();
        let parts = vec![Bytes::from_static(b"hello "), Bytes::new(), Bytes::from_static(b"world")];
        file.write_at(0, parts).await.unwrap();
        file.write_and_sync(5000, vec![Bytes::from_static(b"!")]).await.unwrap();
        assert_eq!(file.length().await.unwrap(), 5001);
        assert_eq!(&file.read_at(0, 11).await.unwrap()[..], b"hello world");
        assert_eq!(&file.read_at(4998, 100).await.unwrap()[..], b"\0\0!");
        assert!(file.read_at(9000, 10).await.unwrap().is_empty());
        file.set_length(5).await.unwrap();
        file.set_length(8).await.unwrap();
        let again = open(&disk, &path, CreateMode::Existing).await;
        assert_eq!(&again.read_at(0, 100).await.unwrap()[..], b"hello\0\0\0");
        file.sync().await.unwrap();
    }
}

async fn names_behave(place: Place) {
    let (disk, folder) = (place.runtime.disk, place.folder);
    let one = folder.join("one");
    let missing = disk.open(&one, CreateMode::Existing, OpenMode::Shared).await.err().unwrap();
    assert_eq!(missing.kind, DiskErrorKind::NotFound);
    assert!(!disk.exists(&one).await.unwrap());
    open(&disk, &one, CreateMode::CreateNew).await;
    let twice = disk.open(&one, CreateMode::CreateNew, OpenMode::Shared).await.err().unwrap();
    assert_eq!(twice.kind, DiskErrorKind::AlreadyExists);
    disk.replace_file(&one, Bytes::from_static(b"content")).await.unwrap();
    assert_eq!(disk.read_file(&one).await.unwrap().unwrap(), "content");
    let deep = folder.join("deep").join("deeper");
    disk.create_directory(&deep).await.unwrap();
    disk.create_directory(&deep).await.unwrap();
    let moved = deep.join("two");
    open(&disk, &moved, CreateMode::CreateNew).await;
    disk.rename(&one, &moved).await.unwrap();
    assert_eq!(disk.read_file(&moved).await.unwrap().unwrap(), "content");
    assert!(disk.rename(&one, &moved).await.is_err());
    let listed = disk.list(&folder).await.unwrap();
    let names: Vec<_> =
        listed.iter().map(|entry| (entry.name.as_str(), entry.is_directory)).collect();
    assert_eq!(names, [("deep", true)]);
    assert_eq!(disk.list(&deep).await.unwrap()[0].length, 7);
    disk.sync_directory(&deep).await.unwrap();
    disk.remove(&moved).await.unwrap();
    assert_eq!(disk.remove(&moved).await.unwrap_err().kind, DiskErrorKind::NotFound);
    disk.remove_directory(&folder.join("deep")).await.unwrap();
    disk.remove_directory(&folder.join("deep")).await.unwrap();
    assert_eq!(disk.list(&deep).await.unwrap_err().kind, DiskErrorKind::NotFound);
    assert!(disk.free_space(&folder).await.unwrap() > 0);
}

async fn a_removed_open_file_stays_readable(place: Place) {
    let (disk, path) = (place.runtime.disk, place.folder.join("gone"));
    let file = open(&disk, &path, CreateMode::CreateNew).await;
    file.write_at(0, vec![Bytes::from_static(b"still here")]).await.unwrap();
    disk.remove(&path).await.unwrap();
    disk.sync_directory(&place.folder).await.unwrap();
    assert_eq!(&file.read_at(0, 10).await.unwrap()[..], b"still here");
}

async fn a_folder_has_one_holder(place: Place) {
    let disk = place.runtime.disk;
    let held = disk.lock(&place.folder).await.unwrap();
    let second = disk.lock(&place.folder).await.err().unwrap();
    assert_eq!(second.kind, DiskErrorKind::Locked);
    drop(held);
    disk.lock(&place.folder).await.unwrap();
}

#[test]
fn files_hold_what_was_written_on_both() {
    on_real(files_hold_what_was_written);
    on_sim(files_hold_what_was_written);
}

#[test]
fn names_behave_on_both() {
    on_real(names_behave);
    on_sim(names_behave);
}

#[test]
fn a_removed_open_file_stays_readable_on_both() {
    on_real(a_removed_open_file_stays_readable);
    on_sim(a_removed_open_file_stays_readable);
}

async fn dedicated_files_keep_the_order_of_calls(place: Place) {
    let (disk, path) = (place.runtime.disk, place.folder.join("journal"));
    let file = disk.open(&path, CreateMode::CreateNew, OpenMode::Dedicated).await.unwrap();
    for round in 0..20_u8 {
        let writes = (0..10_u8).map(|turn| file.write_at(0, vec![Bytes::from(vec![round, turn])]));
        futures_util::future::join_all(writes).await;
        assert_eq!(&file.read_at(0, 2).await.unwrap()[..], [round, 9]);
    }
}

#[test]
fn dedicated_files_keep_the_order_of_calls_on_both() {
    on_real(dedicated_files_keep_the_order_of_calls);
    on_sim(dedicated_files_keep_the_order_of_calls);
}

#[test]
fn swapped_and_wiped_disks_belong_to_the_node_that_has_them() {
    World::run(2, quick(), |world| async move {
        let (one, other) = (world.create_node("1", "one"), world.create_node("2", "other"));
        for node in [&one, &other] {
            let name = Bytes::from(node.host().to_owned());
            node.runtime().disk.replace_file(Path::new("/name"), name).await.unwrap();
        }
        assert!(!one.swap_disks(&other) && !one.wipe_disk());
        one.power_loss();
        other.crash();
        assert!(one.swap_disks(&other));
        let read = |node: &seawall::runtime::sim::SimNode| node.runtime().disk;
        let name = read(&one).read_file(Path::new("/name")).await.unwrap().unwrap();
        assert_eq!(name, "other");
        assert!(other.wipe_disk());
        assert!(!read(&other).exists(Path::new("/name")).await.unwrap());
    });
}

#[test]
fn a_folder_has_one_holder_on_both() {
    on_real(a_folder_has_one_holder);
    on_sim(a_folder_has_one_holder);
}

/// Writes a synced and an unsynced half and returns what a power loss left of a file and of the names.
fn after_power_loss(seed: u64) -> (Bytes, bool, bool, u64) {
    World::run(seed, quick(), |world| async move {
        let node = world.create_node("node", "node");
        let disk = node.runtime().disk;
        let (file, folder) = (Path::new("/data/file"), Path::new("/data"));
        disk.create_directory(folder).await.unwrap();
        disk.sync_directory(Path::new("/")).await.unwrap();
        let opened = open(&disk, file, CreateMode::CreateNew).await;
        opened.write_and_sync(0, vec![Bytes::from(vec![1; 1000])]).await.unwrap();
        disk.sync_directory(folder).await.unwrap();
        for part in 0..8 {
            opened.write_at(1000 + part * 700, vec![Bytes::from(vec![2; 700])]).await.unwrap();
        }
        open(&disk, &folder.join("new"), CreateMode::CreateNew).await;
        disk.rename(&folder.join("new"), &folder.join("renamed")).await.unwrap();
        assert!(disk.lock(folder).await.is_ok());
        assert!(node.power_loss());
        let disk = node.runtime().disk;
        let content = disk.read_file(file).await.unwrap().unwrap();
        let new = disk.exists(&folder.join("new")).await.unwrap();
        let renamed = disk.exists(&folder.join("renamed")).await.unwrap();
        (content, new, renamed, world.event_hash())
    })
}

#[test]
fn a_power_loss_keeps_what_was_synced_and_may_take_the_rest() {
    let (mut whole, mut lost, mut torn, mut named, mut unnamed, mut undone) = (0, 0, 0, 0, 0, 0);
    for seed in 0..60 {
        let (content, new, renamed, _) = after_power_loss(seed);
        assert!(content.len() >= 1000 && content[..1000].iter().all(|byte| *byte == 1));
        let tail = &content[1000..];
        assert!(tail.iter().all(|byte| *byte == 0 || *byte == 2));
        match tail.iter().filter(|byte| **byte == 2).count() {
            5600 => whole += 1,
            0 => lost += 1,
            _ => torn += 1,
        }
        named += u32::from(renamed);
        undone += u32::from(new);
        unnamed += u32::from(!renamed && !new);
        assert_eq!(after_power_loss(seed), after_power_loss(seed));
    }
    assert!(whole > 3 && lost > 3 && torn > 10, "{whole} {lost} {torn}");
    assert!(named > 3 && unnamed > 3 && undone > 0, "{named} {unnamed} {undone}");
}

#[test]
fn a_crash_keeps_the_page_cache_and_frees_the_lock() {
    World::run(9, quick(), |world| async move {
        let node = world.create_node("node", "node");
        let disk = node.runtime().disk;
        disk.create_directory(Path::new("/data")).await.unwrap();
        let held = disk.lock(Path::new("/data")).await.unwrap();
        let file = open(&disk, Path::new("/data/file"), CreateMode::CreateNew).await;
        file.write_at(0, vec![Bytes::from_static(b"cached")]).await.unwrap();
        node.crash();
        let error = file.write_at(0, vec![Bytes::from_static(b"zombie")]).await.unwrap_err();
        assert_eq!(error.kind, DiskErrorKind::Failed);
        let disk = node.runtime().disk;
        assert_eq!(disk.read_file(Path::new("/data/file")).await.unwrap().unwrap(), "cached");
        let _again = disk.lock(Path::new("/data")).await.unwrap();
        drop(held);
        assert!(disk.lock(Path::new("/data")).await.is_err());
    });
}

#[test]
fn a_failed_sync_is_not_made_up_for_by_a_later_one() {
    let mut lost = 0;
    for seed in 0..40 {
        lost += World::run(seed, quick(), |world| async move {
            let node = world.create_node("node", "node");
            let disk = node.runtime().disk;
            let path = Path::new("/file");
            let file = open(&disk, path, CreateMode::CreateNew).await;
            disk.sync_directory(Path::new("/")).await.unwrap();
            file.write_at(0, vec![Bytes::from_static(b"doomed")]).await.unwrap();
            node.set_disk(|settings| settings.sync_error_rate = 1.0);
            assert!(file.sync().await.is_err());
            node.heal_disk();
            file.sync().await.unwrap();
            file.write_and_sync(6, vec![Bytes::from_static(b"safe")]).await.unwrap();
            node.power_loss();
            let content = node.runtime().disk.read_file(path).await.unwrap().unwrap();
            assert_eq!(&content[6..], b"safe");
            u32::from(&content[..6] != b"doomed")
        });
    }
    assert!(lost > 5, "{lost}");
}

#[test]
fn faults_of_the_medium_show_and_heal() {
    World::run(11, quick(), |world| async move {
        let node = world.create_node("node", "node");
        let disk = node.runtime().disk;
        let path = Path::new("/file");
        let file = open(&disk, path, CreateMode::CreateNew).await;
        file.write_and_sync(0, vec![Bytes::from(vec![7; 10_000])]).await.unwrap();
        node.set_disk(|settings| settings.read_error_rate = 1.0);
        assert_eq!(file.read_at(0, 1).await.unwrap_err().kind, DiskErrorKind::Failed);
        node.heal_disk();
        node.set_disk(|settings| settings.write_error_rate = 1.0);
        assert!(file.write_at(0, vec![Bytes::from_static(b"x")]).await.is_err());
        node.heal_disk();
        node.set_disk(|settings| settings.capacity = 10_001);
        file.write_at(9_999, vec![Bytes::from_static(b"xx")]).await.unwrap();
        let full = file.write_at(10_001, vec![Bytes::from_static(b"x")]).await.unwrap_err();
        assert_eq!(full.kind, DiskErrorKind::Full);
        node.heal_disk();
        let rotted = node.rot(|path| path.ends_with("file"), 1);
        let at = rotted[0].offset;
        let byte = file.read_at(at, 1).await.unwrap()[0];
        assert_eq!(byte, 7 ^ (1 << rotted[0].bit));
        node.stall_disk();
        let clock = node.runtime().clock;
        assert!(clock.timeout(Duration::from_secs(60), file.read_at(0, 1)).await.is_err());
        let read = node.spawn("read", async move { file.read_at(0, 1).await.is_ok() });
        world.sleep(Duration::from_secs(1)).await;
        node.release_disk();
        assert!(read.await.unwrap());
        assert!(world.tape_lines().contains("\"kind\":\"bit-rot\""));
    });
}

#[test]
fn masked_decisions_do_not_happen_and_leave_the_others() {
    let run = |mask| {
        let settings = seawall::runtime::sim::WorldSettings { mask, ..quick() };
        World::run_report(13, settings, |world| async move {
            let node = world.create_node("node", "node");
            let disk = node.runtime().disk;
            let file = open(&disk, Path::new("/file"), CreateMode::CreateNew).await;
            node.set_disk(|settings| settings.write_error_rate = 0.5);
            let mut failed = Vec::new();
            for _ in 0..30 {
                failed.push(file.write_at(0, vec![Bytes::from_static(b"x")]).await.is_err());
            }
            failed
        })
    };
    let whole = run(Default::default());
    let errors: Vec<_> =
        whole.decisions.iter().filter(|found| found.key.kind == DecisionKind::WriteError).collect();
    assert!(errors.len() > 5);
    let masked = errors[2].key;
    let less = run([masked].into());
    let mut expected = whole.output.unwrap();
    expected[masked.nth as usize] = false;
    assert_eq!(less.output.unwrap(), expected);
}
