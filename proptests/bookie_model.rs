//! The bookie against a map: whatever was acknowledged is read back, nothing else is, across checkpoints, clean
//! restarts, crashes, a lost index, fences and deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use seawall::bookie::{Bookie, BookieConfig, LedgerDirectory, LedgerPresence};
use seawall::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId,
    ReadError, ReadRequest,
};
use seawall::runtime::{CreateMode, OpenMode, Runtime};
use tokio::sync::oneshot;

const CREATOR: CreatorToken = CreatorToken(5);
static FOLDERS: AtomicU64 = AtomicU64::new(0);

/// An executor like production's, without its rule that a panic ends the process.
pub fn block_on<F: Future>(work: F) -> F::Output {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an executor");
    executor.block_on(work)
}

/// A new empty folder.
pub async fn new_folder(runtime: &Runtime) -> PathBuf {
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let path =
        std::env::temp_dir().join(format!("seawall-proptest-{}-{number}", std::process::id()));
    runtime.disk.remove_directory(&path).await.expect("removed");
    runtime.disk.create_directory(&path).await.expect("created");
    path
}

/// Small files, so that everything rolls.
pub fn small_config(folder: &Path) -> BookieConfig {
    BookieConfig {
        journal_file_bytes: 96 * 1024,
        journal_group_bytes: 16 * 1024,
        journal_witness_delay: Duration::from_secs(1000),
        write_cache_bytes: 64 * 1024,
        read_cache_bytes: 48 * 1024,
        checkpoint_interval: Duration::from_secs(1000),
        entry_log_bytes: 100 * 1024,
        free_space_low_bytes: 0,
        garbage_interval: Duration::from_secs(1000),
        ..BookieConfig::below(folder)
    }
}

/// Copies a folder as a killed process would leave it, with or without the index.
pub fn copy_folder<'a>(
    runtime: &'a Runtime,
    from: &'a Path,
    to: &'a Path,
    with_index: bool,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        runtime.disk.create_directory(to).await.expect("created");
        for entry in runtime.disk.list(from).await.expect("listed") {
            let (source, target) = (from.join(&entry.name), to.join(&entry.name));
            if entry.is_directory {
                if with_index || entry.name != "index" {
                    copy_folder(runtime, &source, &target, with_index).await;
                }
            } else if let Some(content) = runtime.disk.read_file(&source).await.expect("read") {
                let mode = CreateMode::CreateIfMissing;
                let file = runtime.disk.open(&target, mode, OpenMode::Shared).await;
                file.expect("opened").write_at(0, vec![content]).await.expect("written");
            }
        }
    })
}

/// Metadata's list: all but these exist.
#[derive(Default)]
pub struct Gone(pub BTreeSet<LedgerId>);

#[async_trait]
impl LedgerDirectory for Gone {
    async fn presence(&self, ledger: LedgerId, _bookie: BookieId) -> LedgerPresence {
        if self.0.contains(&ledger) { LedgerPresence::Gone } else { LedgerPresence::Exists }
    }
}

struct OneAnswer(Mutex<Option<oneshot::Sender<AddAnswer>>>);

impl AddSink for OneAnswer {
    fn answered(&self, answer: AddAnswer) {
        let sender = self.0.lock().expect("whole").take().expect("answered once");
        let _ = sender.send(answer);
    }
}

/// The entry every test stores under this name.
pub fn sealed(ledger: u64, entry: i64, bytes: usize, last_add_confirmed: i64) -> Entry {
    let mut payload = format!("{ledger}:{entry}").into_bytes();
    payload.resize(bytes.max(payload.len()), b'.');
    let length = u64::try_from(entry).expect("not negative") * 1000;
    let last_add_confirmed = EntryId(last_add_confirmed);
    Entry::seal(LedgerId(ledger), EntryId(entry), last_add_confirmed, length, Bytes::from(payload))
}

/// Queues a batch.
pub fn begin_add(
    bookie: &Bookie,
    ledger: u64,
    recovery: bool,
    entries: Vec<Entry>,
) -> oneshot::Receiver<AddAnswer> {
    let (sender, answer) = oneshot::channel();
    let batch = AddBatch { ledger: LedgerId(ledger), creator: CREATOR, recovery, entries };
    bookie.add(batch, Arc::new(OneAnswer(Mutex::new(Some(sender)))));
    answer
}

/// A read of this one entry and what follows.
pub fn request(ledger: u64, first: i64) -> ReadRequest {
    ReadRequest {
        ledger: LedgerId(ledger),
        creator: CREATOR,
        first: EntryId(first),
        entries_max: 50,
        bytes_max: 20_000,
        fence: false,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add { ledger: u64, skip: i64, count: i64, bytes: usize },
    AddAgain { ledger: u64, back: i64, count: i64 },
    Fence { ledger: u64 },
    Delete { ledger: u64 },
    Checkpoint,
    Restart,
    Crash { with_index: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let ledger = 1..4_u64;
    prop_oneof![
        10 => (ledger.clone(), 0..3_i64, 1..30_i64, 1..1500_usize)
            .prop_map(|(ledger, skip, count, bytes)| Step::Add { ledger, skip, count, bytes }),
        3 => (ledger.clone(), 0..30_i64, 1..10_i64)
            .prop_map(|(ledger, back, count)| Step::AddAgain { ledger, back, count }),
        1 => ledger.clone().prop_map(|ledger| Step::Fence { ledger }),
        1 => ledger.prop_map(|ledger| Step::Delete { ledger }),
        3 => Just(Step::Checkpoint),
        1 => Just(Step::Restart),
        2 => any::<bool>().prop_map(|with_index| Step::Crash { with_index }),
    ]
}

#[derive(Default)]
struct Ledger {
    entries: BTreeMap<i64, Entry>,
    next: i64,
    fenced: bool,
    deleted: bool,
}

/// Reads everything, at most `entries_max` at once.
async fn check(bookie: &Bookie, ledgers: &BTreeMap<u64, Ledger>, entries_max: u32) {
    let request = |ledger, first| ReadRequest { entries_max, ..request(ledger, first) };
    for (id, ledger) in ledgers {
        if ledger.deleted {
            let answer = bookie.read(request(*id, 0)).await;
            assert!(matches!(answer, Err(ReadError::Unknown(_))), "ledger {id}: {answer:?}");
            continue;
        }
        let mut entry = 0;
        while entry <= ledger.next {
            match bookie.read(request(*id, entry)).await {
                Ok(run) => {
                    assert!(!run.is_empty());
                    for found in run {
                        assert_eq!(Some(&found), ledger.entries.get(&entry), "{id}:{entry}");
                        entry += 1;
                    }
                }
                Err(ReadError::Absent) => {
                    assert!(!ledger.entries.contains_key(&entry), "{id}:{entry} is lost");
                    entry += 1;
                }
                Err(error) => panic!("{id}:{entry}: {error}"),
            }
        }
        let told = bookie.last_add_confirmed(LedgerId(*id), CREATOR, false).await.expect("told");
        let last = ledger.entries.keys().last().copied().unwrap_or(-1);
        assert_eq!((told.last_entry, told.fenced), (EntryId(last), ledger.fenced), "ledger {id}");
    }
}

async fn run(steps: Vec<Step>, more_directories: usize, more_journals: usize) {
    let runtime = seawall::runtime::real::runtime();
    let mut folder = new_folder(&runtime).await;
    let start = async |folder: &Path| {
        let more = |count, kind: &str| -> Vec<PathBuf> {
            (0..count).map(|number| folder.join(format!("more-{kind}-{number}"))).collect()
        };
        let config = BookieConfig {
            more_ledger_directories: more(more_directories, "ledgers"),
            more_journal_directories: more(more_journals, "journals"),
            ..small_config(folder)
        };
        let directory = Arc::new(Gone::default());
        let bookie = Bookie::start(runtime.clone(), config, directory).await.expect("started");
        // A copy is of one moment only if no checkpoint is under way.
        bookie.checkpoint().await.expect("completed");
        bookie
    };
    let mut bookie = start(&folder).await;
    let mut ledgers: BTreeMap<u64, Ledger> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Add { ledger: id, skip, count, bytes } => {
                let ledger = ledgers.entry(id).or_default();
                let first = ledger.next + skip;
                let entries: Vec<Entry> = (first..first + count)
                    .map(|entry| sealed(id, entry, bytes, entry - 1))
                    .collect();
                let result = begin_add(&bookie, id, false, entries.clone()).await;
                let expected = match (ledger.deleted, ledger.fenced) {
                    (true, _) => Err(AddError::Deleted),
                    (false, true) => Err(AddError::Fenced),
                    (false, false) => Ok(()),
                };
                assert_eq!(result.expect("answered").result, expected);
                if expected.is_ok() {
                    ledger.next = first + count;
                    ledger.entries.extend(entries.into_iter().map(|entry| (entry.entry.0, entry)));
                }
            }
            Step::AddAgain { ledger: id, back, count } => {
                let Some(ledger) = ledgers.get_mut(&id).filter(|ledger| !ledger.deleted) else {
                    continue;
                };
                let first = (ledger.next - back).max(0);
                let again: Vec<Entry> = ledger
                    .entries
                    .range(first..first + count)
                    .map(|(entry, old)| sealed(id, *entry, old.payload.len(), first - 1))
                    .collect();
                let answer = begin_add(&bookie, id, true, again.clone()).await.expect("answered");
                assert_eq!(answer.result, Ok(()));
                ledger.entries.extend(again.into_iter().map(|entry| (entry.entry.0, entry)));
            }
            Step::Fence { ledger: id } => {
                let ledger = ledgers.entry(id).or_default();
                let told = bookie.last_add_confirmed(LedgerId(id), CREATOR, true).await;
                assert_eq!(told.is_ok(), !ledger.deleted);
                ledger.fenced = true;
            }
            Step::Delete { ledger: id } => {
                let Some(ledger) = ledgers.get_mut(&id) else { continue };
                bookie.collect_garbage(&Gone(BTreeSet::from([LedgerId(id)]))).await;
                ledger.deleted = true;
            }
            Step::Checkpoint => bookie.checkpoint().await.expect("completed"),
            Step::Restart => {
                bookie.stop().await;
                bookie = start(&folder).await;
            }
            Step::Crash { with_index } => {
                let copy = new_folder(&runtime).await;
                copy_folder(&runtime, &folder, &copy, with_index).await;
                bookie.stop().await;
                runtime.disk.remove_directory(&folder).await.expect("removed");
                folder = copy;
                bookie = start(&folder).await;
            }
        }
        check(&bookie, &ledgers, 50).await;
        // A few at once, as a reader does that is read ahead for; its last turn leaves something kept.
        check(&bookie, &ledgers, 3).await;
    }
    bookie.stop().await;
    runtime.disk.remove_directory(&folder).await.expect("removed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_bookie_is_a_map(
        steps in proptest::collection::vec(step(), 1..24),
        more_directories in 0..3_usize,
        more_journals in 0..3_usize,
    ) {
        block_on(run(steps, more_directories, more_journals));
    }
}
