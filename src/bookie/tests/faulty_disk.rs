//! A disk that fails when told to.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::runtime::real::runtime;
use crate::runtime::sim::{World, WorldSettings};
use crate::runtime::{
    DirectoryEntry, Disk, DiskDriver, DiskError, DiskErrorKind, DiskLock, DiskOperation,
    DiskResult, File, FileDriver,
};

/// What fails now.
#[derive(Default)]
pub(super) struct Faults {
    journal_sync: AtomicBool,
    /// Of the folder called `journal-2` only.
    pub(super) second_journal_sync: AtomicBool,
    /// While it is held, groups for the folder called `journal` wait.
    pub(super) first_journal: tokio::sync::Mutex<()>,
    log_sync: AtomicBool,
    checkpoint_file: AtomicBool,
    /// There is no room for another journal file.
    no_journal_room: AtomicBool,
    pub(super) free_space: AtomicU64,
    /// Free space of folders called `ledgers-2` or `journal-2`.
    pub(super) free_space_of_second: AtomicU64,
}

impl Faults {
    fn check(&self, path: &Path) -> DiskResult<()> {
        let name = path.to_string_lossy();
        let in_folder = |name: &str| path.parent().is_some_and(|folder| folder.ends_with(name));
        let fails = (in_folder("journal-2") && self.second_journal_sync.load(Ordering::SeqCst))
            || (name.ends_with(".journal") && self.journal_sync.load(Ordering::SeqCst))
            || (name.ends_with(".entries") && self.log_sync.load(Ordering::SeqCst))
            || (path.ends_with("checkpoint") && self.checkpoint_file.load(Ordering::SeqCst));
        if fails {
            return Err(DiskError::new(
                DiskOperation::Sync,
                path,
                DiskErrorKind::Failed,
                "told to",
            ));
        }
        Ok(())
    }
}

struct FaultyDisk(Disk, Arc<Faults>);

struct FaultyFile(File, PathBuf, Arc<Faults>);

#[async_trait]
impl FileDriver for FaultyFile {
    async fn read_at(&self, offset: u64, length: usize) -> DiskResult<Bytes> {
        self.0.read_at(offset, length).await
    }
    async fn write_at(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        if self.1.ends_with("next.unfinished") && self.2.no_journal_room.load(Ordering::SeqCst) {
            let (operation, kind) = (DiskOperation::Write, DiskErrorKind::Full);
            return Err(DiskError::new(operation, &self.1, kind, "told to"));
        }
        self.0.write_at(offset, buffers).await
    }
    async fn sync(&self) -> DiskResult<()> {
        self.2.check(&self.1)?;
        self.0.sync().await
    }
    async fn write_and_sync(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        let in_first = self.1.parent().is_some_and(|folder| folder.ends_with("journal"));
        let standing = if in_first { Some(self.2.first_journal.lock().await) } else { None };
        self.0.write_at(offset, buffers).await?;
        self.2.check(&self.1)?;
        let synced = self.0.sync().await;
        drop(standing);
        synced
    }
    async fn length(&self) -> DiskResult<u64> {
        self.0.length().await
    }
    async fn set_length(&self, length: u64) -> DiskResult<()> {
        self.0.set_length(length).await
    }
}

#[async_trait]
impl DiskDriver for FaultyDisk {
    async fn open(&self, path: &Path, create: CreateMode, mode: OpenMode) -> DiskResult<File> {
        let file = self.0.open(path, create, mode).await?;
        Ok(Arc::new(FaultyFile(file, path.to_owned(), Arc::clone(&self.1))))
    }
    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        self.1.check(to)?;
        self.0.rename(from, to).await
    }
    async fn remove(&self, path: &Path) -> DiskResult<()> {
        self.0.remove(path).await
    }
    async fn remove_directory(&self, path: &Path) -> DiskResult<()> {
        self.0.remove_directory(path).await
    }
    async fn create_directory(&self, path: &Path) -> DiskResult<()> {
        self.0.create_directory(path).await
    }
    async fn list(&self, path: &Path) -> DiskResult<Vec<DirectoryEntry>> {
        self.0.list(path).await
    }
    async fn sync_directory(&self, path: &Path) -> DiskResult<()> {
        self.0.sync_directory(path).await
    }
    async fn free_space(&self, path: &Path) -> DiskResult<u64> {
        if path.ends_with("ledgers-2") || path.ends_with("journal-2") {
            return Ok(self.1.free_space_of_second.load(Ordering::SeqCst));
        }
        Ok(self.1.free_space.load(Ordering::SeqCst))
    }
    async fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        self.0.lock(path).await
    }
}

pub(super) async fn faulty() -> (Folder, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    faults.free_space.store(1 << 40, Ordering::SeqCst);
    faults.free_space_of_second.store(1 << 40, Ordering::SeqCst);
    let mut runtime = runtime();
    runtime.disk = Disk::new(Arc::new(FaultyDisk(runtime.disk.clone(), Arc::clone(&faults))));
    (Folder::new(&runtime).await, faults)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_poisons_for_good() {
    let (folder, faults) = faulty().await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    faults.journal_sync.store(true, Ordering::SeqCst);
    assert!(matches!(add(&bookie, batch(1, 5..6, 100)).await, Err(AddError::Poisoned(_))));
    faults.journal_sync.store(false, Ordering::SeqCst);
    assert!(bookie.poisoned().await.contains("told to"));
    assert!(matches!(add(&bookie, batch(1, 6..7, 100)).await, Err(AddError::Poisoned(_))));
    let fenced = ReadRequest { fence: true, ..request(1, 0) };
    assert!(matches!(bookie.read(fenced).await, Err(ReadError::Unknown(_))));
    // "Absent" would count as fenced, too.
    let fenced = ReadRequest { fence: true, ..request(8, 0) };
    assert!(matches!(bookie.read(fenced).await, Err(ReadError::Unknown(_))));
    let told = bookie.last_add_confirmed(LedgerId(9), CREATOR, true).await;
    assert!(matches!(told, Err(ReadError::Unknown(_))));
    assert_holds(&bookie, 1, 0..5).await;
    assert!(bookie.stats().poisoned.is_some());
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_flush_goes_first_the_next_time() {
    let (folder, faults) = faulty().await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    faults.log_sync.store(true, Ordering::SeqCst);
    bookie.checkpoint().await.unwrap_err();
    assert_holds(&bookie, 1, 0..5).await;
    add(&bookie, batch(1, 5..9, 100)).await.unwrap();
    faults.log_sync.store(false, Ordering::SeqCst);
    bookie.checkpoint().await.unwrap();
    // Only the first half is behind the mark now; the journal has the second.
    let copy = folder.crash_copy(true).await;
    let other = copy.start().await.unwrap();
    assert_holds(&other, 1, 0..9).await;
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_checkpoint_that_did_not_complete_are_dropped() {
    let (folder, faults) = faulty().await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    add(&bookie, batch(1, 5..9, 100)).await.unwrap();
    add(&bookie, batch(2, 0..3, 100)).await.unwrap();
    // Entries and index are durable, and nothing says that they count.
    faults.checkpoint_file.store(true, Ordering::SeqCst);
    bookie.checkpoint().await.unwrap_err();
    let copy = folder.crash_copy(true).await;
    faults.checkpoint_file.store(false, Ordering::SeqCst);
    let other = copy.start().await.unwrap();
    assert_holds(&other, 1, 0..9).await;
    assert_holds(&other, 2, 0..3).await;
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_cache_holds_adds_back_and_lets_go_again() {
    let (folder, faults) = faulty().await;
    let bookie = folder.start().await.unwrap();
    faults.log_sync.store(true, Ordering::SeqCst);
    let mut overloaded = 0;
    for round in 0..16 {
        let added = add(&bookie, batch(1, round * 64..round * 64 + 64, 1000)).await;
        if let Err(error) = added {
            assert_eq!(error, AddError::Overloaded);
            overloaded += 1;
            break;
        }
    }
    assert_eq!(overloaded, 1);
    faults.log_sync.store(false, Ordering::SeqCst);
    bookie.checkpoint().await.unwrap();
    add(&bookie, batch(2, 0..10, 1000)).await.unwrap();
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_takes_fences_and_recovery_adds_only() {
    let (folder, faults) = faulty().await;
    let config = BookieConfig {
        free_space_low_bytes: 1000,
        checkpoint_interval: Duration::from_millis(5),
        ..folder.config()
    };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(folder.runtime.clone(), config, directory).await.unwrap();
    let clock = folder.runtime.clock.clone();
    add(&bookie, batch(1, 0..2, 10)).await.unwrap();
    faults.free_space.store(900, Ordering::SeqCst);
    while !bookie.stats().read_only {
        clock.sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(add(&bookie, batch(1, 2..3, 10)).await, Err(AddError::ReadOnly));
    add(&bookie, AddBatch { recovery: true, ..batch(1, 2..3, 10) }).await.unwrap();
    bookie.last_add_confirmed(LedgerId(1), CREATOR, true).await.unwrap();
    faults.free_space.store(1100, Ordering::SeqCst);
    clock.sleep(Duration::from_millis(50)).await;
    assert!(bookie.stats().read_only, "hysteresis");
    faults.free_space.store(1300, Ordering::SeqCst);
    while bookie.stats().read_only {
        clock.sleep(Duration::from_millis(2)).await;
    }
    add(&bookie, batch(2, 0..1, 10)).await.unwrap();
    bookie.stop().await;
    folder.remove().await;
}

/// Nothing was written, so nothing is in doubt: it can be tried again once a checkpoint has let files go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_without_room_goes_on_behind_a_checkpoint() {
    let (folder, faults) = faulty().await;
    // So little that no files are stocked at the start.
    faults.free_space.store(1, Ordering::SeqCst);
    let config = BookieConfig { write_cache_bytes: 16 << 20, ..folder.config() };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(folder.runtime.clone(), config, directory).await.unwrap();
    faults.no_journal_room.store(true, Ordering::SeqCst);
    // Of each ledger the first record is in the group that is refused with it, and has to come again.
    let mut ledger = 1;
    while add(&bookie, batch(ledger, 0..1, 10_000)).await.is_ok() {
        ledger += 1;
        assert!(ledger < 500, "never refused");
    }
    loop {
        match add(&bookie, batch(ledger, 0..1, 10_000)).await {
            Ok(()) => break,
            Err(error) => assert_eq!(error, AddError::ReadOnly),
        }
        folder.runtime.clock.sleep(Duration::from_millis(2)).await;
    }
    assert!(bookie.stats().poisoned.is_none());
    let copy = folder.crash_copy(false).await;
    bookie.stop().await;
    folder.remove().await;
    faults.no_journal_room.store(false, Ordering::SeqCst);
    let bookie = copy.start().await.unwrap();
    for ledger in 1..=ledger {
        assert_holds(&bookie, ledger, 0..1).await;
    }
    bookie.stop().await;
    copy.remove().await;
}

/// Checkpoints that succeed after one that failed must not leave its entries behind their mark: neither the
/// keeper's own, nor one that is asked for.
#[test]
fn a_mark_never_passes_a_half_whose_flush_failed() {
    for asked in [false, true] {
        World::run(1, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let config = BookieConfig {
                checkpoint_interval: Duration::from_secs(1000),
                garbage_interval: Duration::from_secs(1000),
                free_space_low_bytes: 0,
                ..BookieConfig::below(Path::new("/data"))
            };
            let directory = || Arc::new(Presences::default());
            let start = || Bookie::start(node.runtime(), config.clone(), directory());
            let bookie = start().await.unwrap();
            bookie.checkpoint().await.unwrap();
            add(&bookie, batch(1, 0..5, 100)).await.unwrap();
            node.set_disk(|disk| disk.sync_error_rate = 1.0);
            bookie.checkpoint().await.unwrap_err();
            node.heal_disk();
            if asked {
                bookie.checkpoint().await.unwrap();
            } else {
                node.wait(Duration::from_secs(2)).await;
            }
            node.power_loss();
            let bookie = start().await.unwrap();
            assert_holds(&bookie, 1, 0..5).await;
        });
    }
}
