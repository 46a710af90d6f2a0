//! The bookie from outside: promises kept across restarts, damage and failing disks. A crash of the process is
//! played by copying the folders while the bookie runs and starting another on the copy.

mod damage;
mod directories;
mod facts;
mod faulty_disk;
mod fence;
mod garbage;
mod index_runs;
mod journals;
mod levels;
mod promises;
mod read_cache;
mod throughput;
mod unsynced;
mod wait;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::{Bookie, BookieConfig, BookieStartError, LedgerDirectory, LedgerPresence};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId,
    ReadError, ReadRequest,
};
use crate::runtime::{CreateMode, OpenMode, Runtime};

const CREATOR: CreatorToken = CreatorToken(77);

/// A folder of its own for one test, removed at its end.
struct Folder {
    path: PathBuf,
    runtime: Runtime,
}

static FOLDERS: AtomicU64 = AtomicU64::new(0);

impl Folder {
    async fn new(runtime: &Runtime) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("seawall-bookie-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        runtime.disk.remove_directory(&path).await.unwrap();
        runtime.disk.create_directory(&path).await.unwrap();
        Self { path, runtime: runtime.clone() }
    }

    /// What a killed process would leave, without the index if told so.
    async fn crash_copy(&self, with_index: bool) -> Self {
        let copy = Self::new(&self.runtime).await;
        copy_folder(&self.runtime, &self.path, &copy.path, with_index).await;
        copy
    }

    async fn remove(self) {
        self.runtime.disk.remove_directory(&self.path).await.unwrap();
    }

    fn config(&self) -> BookieConfig {
        BookieConfig {
            journal_file_bytes: 256 * 1024,
            journal_group_bytes: 32 * 1024,
            // Tests count groups.
            journal_witness_delay: Duration::from_secs(1000),
            write_cache_bytes: 256 * 1024,
            // Checkpoints happen when a test asks, or when a half is full.
            checkpoint_interval: Duration::from_secs(1000),
            entry_log_bytes: 512 * 1024,
            free_space_low_bytes: 0,
            garbage_interval: Duration::from_secs(1000),
            ..BookieConfig::below(&self.path)
        }
    }

    /// Starts a bookie and lets its first checkpoint pass, so that a copy taken later is of one moment.
    async fn start(&self) -> Result<Bookie, BookieStartError> {
        let directory = Arc::new(Presences::default());
        let bookie = Bookie::start(self.runtime.clone(), self.config(), directory).await?;
        bookie.checkpoint().await.unwrap();
        Ok(bookie)
    }

    /// Names and lengths of files with this ending.
    async fn files(&self, folder: &str, ending: &str) -> Vec<(PathBuf, u64)> {
        let folder = self.path.join(folder);
        let names = self.runtime.disk.list(&folder).await.unwrap();
        names
            .into_iter()
            .filter(|entry| entry.name.ends_with(ending))
            .map(|entry| (folder.join(&entry.name), entry.length))
            .collect()
    }
}

fn copy_folder<'a>(
    runtime: &'a Runtime,
    from: &'a Path,
    to: &'a Path,
    with_index: bool,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        runtime.disk.create_directory(to).await.unwrap();
        for entry in runtime.disk.list(from).await.unwrap() {
            let (source, target) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_directory {
                if with_index || entry.name != "index" {
                    copy_folder(runtime, &source, &target, with_index).await;
                }
            } else if let Some(content) = runtime.disk.read_file(&source).await.unwrap() {
                write_file(runtime, &target, content).await;
            }
        }
    })
}

async fn write_file(runtime: &Runtime, path: &Path, content: Bytes) {
    let mode = CreateMode::CreateIfMissing;
    let file = runtime.disk.open(path, mode, OpenMode::Shared).await.unwrap();
    file.set_length(0).await.unwrap();
    file.write_at(0, vec![content]).await.unwrap();
}

/// Flips one byte.
async fn flip(runtime: &Runtime, path: &Path, offset: u64) {
    let file = runtime.disk.open(path, CreateMode::Existing, OpenMode::Shared).await.unwrap();
    let byte = file.read_at(offset, 1).await.unwrap()[0] ^ 0x20;
    file.write_at(offset, vec![Bytes::copy_from_slice(&[byte])]).await.unwrap();
}

/// Metadata's list of ledgers; what is not in it exists.
#[derive(Default)]
struct Presences(BTreeMap<LedgerId, LedgerPresence>);

#[async_trait]
impl LedgerDirectory for Presences {
    async fn presence(&self, ledger: LedgerId, _bookie: BookieId) -> LedgerPresence {
        self.0.get(&ledger).copied().unwrap_or(LedgerPresence::Exists)
    }
}

/// Keeps one answer.
struct OneAnswer(Mutex<Option<oneshot::Sender<AddAnswer>>>);

impl AddSink for OneAnswer {
    fn answered(&self, answer: AddAnswer) {
        let sender = self.0.lock().unwrap().take().expect("answered twice");
        let _ = sender.send(answer);
    }
}

fn payload(ledger: u64, entry: i64, bytes: usize) -> Bytes {
    let mut payload = format!("{ledger}:{entry} ").into_bytes();
    payload.resize(bytes, b'x');
    Bytes::from(payload)
}

fn sealed(ledger: u64, entry: i64, bytes: usize) -> Entry {
    Entry::seal(
        LedgerId(ledger),
        EntryId(entry),
        EntryId(entry - 1),
        u64::try_from(entry + 1).unwrap() * bytes as u64,
        payload(ledger, entry, bytes),
    )
}

fn batch(ledger: u64, entries: std::ops::Range<i64>, bytes: usize) -> AddBatch {
    AddBatch {
        ledger: LedgerId(ledger),
        creator: CREATOR,
        recovery: false,
        entries: entries.map(|entry| sealed(ledger, entry, bytes)).collect(),
    }
}

fn begin_add(bookie: &Bookie, batch: AddBatch) -> oneshot::Receiver<AddAnswer> {
    let (sender, answer) = oneshot::channel();
    bookie.add(batch, Arc::new(OneAnswer(Mutex::new(Some(sender)))));
    answer
}

async fn add(bookie: &Bookie, batch: AddBatch) -> Result<(), AddError> {
    begin_add(bookie, batch).await.unwrap().result
}

fn request(ledger: u64, first: i64) -> ReadRequest {
    ReadRequest {
        ledger: LedgerId(ledger),
        creator: CREATOR,
        first: EntryId(first),
        entries_max: 10_000,
        bytes_max: 8 * 1024 * 1024,
        fence: false,
    }
}

/// Ids of the run from `first`, after checking each entry.
async fn read_ids(bookie: &Bookie, ledger: u64, first: i64) -> Result<Vec<i64>, ReadError> {
    let entries = bookie.read(request(ledger, first)).await?;
    for (entry, id) in entries.iter().zip(first..) {
        entry.verify(LedgerId(ledger), EntryId(id)).unwrap();
        let expected = payload(ledger, id, entry.payload.len());
        assert_eq!(entry.payload, expected);
    }
    Ok(entries.iter().map(|entry| entry.entry.0).collect())
}

async fn assert_holds(bookie: &Bookie, ledger: u64, entries: std::ops::Range<i64>) {
    let mut next = entries.start;
    while next < entries.end {
        let ids = read_ids(bookie, ledger, next).await.unwrap();
        next = ids.last().unwrap() + 1;
    }
    assert_eq!(next, entries.end, "ledger {ledger}");
    assert_eq!(read_ids(bookie, ledger, entries.end).await, Err(ReadError::Absent));
}
