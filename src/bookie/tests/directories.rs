//! Several ledger directories: what is in which, and which folders a bookie may start on.

use super::faulty_disk::faulty;
use super::*;
use crate::bookie::inspect;
use crate::runtime::real::runtime;

const MAIN: &str = "ledgers";
const SECOND: &str = "ledgers-2";

impl Folder {
    fn with_directories(&self, more: &[&str]) -> BookieConfig {
        let more_ledger_directories = more.iter().map(|name| self.path.join(name)).collect();
        BookieConfig { more_ledger_directories, ..self.config() }
    }

    async fn start_on(&self, more: &[&str]) -> Result<Bookie, BookieStartError> {
        self.start_as(self.with_directories(more)).await
    }

    pub(super) async fn start_as(&self, config: BookieConfig) -> Result<Bookie, BookieStartError> {
        let directory = Arc::new(Presences::default());
        let bookie = Bookie::start(self.runtime.clone(), config, directory).await?;
        bookie.checkpoint().await.unwrap();
        Ok(bookie)
    }

    async fn refusal(&self, more: &[&str]) -> String {
        match self.start_on(more).await {
            Err(BookieStartError::Cookie(message)) => message,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it started"),
        }
    }

    /// Ledgers with entries in the logs of a directory.
    async fn stored(&self, directory: &str) -> std::collections::BTreeSet<u64> {
        let (disk, directory) = (&self.runtime.disk, self.path.join(directory));
        let mut ledgers = std::collections::BTreeSet::new();
        for log in inspect::entry_logs(disk, &directory).await.unwrap() {
            let listing = inspect::entry_log_entries(disk, &directory, log.id).await.unwrap();
            assert!(listing.header_is_good && listing.damaged_stretches.is_empty());
            ledgers.extend(listing.entries.iter().map(|entry| entry.ledger.0));
        }
        ledgers
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ledgers_are_spread_and_each_stays_in_one() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start_on(&[SECOND]).await.unwrap();
    for round in 0..6 {
        for ledger in 1..21 {
            add(&bookie, batch(ledger, round * 10..round * 10 + 10, 1000)).await.unwrap();
        }
        bookie.checkpoint().await.unwrap();
    }
    let (first, second) = (folder.stored(MAIN).await, folder.stored(SECOND).await);
    assert!(first.len() > 4 && second.len() > 4, "{first:?} {second:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
    assert_eq!(first.len() + second.len(), 20);
    // Some only in the journal.
    add(&bookie, batch(50, 0..5, 100)).await.unwrap();
    for with_index in [true, false] {
        let copy = folder.crash_copy(with_index).await;
        let other = copy.start_on(&[SECOND]).await.unwrap();
        for ledger in 1..21 {
            assert_holds(&other, ledger, 0..60).await;
            add(&other, batch(ledger, 60..61, 100)).await.unwrap();
        }
        assert_holds(&other, 50, 0..5).await;
        other.checkpoint().await.unwrap();
        // They go on where they were, in another life, too.
        let (mut now_first, mut now_second) = (copy.stored(MAIN).await, copy.stored(SECOND).await);
        now_first.remove(&50);
        now_second.remove(&50);
        assert_eq!((&now_first, &now_second), (&first, &second));
        other.stop().await;
        copy.remove().await;
    }
    // Logs of a deleted ledger go in either.
    let gone = (1..21).map(|ledger| (LedgerId(ledger), LedgerPresence::Gone)).collect();
    let gone = Presences(gone);
    bookie.checkpoint().await.unwrap();
    bookie.stop().await;
    let bookie = folder.start_on(&[SECOND]).await.unwrap();
    bookie.collect_garbage(&gone).await;
    let left: Vec<u64> =
        folder.stored(MAIN).await.union(&folder.stored(SECOND).await).copied().collect();
    assert_eq!(left, [50]);
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_folder_has_to_be_the_one_it_was() {
    let folder = Folder::new(&runtime()).await;
    let third = "ledgers-3";
    let bookie = folder.start_on(&[]).await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    bookie.stop().await;
    // A new empty folder, without a word and with one.
    assert!(folder.refusal(&[SECOND]).await.contains("adopt"));
    write_file(&folder.runtime, &folder.path.join(SECOND).join("adopt"), Bytes::new()).await;
    let bookie = folder.start_on(&[SECOND]).await.unwrap();
    assert_holds(&bookie, 1, 0..5).await;
    add(&bookie, batch(1, 5..6, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    assert!(folder.stored(SECOND).await.is_empty(), "a ledger known from before stays");
    for ledger in 2..20 {
        add(&bookie, batch(ledger, 0..2, 100)).await.unwrap();
    }
    bookie.checkpoint().await.unwrap();
    assert!(!folder.stored(SECOND).await.is_empty());
    bookie.stop().await;
    // The word was for once.
    assert!(!folder.runtime.disk.exists(&folder.path.join(SECOND).join("adopt")).await.unwrap());
    // Left out, lost, lost and "adopted" again, of another bookie, in another place.
    assert!(folder.refusal(&[]).await.contains("leaves out"));
    for adopted in [false, true] {
        let copy = folder.crash_copy(true).await;
        copy.runtime.disk.remove_directory(&copy.path.join(SECOND)).await.unwrap();
        copy.runtime.disk.create_directory(&copy.path.join(SECOND)).await.unwrap();
        if adopted {
            write_file(&copy.runtime, &copy.path.join(SECOND).join("adopt"), Bytes::new()).await;
        }
        assert!(copy.refusal(&[SECOND]).await.contains("has no cookie"));
        copy.remove().await;
    }
    let other = Folder::new(&folder.runtime).await;
    other.start_on(&[SECOND]).await.unwrap().stop().await;
    let copy = folder.crash_copy(true).await;
    let theirs = other.path.join(SECOND).join("cookie");
    let theirs = copy.runtime.disk.read_file(&theirs).await.unwrap().unwrap();
    write_file(&copy.runtime, &copy.path.join(SECOND).join("cookie"), theirs).await;
    assert!(copy.refusal(&[SECOND]).await.contains("belongs to"));
    copy.remove().await;
    other.remove().await;
    folder.runtime.disk.create_directory(&folder.path.join(third)).await.unwrap();
    write_file(&folder.runtime, &folder.path.join(third).join("adopt"), Bytes::new()).await;
    folder.start_on(&[SECOND, third]).await.unwrap().stop().await;
    assert!(folder.refusal(&[third, SECOND]).await.contains("configured as"));
    // An adoption that was cut short before the list was written.
    let copy = folder.crash_copy(true).await;
    let fourth = copy.path.join("ledgers-4");
    let third_cookie = copy.runtime.disk.read_file(&copy.path.join(third).join("cookie")).await;
    let text = String::from_utf8(third_cookie.unwrap().unwrap().to_vec()).unwrap();
    let cookie = Bytes::from(text.replace(third, "ledgers-4"));
    copy.runtime.disk.create_directory(&fourth).await.unwrap();
    write_file(&copy.runtime, &fourth.join("adopt"), Bytes::new()).await;
    write_file(&copy.runtime, &fourth.join("cookie"), cookie).await;
    copy.start_on(&[SECOND, third, "ledgers-4"]).await.unwrap().stop().await;
    assert!(copy.refusal(&[SECOND, third]).await.contains("leaves out"));
    copy.remove().await;
    let bookie = folder.start_on(&[SECOND, third]).await.unwrap();
    for ledger in 2..20 {
        assert_holds(&bookie, ledger, 0..2).await;
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_moved_is_read_from_its_newest_copy() {
    let (folder, faults) = faulty().await;
    let config = || BookieConfig {
        free_space_low_bytes: 1000,
        // Free space is looked at often.
        checkpoint_interval: Duration::from_millis(5),
        ..folder.with_directories(&[SECOND])
    };
    let bookie = folder.start_as(config()).await.unwrap();
    // The first directory is nearly full: new ledgers go to the second, and the bookie is writable.
    faults.free_space.store(1 << 40, Ordering::SeqCst);
    faults.free_space_of_second.store(600, Ordering::SeqCst);
    folder.runtime.clock.sleep(Duration::from_millis(200)).await;
    for ledger in 1..10 {
        add(&bookie, batch(ledger, 0..10, 100)).await.unwrap();
    }
    bookie.checkpoint().await.unwrap();
    assert!(folder.stored(SECOND).await.is_empty());
    assert!(!bookie.stats().read_only);
    // A log of the second directory, younger than the first's.
    faults.free_space_of_second.store(1 << 40, Ordering::SeqCst);
    folder.runtime.clock.sleep(Duration::from_millis(200)).await;
    for ledger in 10..30 {
        add(&bookie, batch(ledger, 0..10, 100)).await.unwrap();
    }
    bookie.checkpoint().await.unwrap();
    let moving = *folder.stored(SECOND).await.first().expect("some are there");
    // Now the second has next to nothing left: its ledgers go on in the first.
    faults.free_space_of_second.store(10, Ordering::SeqCst);
    folder.runtime.clock.sleep(Duration::from_millis(200)).await;
    let mut again = AddBatch { recovery: true, ..batch(moving, 2..4, 100) };
    for entry in &mut again.entries {
        *entry =
            Entry::seal(entry.ledger, entry.entry, EntryId(7), entry.length, entry.payload.clone());
    }
    add(&bookie, again).await.unwrap();
    add(&bookie, batch(moving, 10..12, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    assert!(folder.stored(MAIN).await.contains(&moving));
    bookie.stop().await;
    for with_index in [true, false] {
        let copy = folder.crash_copy(with_index).await;
        let other = copy.start_on(&[SECOND]).await.unwrap();
        assert_holds(&other, moving, 0..12).await;
        for (first, expected) in [(1, 0), (2, 7), (3, 7), (4, 3)] {
            let entries = other.read(request(moving, first)).await.unwrap();
            assert_eq!(entries[0].last_add_confirmed, EntryId(expected), "entry {first}");
        }
        other.stop().await;
        copy.remove().await;
    }
    folder.remove().await;
}
