//! What a power loss leaves: everything that a journaling file system leaves is among the states of the simulated
//! disk, and so are the worst ones.
//!
//! The file system here is written down from how ext4 with `data=ordered` works: names change in one log, of which
//! a prefix is there, at least up to the last sync of anything; of a file's pages each may have been written back
//! at a moment of its own since the file's last sync; its length is of one of those moments; a cut is in the log
//! with the names, and no page of before it is there afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::prelude::*;
use seawall::runtime::sim::{
    CrashBound, CrashPoint, Fate, SimNode, Tear, Unlikely, UnsyncedChange, World,
};
use seawall::runtime::{CreateMode, Disk, OpenMode, mix};

use super::{cases, compare};
use crate::both_conformance::quick;

const PAGE: usize = 4096;
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

#[derive(Clone, Debug)]
enum Operation {
    Create {
        name: usize,
    },
    Write {
        name: usize,
        offset: usize,
        bytes: usize,
    },
    Cut {
        name: usize,
        length: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Remove {
        name: usize,
    },
    SyncFile {
        name: usize,
    },
    SyncFolder,
    /// The power may go here; the draw says what is left.
    Crash {
        draw: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => name().prop_map(|name| Operation::Create { name }),
        6 => (name(), 0..9000_usize, 1..5000_usize)
            .prop_map(|(name, offset, bytes)| Operation::Write { name, offset, bytes }),
        2 => (name(), 0..9000_usize).prop_map(|(name, length)| Operation::Cut { name, length }),
        3 => (name(), name()).prop_map(|(from, to)| Operation::Rename { from, to }),
        1 => name().prop_map(|name| Operation::Remove { name }),
        2 => name().prop_map(|name| Operation::SyncFile { name }),
        2 => Just(Operation::SyncFolder),
        5 => any::<u64>().prop_map(|draw| Operation::Crash { draw }),
    ]
}

/// What a file was after each change of it.
#[derive(Clone, Default)]
struct Version {
    content: Vec<u8>,
    is_cut: bool,
}

/// A file and the moments of it that may still count.
struct Written {
    versions: Vec<Version>,
    synced: usize,
}

type Tree = BTreeMap<PathBuf, usize>;
type Left = BTreeMap<PathBuf, Option<Bytes>>;

/// The file system of the comment above.
struct Ordered {
    files: Vec<Written>,
    /// The names after each change of them.
    trees: Vec<Tree>,
    committed: usize,
}

impl Ordered {
    fn new() -> Self {
        Self { files: Vec::new(), trees: vec![Tree::new()], committed: 0 }
    }

    fn tree(&self) -> &Tree {
        &self.trees[self.trees.len() - 1]
    }

    fn change_names(&mut self, change: impl FnOnce(&mut Tree)) {
        let mut tree = self.tree().clone();
        change(&mut tree);
        self.trees.push(tree);
    }

    fn commit(&mut self) {
        self.committed = self.trees.len() - 1;
    }

    fn change_file(&mut self, path: &Path, is_cut: bool, change: impl FnOnce(&mut Vec<u8>)) {
        let file = &mut self.files[self.trees[self.trees.len() - 1][path]];
        let mut content = file.versions[file.versions.len() - 1].content.clone();
        change(&mut content);
        file.versions.push(Version { content, is_cut });
    }

    /// What may be left, by a draw.
    fn left(&self, draw: u64) -> Left {
        let mut draws = (0..).map(|number| mix(draw ^ mix(number)));
        let mut below = |bound: usize| draws.next().unwrap_or(0) as usize % bound.max(1);
        let tree = self.committed + below(self.trees.len() - self.committed);
        let mut left: Left = BTreeMap::from([(PathBuf::from("/data"), None)]);
        for (path, file) in &self.trees[tree] {
            let file = &self.files[*file];
            let (synced, all) = (file.synced, file.versions.len());
            let length_of = synced + below(all - synced);
            let cuts = |at: &usize| file.versions[*at].is_cut;
            let first = (synced + 1..=length_of).rev().find(cuts).unwrap_or(synced);
            let end = (length_of + 1..all).find(cuts).unwrap_or(all);
            let mut content = vec![0; file.versions[length_of].content.len()];
            for page in content.chunks_mut(PAGE).enumerate() {
                let (number, page) = page;
                let of = &file.versions[first + below(end - first)].content;
                let from = of.get(number * PAGE..).unwrap_or_default();
                let there = from.len().min(page.len());
                page[..there].copy_from_slice(&from[..there]);
            }
            left.insert(path.clone(), Some(content.into()));
        }
        left
    }
}

/// The states of a moment asked for.
async fn moment(node: &SimNode) -> CrashPoint {
    let taken = Arc::new(Mutex::new(None));
    let into = Arc::clone(&taken);
    node.watch_crash_points(move |point| *into.lock().unwrap() = Some(point));
    node.ask_crash_point(Path::new("/data"));
    node.watch_no_crash_points();
    let point = taken.lock().unwrap().take();
    point.unwrap()
}

async fn performed(node: SimNode, operations: Vec<Operation>) -> (u64, u64) {
    let disk: Disk = node.runtime().disk;
    let folder = Path::new("/data");
    disk.create_directory(folder).await.unwrap();
    disk.sync_directory(Path::new("/")).await.unwrap();
    let path = |name: &usize| folder.join(NAMES[*name]);
    let mut ordered = Ordered::new();
    let (mut compared, mut not_judged, mut written) = (0, 0, 0_u64);
    for (number, operation) in operations.iter().enumerate() {
        let is_there = |name: &usize| ordered.tree().contains_key(&path(name));
        match operation {
            Operation::Create { name } if !is_there(name) => {
                disk.open(&path(name), CreateMode::CreateNew, OpenMode::Shared).await.unwrap();
                let file = ordered.files.len();
                ordered.files.push(Written { versions: vec![Version::default()], synced: 0 });
                ordered.change_names(|tree| _ = tree.insert(path(name), file));
            }
            Operation::Write { name, offset, bytes } if is_there(name) => {
                written += 1;
                let bytes: Vec<u8> =
                    (0..*bytes as u64).map(|at| (written * 41 + at * 3) as u8 | 1).collect();
                let file = disk.open(&path(name), CreateMode::Existing, OpenMode::Shared).await;
                file.unwrap().write_at(*offset as u64, vec![bytes.clone().into()]).await.unwrap();
                ordered.change_file(&path(name), false, |content| {
                    content.resize(content.len().max(offset + bytes.len()), 0);
                    content[*offset..offset + bytes.len()].copy_from_slice(&bytes);
                });
            }
            Operation::Cut { name, length } if is_there(name) => {
                let file = disk.open(&path(name), CreateMode::Existing, OpenMode::Shared).await;
                file.unwrap().set_length(*length as u64).await.unwrap();
                ordered.change_file(&path(name), true, |content| content.resize(*length, 0));
            }
            Operation::Rename { from, to } if is_there(from) && from != to => {
                disk.rename(&path(from), &path(to)).await.unwrap();
                ordered.change_names(|tree| {
                    let file = tree.remove(&path(from)).unwrap();
                    tree.insert(path(to), file);
                });
            }
            Operation::Remove { name } if is_there(name) => {
                disk.remove(&path(name)).await.unwrap();
                ordered.change_names(|tree| _ = tree.remove(&path(name)));
            }
            Operation::SyncFile { name } if is_there(name) => {
                let file = disk.open(&path(name), CreateMode::Existing, OpenMode::Shared).await;
                file.unwrap().sync().await.unwrap();
                let file = ordered.tree()[&path(name)];
                ordered.files[file].synced = ordered.files[file].versions.len() - 1;
                ordered.commit();
            }
            Operation::SyncFolder => {
                disk.sync_directory(folder).await.unwrap();
                ordered.commit();
            }
            Operation::Crash { draw } => {
                let point = moment(&node).await;
                for turn in 0..4 {
                    let left = ordered.left(mix(*draw ^ turn));
                    match point.may_leave(&left) {
                        Ok(()) => {}
                        Err(Unlikely::TooMany) => not_judged += 1,
                        Err(Unlikely::Impossible(why)) => {
                            panic!(
                                "operation {number}: the model does not allow what is left: {why}"
                            )
                        }
                    }
                    compared += 1;
                }
            }
            _ => continue,
        }
        compared += 1;
    }
    (compared, not_judged)
}

#[test]
fn whatever_an_ordered_journal_leaves_is_a_state_of_the_model() {
    let operations = proptest::collection::vec(operation(), 1..80);
    let not_judged = Mutex::new(0);
    compare("crash outcomes", cases(150), &operations, |operations| {
        let (compared, unjudged) = World::run(1, quick(), |world| {
            let node = world.create_node("subject", "subject");
            performed(node, operations)
        });
        *not_judged.lock().unwrap() += unjudged;
        compared
    });
    println!("crash outcomes: {} not judged, too many choices", not_judged.lock().unwrap());
}

/// A replaced file, its name not synced, its second half not either.
async fn replaced(node: &SimNode) -> CrashPoint {
    let disk = node.runtime().disk;
    let (folder, file) = (Path::new("/data"), Path::new("/data/file"));
    disk.create_directory(folder).await.unwrap();
    disk.sync_directory(Path::new("/")).await.unwrap();
    let new =
        disk.open(&folder.join("new"), CreateMode::CreateNew, OpenMode::Shared).await.unwrap();
    new.write_and_sync(0, vec![vec![1; 600].into()]).await.unwrap();
    disk.sync_directory(folder).await.unwrap();
    new.write_at(600, vec![vec![2; 3000].into()]).await.unwrap();
    disk.rename(&folder.join("new"), file).await.unwrap();
    moment(node).await
}

/// The model is no friendlier than a disk: what was not synced is lost, torn, or zeros, a name is the old one.
#[test]
fn the_worst_outcomes_are_states_of_the_model() {
    let (point, states) = World::run(1, quick(), |world| async move {
        let node = world.create_node("subject", "subject");
        let point = replaced(&node).await;
        let bound = CrashBound { deviations: 3, states: 10_000 };
        let mut states = BTreeSet::new();
        for state in point.states(bound) {
            node.power_loss();
            assert!(node.mount(&point.surviving(&state)));
            let disk = node.runtime().disk;
            let mut files = Vec::new();
            for name in ["new", "file"] {
                files.push(disk.read_file(&Path::new("/data").join(name)).await.unwrap());
            }
            states.insert(files);
        }
        (point, states)
    });
    let with = |second: &[u8]| -> Bytes { [&[1; 600][..], second].concat().into() };
    let (lost, whole, zeros) = (with(&[]), with(&[2; 3000]), with(&[0; 3000]));
    // Up to the first end of a sector behind what was there.
    let torn = with(&[2; 424]);
    for content in [lost, whole, zeros, torn] {
        for files in [vec![Some(content.clone()), None], vec![None, Some(content.clone())]] {
            assert!(states.contains(&files), "{} bytes are in no state", content.len());
        }
    }
    let fates: Vec<&Fate> = point.unsynced().iter().flat_map(|one| &one.fates).collect();
    assert!(fates.contains(&&Fate::Torn(Tear::Zeros)));
    let renamed = |what: &UnsyncedChange| matches!(what, UnsyncedChange::Renamed { .. });
    assert!(point.unsynced().iter().any(|one| renamed(&one.what)));
}
