//! A real ext4 on a loop device that loses its power: random operations on it and on the model; at random moments
//! its device is copied as it is, and what a mount of the copy finds must be a state of the model at that moment.
//! Needs the right to mount; `just fidelity` runs it.
#![allow(
    clippy::disallowed_methods,
    reason = "makes, mounts and copies a device, beside the runtime"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use seawall::runtime::real;
use seawall::runtime::sim::{CrashPoint, Unlikely, World};

use super::cases;
use super::disk::{Operation, Performer, operation};
use crate::bookie_model::block_on;
use crate::both_conformance::quick;

const DEVICE_BYTES: u64 = 12 << 20;
const OPERATIONS: usize = 60;
/// Operations between two copies of the device, and between two syncs of every folder: more unsynced names have
/// more combinations than can be gone through.
const BETWEEN_COPIES: usize = 4;
const BETWEEN_SYNCS: usize = 16;

fn run(program: &str, arguments: &[&Path]) {
    let ended = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{program} {arguments:?}: {said}");
}

/// A mounted device in a file; unmounted when dropped.
struct Mounted {
    folder: PathBuf,
}

impl Mounted {
    fn of(device: &Path, folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        run("mount", &[Path::new("-o"), Path::new("loop,data=ordered"), device, folder]);
        Self { folder: folder.to_owned() }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

/// Syncs of every folder there may be.
fn with_syncs(operations: Vec<Operation>) -> Vec<Operation> {
    let mut all = Vec::new();
    for (number, operation) in operations.into_iter().enumerate() {
        if number % BETWEEN_SYNCS == BETWEEN_SYNCS - 1 {
            for path in ["", "a", "b", "a/x"] {
                all.push(Operation::SyncDirectory { path: path.into() });
            }
        }
        all.push(operation);
    }
    all
}

/// Lets the system write some file back, without a commit.
fn write_back(folder: &Path, turn: usize) {
    let mut files = Vec::new();
    walk(folder, &mut |path| files.push(path.to_owned()));
    if files.is_empty() {
        return;
    }
    if let Ok(file) = std::fs::File::open(&files[turn % files.len()]) {
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }
}

fn walk(folder: &Path, found: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        found(&entry.path());
        if entry.path().is_dir() {
            walk(&entry.path(), found);
        }
    }
}

type Tree = BTreeMap<PathBuf, Option<Bytes>>;

/// Everything below a folder, under the names it has for the model.
fn tree(folder: &Path) -> Tree {
    let mut all = BTreeMap::from([(PathBuf::from("/data"), None)]);
    walk(folder, &mut |path| {
        let name = Path::new("/data").join(path.strip_prefix(folder).unwrap());
        let content = path.is_file().then(|| std::fs::read(path).unwrap().into());
        all.insert(name, content);
    });
    all
}

/// Performs on the mounted device; gives a copy of it after every few operations, and what was in it for whoever
/// used it.
fn on_device(place: &Path, operations: &[Operation]) -> Vec<(usize, PathBuf, Tree)> {
    let device = place.join("device");
    std::fs::File::create(&device).unwrap().set_len(DEVICE_BYTES).unwrap();
    run("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &device]);
    let mounted = Mounted::of(&device, &place.join("mounted"));
    let data = mounted.folder.join("data");
    std::fs::create_dir(&data).unwrap();
    run("sync", &[Path::new("-f"), &data]);
    let mut copies = Vec::new();
    block_on(async {
        let mut performer = Performer::new(real::runtime().disk, data.clone());
        for (number, operation) in operations.iter().enumerate() {
            performer.perform(operation).await;
            if number % BETWEEN_COPIES == 0 {
                write_back(&data, number);
            }
            if number % BETWEEN_COPIES == BETWEEN_COPIES - 1 {
                let copy = place.join(format!("copy-{number}"));
                std::fs::copy(&device, &copy).unwrap();
                copies.push((number, copy, tree(&data)));
            }
        }
    });
    copies
}

/// Performs on the model; gives the moments after the same operations.
fn on_model(operations: &[Operation]) -> BTreeMap<usize, CrashPoint> {
    let operations = operations.to_vec();
    World::run(1, quick(), |world| async move {
        let node = world.create_node("subject", "subject");
        let disk = node.runtime().disk;
        disk.create_directory(Path::new("/data")).await.unwrap();
        disk.sync_directory(Path::new("/")).await.unwrap();
        let taken = Arc::new(Mutex::new(None));
        let into = Arc::clone(&taken);
        node.watch_crash_points(move |point| *into.lock().unwrap() = Some(point));
        let mut performer = Performer::new(disk, "/data".into());
        let mut points = BTreeMap::new();
        for (number, operation) in operations.iter().enumerate() {
            performer.perform(operation).await;
            node.ask_crash_point(Path::new("/data"));
            points.extend(taken.lock().unwrap().take().map(|point| (number, point)));
        }
        points
    })
}

#[test]
#[ignore = "needs the right to mount a file system"]
fn whatever_a_mounted_ext4_leaves_is_a_state_of_the_model() {
    let place = std::env::temp_dir().join(format!("seawall-fidelity-{}", std::process::id()));
    let mut runner = TestRunner::new(Config::default());
    let (mut performed, mut judged, mut too_many, mut unsynced, mut lost) = (0, 0, 0, 0, 0);
    for case in 0..cases(240) / 20 {
        std::fs::create_dir_all(&place).unwrap();
        let strategy = proptest::collection::vec(operation(), OPERATIONS);
        let operations = with_syncs(strategy.new_tree(&mut runner).unwrap().current());
        let points = on_model(&operations);
        performed += operations.len();
        for (number, copy, before) in on_device(&place, &operations) {
            let mounted = Mounted::of(&copy, &place.join("copy"));
            let left = tree(&mounted.folder.join("data"));
            drop(mounted);
            std::fs::remove_file(copy).unwrap();
            match points[&number].may_leave(&left) {
                Ok(()) => judged += 1,
                Err(Unlikely::TooMany) => too_many += 1,
                Err(Unlikely::Impossible(why)) => {
                    let before: Vec<_> = operations[..=number].iter().collect();
                    panic!("case {case}, after operation {number}: {why}\n{before:#?}");
                }
            }
            unsynced += usize::from(!points[&number].unsynced().is_empty());
            lost += usize::from(left != before);
        }
        std::fs::remove_dir_all(&place).unwrap();
    }
    println!(
        "mounted ext4: {performed} operations, {judged} power losses judged ({unsynced} with something \
         unsynced, {lost} lost something), {too_many} with too many choices"
    );
    assert!(judged > 20 && judged > too_many, "{judged} judged, {too_many} not");
    assert!(lost > 0, "nothing was ever lost");
}
