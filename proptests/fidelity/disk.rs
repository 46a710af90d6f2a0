//! Files and folders: every operation has the same result, or the same kind of error, on both.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use proptest::prelude::*;
use seawall::runtime::sim::World;
use seawall::runtime::{CreateMode, Disk, DiskError, File, OpenMode};

use super::{cases, compare};
use crate::both_conformance::{Place, on_real, quick};

/// Open files at a time.
const SLOTS: usize = 3;

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Open { path: PathBuf, create: CreateMode, mode: OpenMode, slot: usize },
    Write { slot: usize, offset: u64, parts: Vec<usize> },
    WriteAndSync { slot: usize, offset: u64, parts: Vec<usize> },
    Append { slot: usize, bytes: usize },
    Read { slot: usize, offset: u64, length: usize },
    SetLength { slot: usize, length: u64 },
    Length { slot: usize },
    Sync { slot: usize },
    Close { slot: usize },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
    RemoveDirectory { path: PathBuf },
    CreateDirectory { path: PathBuf },
    List { path: PathBuf },
    SyncDirectory { path: PathBuf },
    Exists { path: PathBuf },
    ReadFile { path: PathBuf },
    Replace { path: PathBuf, bytes: usize },
}

/// Few names, so that they meet: as files, as folders, below each other.
fn path() -> impl Strategy<Value = PathBuf> {
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(PathBuf::from),
        4 => (0..2_usize, 0..3_usize).prop_map(|(folder, name)| {
            Path::new(["a", "b"][folder]).join(["x", "y", "z"][name])
        }),
        1 => Just(PathBuf::from("a/x/deep")),
        1 => Just(PathBuf::from("a/x")),
        1 => Just(PathBuf::new()),
    ]
}

/// Around the ends of sectors and pages, too.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..40_u64, 500..530_u64, 4090..4100_u64, 0..20_000_u64]
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let slot = || 0..SLOTS;
    let parts = || {
        let part = prop_oneof![Just(0_usize), 1..30_usize, 400..700_usize, 4000..9000_usize];
        proptest::collection::vec(part, 0..3)
    };
    let create = prop_oneof![
        Just(CreateMode::Existing),
        Just(CreateMode::CreateIfMissing),
        Just(CreateMode::CreateNew)
    ];
    let mode = prop_oneof![3 => Just(OpenMode::Shared), 1 => Just(OpenMode::Dedicated)];
    let length = prop_oneof![Just(0_usize), 1..100_usize, 500..9000_usize];
    prop_oneof![
        8 => (path(), create, mode, slot())
            .prop_map(|(path, create, mode, slot)| Operation::Open { path, create, mode, slot }),
        6 => (slot(), offset(), parts())
            .prop_map(|(slot, offset, parts)| Operation::Write { slot, offset, parts }),
        1 => (slot(), offset(), parts())
            .prop_map(|(slot, offset, parts)| Operation::WriteAndSync { slot, offset, parts }),
        4 => (slot(), 0..2000_usize).prop_map(|(slot, bytes)| Operation::Append { slot, bytes }),
        6 => (slot(), offset(), length)
            .prop_map(|(slot, offset, length)| Operation::Read { slot, offset, length }),
        3 => (slot(), offset()).prop_map(|(slot, length)| Operation::SetLength { slot, length }),
        2 => slot().prop_map(|slot| Operation::Length { slot }),
        1 => slot().prop_map(|slot| Operation::Sync { slot }),
        1 => slot().prop_map(|slot| Operation::Close { slot }),
        6 => (path(), path()).prop_map(|(from, to)| Operation::Rename { from, to }),
        4 => path().prop_map(|path| Operation::Remove { path }),
        1 => path().prop_map(|path| Operation::RemoveDirectory { path }),
        4 => path().prop_map(|path| Operation::CreateDirectory { path }),
        3 => path().prop_map(|path| Operation::List { path }),
        1 => path().prop_map(|path| Operation::SyncDirectory { path }),
        2 => path().prop_map(|path| Operation::Exists { path }),
        2 => path().prop_map(|path| Operation::ReadFile { path }),
        1 => (path(), 0..3000_usize).prop_map(|(path, bytes)| Operation::Replace { path, bytes }),
    ]
}

/// Open files, and how many bytes were written so far: each write has bytes of its own.
pub(super) struct Performer {
    disk: Disk,
    folder: PathBuf,
    slots: Vec<Option<File>>,
    written: u64,
}

fn said(bytes: &[u8]) -> String {
    let sum =
        bytes.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    format!("{} bytes, {sum:x}", bytes.len())
}

fn told<T>(result: Result<T, DiskError>, say: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => say(value),
        Err(error) => format!("{:?}", error.kind),
    }
}

impl Performer {
    pub(super) fn new(disk: Disk, folder: PathBuf) -> Self {
        Self { disk, folder, slots: vec![None; SLOTS], written: 0 }
    }

    fn bytes(&mut self, length: usize) -> Bytes {
        self.written += 1;
        let first = self.written * 37;
        (0..length as u64).map(|at| (first + at * 13 + at / 251) as u8 | 1).collect()
    }

    /// What came of it, in words that are equal on both sides.
    pub(super) async fn perform(&mut self, operation: &Operation) -> String {
        let folder = self.folder.clone();
        let at = |path: &Path| -> PathBuf {
            if path.as_os_str().is_empty() { folder.clone() } else { folder.join(path) }
        };
        let done = |(): ()| "done".to_owned();
        let (disk, slots) = (self.disk.clone(), self.slots.clone());
        let file = |slot: &usize| slots[*slot].clone();
        match operation {
            Operation::Open { path, create, mode, slot } => {
                let opened = disk.open(&at(path), *create, *mode).await;
                told(opened, |file| {
                    self.slots[*slot] = Some(file);
                    "open".to_owned()
                })
            }
            Operation::Write { slot, offset, parts }
            | Operation::WriteAndSync { slot, offset, parts } => {
                let parts = parts.iter().map(|length| self.bytes(*length)).collect();
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                told(
                    match operation {
                        Operation::Write { .. } => file.write_at(*offset, parts).await,
                        _ => file.write_and_sync(*offset, parts).await,
                    },
                    done,
                )
            }
            Operation::Append { slot, bytes } => {
                let bytes = self.bytes(*bytes);
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                match file.length().await {
                    Ok(length) => told(file.write_at(length, vec![bytes]).await, done),
                    Err(error) => told(Err(error), done),
                }
            }
            Operation::Read { slot, offset, length } => {
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                told(file.read_at(*offset, *length).await, |bytes| said(&bytes))
            }
            Operation::SetLength { slot, length } => {
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                told(file.set_length(*length).await, done)
            }
            Operation::Length { slot } => {
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                told(file.length().await, |length| length.to_string())
            }
            Operation::Sync { slot } => {
                let Some(file) = file(slot) else { return "nothing".to_owned() };
                told(file.sync().await, done)
            }
            Operation::Close { slot } => {
                self.slots[*slot] = None;
                "closed".to_owned()
            }
            Operation::Rename { from, to } => told(disk.rename(&at(from), &at(to)).await, done),
            Operation::Remove { path } => told(disk.remove(&at(path)).await, done),
            // Removing everything would leave nothing to compare.
            Operation::RemoveDirectory { path } if path.as_os_str().is_empty() => "no".to_owned(),
            Operation::RemoveDirectory { path } => {
                told(disk.remove_directory(&at(path)).await, done)
            }
            Operation::CreateDirectory { path } => {
                told(disk.create_directory(&at(path)).await, done)
            }
            Operation::List { path } => told(disk.list(&at(path)).await, |entries| {
                let entries = entries.iter();
                let entry = entries.map(|one| (&one.name, one.length, one.is_directory));
                format!("{:?}", entry.collect::<Vec<_>>())
            }),
            Operation::SyncDirectory { path } => told(disk.sync_directory(&at(path)).await, done),
            Operation::Exists { path } => {
                told(disk.exists(&at(path)).await, |exists| exists.to_string())
            }
            Operation::ReadFile { path } => told(disk.read_file(&at(path)).await, |bytes| {
                bytes.map_or("none".to_owned(), |bytes| said(&bytes))
            }),
            // Its other name would be outside.
            Operation::Replace { path, .. } if path.as_os_str().is_empty() => "no".to_owned(),
            Operation::Replace { path, bytes } => {
                let bytes = self.bytes(*bytes);
                told(disk.replace_file(&at(path), bytes).await, done)
            }
        }
    }
}

async fn perform_all(place: Place, operations: Vec<Operation>) -> Vec<String> {
    let mut performer = Performer::new(place.runtime.disk, place.folder);
    let mut outcomes = Vec::new();
    for operation in &operations {
        outcomes.push(performer.perform(operation).await);
    }
    outcomes
}

fn on_both(operations: Vec<Operation>) -> u64 {
    let outcomes = Mutex::new(Vec::new());
    on_real(|place| async {
        let all = perform_all(place, operations.clone()).await;
        *outcomes.lock().unwrap() = all;
    });
    let real = outcomes.into_inner().unwrap();
    let simulated = World::run(1, quick(), |world| {
        let node = world.create_node("subject", "subject");
        let operations = operations.clone();
        async move {
            let runtime = node.runtime();
            runtime.disk.create_directory(Path::new("/data")).await.unwrap();
            let (folder, host) = (PathBuf::from("/data"), "subject".to_owned());
            let place = Place { runtime, folder, host };
            node.spawn("perform", perform_all(place, operations)).await.unwrap()
        }
    });
    for (number, operation) in operations.iter().enumerate() {
        let (real, simulated) = (&real[number], &simulated[number]);
        assert_eq!(
            simulated, real,
            "operation {number}, {operation:?}: the model's, the real one's"
        );
    }
    operations.len() as u64
}

#[test]
fn every_operation_on_files_has_the_same_outcome() {
    let operations = proptest::collection::vec(operation(), 1..120);
    compare("disk", cases(120), &operations, on_both);
}
