//! Several journal directories: which ledger is in which journal, what one journal's trouble does to the others,
//! and which folders a bookie may start on.

use std::collections::BTreeSet;

use super::faulty_disk::faulty;
use super::*;
use crate::bookie::inspect::{self, JournalRecord};
use crate::runtime::real::runtime;
use crate::runtime::sim::{World, WorldSettings};

const MAIN: &str = "journal";
const SECOND: &str = "journal-2";

impl Folder {
    fn with_journals(&self, more: &[&str]) -> BookieConfig {
        let more_journal_directories = more.iter().map(|name| self.path.join(name)).collect();
        BookieConfig { more_journal_directories, ..self.config() }
    }

    async fn journaling_to(&self, more: &[&str]) -> Result<Bookie, BookieStartError> {
        self.start_as(self.with_journals(more)).await
    }

    async fn refused(&self, more: &[&str]) -> String {
        match self.journaling_to(more).await {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it started"),
        }
    }

    /// Ledgers with records in a journal.
    async fn journaled(&self, directory: &str) -> BTreeSet<u64> {
        let (disk, directory) = (&self.runtime.disk, self.path.join(directory));
        let mut ledgers = BTreeSet::new();
        for file in inspect::journal_files(disk, &directory).await.unwrap() {
            for record in inspect::journal_records(disk, &directory, file.id).await.unwrap() {
                match record {
                    JournalRecord::Group { .. } => {}
                    JournalRecord::DamagedGroup { damage, .. } => panic!("{damage}"),
                    JournalRecord::Entry { ledger, .. }
                    | JournalRecord::Bind { ledger, .. }
                    | JournalRecord::Fence { ledger, .. }
                    | JournalRecord::Tombstone { ledger, .. } => {
                        ledgers.insert(ledger.0);
                    }
                }
            }
        }
        ledgers
    }

    /// File, offset and last used byte of each group with records of a journal, in the order they were written.
    async fn groups(&self, directory: &str) -> Vec<(PathBuf, u64, u64)> {
        let (disk, directory) = (&self.runtime.disk, self.path.join(directory));
        let mut groups = Vec::new();
        for file in inspect::journal_files(disk, &directory).await.unwrap() {
            for record in inspect::journal_records(disk, &directory, file.id).await.unwrap() {
                if let JournalRecord::Group { offset, sequence, used, records: 1.., .. } = record {
                    groups.push((sequence, directory.join(&file.name), offset, offset + used - 1));
                }
            }
        }
        groups.sort();
        groups.into_iter().map(|(_, path, begin, end)| (path, begin, end)).collect()
    }
}

/// One ledger of each of two journals.
async fn one_of_each(folder: &Folder, bookie: &Bookie) -> (u64, u64) {
    for ledger in 1..9 {
        add(bookie, batch(ledger, 0..1, 100)).await.unwrap();
    }
    let (first, second) = (folder.journaled(MAIN).await, folder.journaled(SECOND).await);
    (*first.first().expect("some"), *second.first().expect("some"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ledgers_are_spread_and_each_stays_in_its_journal() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.journaling_to(&[SECOND]).await.unwrap();
    for round in 0..3 {
        for ledger in 1..21 {
            add(&bookie, batch(ledger, round * 10..round * 10 + 10, 200)).await.unwrap();
        }
    }
    let (first, second) = (folder.journaled(MAIN).await, folder.journaled(SECOND).await);
    assert!(first.len() > 4 && second.len() > 4, "{first:?} {second:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
    assert_eq!(first.len() + second.len(), 20);
    let (fenced, deleted) = (*second.first().unwrap(), *second.last().unwrap());
    bookie.last_add_confirmed(LedgerId(fenced), CREATOR, true).await.unwrap();
    let gone = Presences([(LedgerId(deleted), LedgerPresence::Gone)].into());
    // From the journals alone, and with what a checkpoint wrote.
    for is_flushed in [false, true] {
        if is_flushed {
            bookie.collect_garbage(&gone).await;
        }
        for with_index in [true, false] {
            let copy = folder.crash_copy(with_index).await;
            let other = copy.journaling_to(&[SECOND]).await.unwrap();
            for ledger in 1..21 {
                let added = add(&other, batch(ledger, 30..31, 100)).await;
                if ledger == deleted && is_flushed {
                    assert_eq!(added, Err(AddError::Deleted));
                    continue;
                }
                if ledger == fenced {
                    assert_eq!(added, Err(AddError::Fenced));
                    assert_holds(&other, ledger, 0..30).await;
                    continue;
                }
                assert_eq!(added, Ok(()), "ledger {ledger}");
                assert_holds(&other, ledger, 0..31).await;
            }
            other.checkpoint().await.unwrap();
            other.stop().await;
            // Records that are behind the mark are read here, too, for as long as their files are there.
            assert!(copy.journaled(MAIN).await.is_disjoint(&second));
            assert!(copy.journaled(SECOND).await.is_disjoint(&first));
            copy.remove().await;
        }
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_journal_folder_has_to_be_the_one_it_was() {
    let folder = Folder::new(&runtime()).await;
    let third = "journal-3";
    let bookie = folder.journaling_to(&[]).await.unwrap();
    add(&bookie, batch(1, 0..5, 100)).await.unwrap();
    bookie.stop().await;
    let before = folder.crash_copy(true).await;
    // A new empty folder, without a word and with one; a folder with somebody's journal.
    assert!(folder.refused(&[SECOND]).await.contains("adopt"));
    let adopt = folder.path.join(SECOND).join("adopt");
    write_file(&folder.runtime, &adopt, Bytes::new()).await;
    let stray = folder.path.join(SECOND).join("0000000000000001.journal");
    write_file(&folder.runtime, &stray, Bytes::new()).await;
    assert!(folder.refused(&[SECOND]).await.contains("no cookie"));
    folder.runtime.disk.remove(&stray).await.unwrap();
    let bookie = folder.journaling_to(&[SECOND]).await.unwrap();
    assert_holds(&bookie, 1, 0..5).await;
    for ledger in 1..20 {
        let first = if ledger == 1 { 5 } else { 0 };
        add(&bookie, batch(ledger, first..first + 1, 100)).await.unwrap();
    }
    assert!(folder.journaled(MAIN).await.contains(&1), "a ledger known from before stays");
    assert!(folder.journaled(SECOND).await.len() > 4);
    // What was acknowledged there is there, though no checkpoint was made.
    let copy = folder.crash_copy(true).await;
    let other = copy.journaling_to(&[SECOND]).await.unwrap();
    assert_holds(&other, 1, 0..6).await;
    for ledger in 2..20 {
        assert_holds(&other, ledger, 0..1).await;
    }
    other.stop().await;
    copy.remove().await;
    bookie.stop().await;
    // Left out; wiped; its files lost; another's; in another place.
    assert!(folder.refused(&[]).await.contains("leaves out"));
    let copy = folder.crash_copy(true).await;
    copy.runtime.disk.remove_directory(&copy.path.join(SECOND)).await.unwrap();
    for with_adopt in [false, true] {
        if with_adopt {
            write_file(&copy.runtime, &copy.path.join(SECOND).join("adopt"), Bytes::new()).await;
        }
        assert!(copy.refused(&[SECOND]).await.contains("has no cookie"));
    }
    copy.remove().await;
    let copy = folder.crash_copy(true).await;
    for (path, _) in copy.files(SECOND, ".journal").await {
        copy.runtime.disk.remove(&path).await.unwrap();
    }
    assert!(copy.refused(&[SECOND]).await.contains("is missing"));
    copy.remove().await;
    let other = Folder::new(&folder.runtime).await;
    other.journaling_to(&[SECOND]).await.unwrap().stop().await;
    let copy = folder.crash_copy(true).await;
    let theirs = other.path.join(SECOND).join("cookie");
    let theirs = copy.runtime.disk.read_file(&theirs).await.unwrap().unwrap();
    write_file(&copy.runtime, &copy.path.join(SECOND).join("cookie"), theirs).await;
    assert!(copy.refused(&[SECOND]).await.contains("belongs to"));
    copy.remove().await;
    other.remove().await;
    folder.runtime.disk.create_directory(&folder.path.join(third)).await.unwrap();
    write_file(&folder.runtime, &folder.path.join(third).join("adopt"), Bytes::new()).await;
    folder.journaling_to(&[SECOND, third]).await.unwrap().stop().await;
    assert!(folder.refused(&[third, SECOND]).await.contains("configured as"));
    assert!(folder.refused(&[SECOND]).await.contains("leaves out"));
    // An adoption that was cut short before there was a mark for the journal: cookie and list are there.
    let from = folder.path.join(SECOND).join("cookie");
    let cookie = folder.runtime.disk.read_file(&from).await.unwrap().unwrap();
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    before.runtime.disk.create_directory(&before.path.join(SECOND)).await.unwrap();
    write_file(&before.runtime, &before.path.join(SECOND).join("cookie"), cookie).await;
    let path = before.path.join("ledgers").join("cookie");
    let list = text(before.runtime.disk.read_file(&path).await.unwrap().unwrap());
    let list = list.replace(
        "\"ledgers\"",
        "\"ledgers\", \"folders\": [\"journal\", \"ledgers\", \"journal-2\"]",
    );
    write_file(&before.runtime, &path, Bytes::from(list)).await;
    assert!(before.refused(&[]).await.contains("leaves out"));
    let bookie = before.journaling_to(&[SECOND]).await.unwrap();
    for ledger in 2..20 {
        add(&bookie, batch(ledger, 0..2, 100)).await.unwrap();
    }
    assert!(before.journaled(SECOND).await.len() > 4);
    bookie.stop().await;
    let bookie = before.journaling_to(&[SECOND]).await.unwrap();
    assert_holds(&bookie, 1, 0..5).await;
    for ledger in 2..20 {
        assert_holds(&bookie, ledger, 0..2).await;
    }
    bookie.stop().await;
    before.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_journal_has_its_own_end() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.journaling_to(&[SECOND]).await.unwrap();
    let (one, two) = one_of_each(&folder, &bookie).await;
    for entry in 1..5 {
        for ledger in [one, two] {
            add(&bookie, batch(ledger, entry..entry + 1, 6000)).await.unwrap();
        }
    }
    let copy = folder.crash_copy(true).await;
    bookie.stop().await;
    // Either journal's last group is torn, the other's is whole.
    for (torn, kept, directory) in [(one, two, MAIN), (two, one, SECOND)] {
        let copy = copy.crash_copy(true).await;
        let (path, _, end) = copy.groups(directory).await.pop().unwrap();
        flip(&copy.runtime, &path, end).await;
        let other = copy.journaling_to(&[SECOND]).await.unwrap();
        assert_holds(&other, torn, 0..4).await;
        assert_holds(&other, kept, 0..5).await;
        for ledger in [torn, kept] {
            let entries = if ledger == torn { 4..6 } else { 5..6 };
            add(&other, batch(ledger, entries, 100)).await.unwrap();
        }
        let next = copy.crash_copy(true).await;
        other.stop().await;
        let survivor = next.journaling_to(&[SECOND]).await.unwrap();
        assert_holds(&survivor, torn, 0..6).await;
        assert_holds(&survivor, kept, 0..6).await;
        survivor.stop().await;
        next.remove().await;
        copy.remove().await;
    }
    // A bad group before a good one is corruption, whichever journal it is in.
    for directory in [MAIN, SECOND] {
        let copy = copy.crash_copy(true).await;
        let groups = copy.groups(directory).await;
        let (path, begin, _) = &groups[groups.len() - 2];
        flip(&copy.runtime, path, begin + 5000).await;
        let refused = copy.refused(&[SECOND]).await;
        assert!(refused.contains("is damaged or missing"), "{refused}");
        copy.remove().await;
    }
    for (from, to) in [(MAIN, "held"), (SECOND, MAIN), ("held", SECOND)] {
        copy.runtime.disk.rename(&copy.path.join(from), &copy.path.join(to)).await.unwrap();
    }
    let refused = copy.refused(&[SECOND]).await;
    assert!(refused.contains("configured as"), "{refused}");
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_another_journal_are_refused() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.journaling_to(&[SECOND]).await.unwrap();
    one_of_each(&folder, &bookie).await;
    let copy = folder.crash_copy(true).await;
    bookie.stop().await;
    // The files change places and the cookies do not.
    for (path, _) in copy.files(SECOND, ".journal").await {
        copy.runtime.disk.remove(&path).await.unwrap();
    }
    for (path, _) in copy.files(MAIN, ".journal").await {
        let bytes = copy.runtime.disk.read_file(&path).await.unwrap().unwrap();
        let target = copy.path.join(SECOND).join(path.file_name().unwrap());
        write_file(&copy.runtime, &target, bytes).await;
    }
    let refused = copy.refused(&[SECOND]).await;
    // Which of them is met first depends on how far a checkpoint had come.
    assert!(refused.contains("journal 2 holds records of ledger "), "{refused}");
    assert!(refused.ends_with("which is in journal 1"), "{refused}");
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_of_one_journal_poisons_the_bookie() {
    let (folder, faults) = faulty().await;
    let bookie = folder.journaling_to(&[SECOND]).await.unwrap();
    let (one, two) = one_of_each(&folder, &bookie).await;
    // A group of the first journal is on its way while the second fails: it is not acknowledged any more.
    let standing = faults.first_journal.lock().await;
    let under_way = begin_add(&bookie, batch(one, 1..2, 100));
    faults.second_journal_sync.store(true, Ordering::SeqCst);
    assert!(matches!(add(&bookie, batch(two, 1..2, 100)).await, Err(AddError::Poisoned(_))));
    faults.second_journal_sync.store(false, Ordering::SeqCst);
    drop(standing);
    assert!(matches!(under_way.await.unwrap().result, Err(AddError::Poisoned(_))));
    assert!(bookie.poisoned().await.contains("told to"));
    for ledger in [one, two] {
        let added = add(&bookie, batch(ledger, 2..3, 100)).await;
        assert!(matches!(added, Err(AddError::Poisoned(_))), "{added:?}");
        let fenced = bookie.last_add_confirmed(LedgerId(ledger), CREATOR, true).await;
        assert!(matches!(fenced, Err(ReadError::Unknown(_))), "{fenced:?}");
        assert_eq!(read_ids(&bookie, ledger, 0).await, Ok(vec![0]));
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_stands_still_holds_up_its_own_ledgers_only() {
    let (folder, faults) = faulty().await;
    let config = BookieConfig { journal_queue_bytes: 20_000, ..folder.with_journals(&[SECOND]) };
    let bookie = folder.start_as(config).await.unwrap();
    let (one, two) = one_of_each(&folder, &bookie).await;
    let standing = faults.first_journal.lock().await;
    let mut waiting = Vec::new();
    for entry in 1..6 {
        waiting.push(begin_add(&bookie, batch(one, entry..entry + 1, 3000)));
    }
    assert_eq!(add(&bookie, batch(one, 6..7, 9000)).await, Err(AddError::Overloaded));
    for entry in 1..20 {
        add(&bookie, batch(two, entry..entry + 1, 3000)).await.unwrap();
    }
    bookie.last_add_confirmed(LedgerId(two), CREATOR, true).await.unwrap();
    // The mark of the one moves, that of the other stays.
    bookie.checkpoint().await.unwrap();
    assert!(waiting[0].try_recv().is_err());
    let copy = folder.crash_copy(true).await;
    drop(standing);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().result, Ok(()));
    }
    assert_holds(&bookie, one, 0..6).await;
    bookie.stop().await;
    let other = copy.journaling_to(&[SECOND]).await.unwrap();
    assert_holds(&other, two, 0..20).await;
    other.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_whose_disk_is_nearly_full_takes_no_new_ledgers() {
    let (folder, faults) = faulty().await;
    let config = BookieConfig {
        free_space_low_bytes: 1000,
        // Free space is looked at often.
        checkpoint_interval: Duration::from_millis(5),
        ..folder.with_journals(&[SECOND])
    };
    let bookie = folder.start_as(config).await.unwrap();
    let (one, two) = one_of_each(&folder, &bookie).await;
    let clock = &folder.runtime.clock;
    faults.free_space_of_second.store(600, Ordering::SeqCst);
    let refused = async |ledger| {
        let mut entry = 1;
        while add(&bookie, batch(ledger, entry..entry + 1, 10)).await != Err(AddError::ReadOnly) {
            clock.sleep(Duration::from_millis(2)).await;
            entry += 1;
        }
        entry
    };
    let end = refused(two).await;
    assert!(!bookie.stats().read_only);
    add(&bookie, AddBatch { recovery: true, ..batch(two, end..end + 1, 10) }).await.unwrap();
    bookie.last_add_confirmed(LedgerId(two), CREATOR, true).await.unwrap();
    add(&bookie, batch(one, 1..2, 10)).await.unwrap();
    for ledger in 100..120 {
        add(&bookie, batch(ledger, 0..1, 10)).await.unwrap();
    }
    faults.free_space.store(600, Ordering::SeqCst);
    while !bookie.stats().read_only {
        clock.sleep(Duration::from_millis(2)).await;
    }
    bookie.stop().await;
    folder.remove().await;
}

/// Entries that come to either journal while a checkpoint is made, and entries of either ledger directory behind
/// it, are there after the power was lost.
#[test]
fn marks_pass_what_every_directory_has_and_nothing_else() {
    for seed in 0..3 {
        World::run(seed, WorldSettings::default(), |world| async move {
            let node = world.create_node("bookie", "bookie");
            let config = BookieConfig {
                checkpoint_interval: Duration::from_secs(1000),
                garbage_interval: Duration::from_secs(1000),
                free_space_low_bytes: 0,
                more_journal_directories: vec![PathBuf::from("/data/journal-2")],
                more_ledger_directories: vec![PathBuf::from("/data/ledgers-2")],
                ..BookieConfig::below(Path::new("/data"))
            };
            let directory = || Arc::new(Presences::default());
            let start = async || Bookie::start(node.runtime(), config.clone(), directory()).await;
            let mut next = 0;
            for _ in 0..4 {
                let bookie = start().await.unwrap();
                for ledger in 1..9 {
                    assert_holds(&bookie, ledger, 0..next).await;
                }
                let adding = async {
                    for _ in 0..10 {
                        for ledger in 1..9 {
                            add(&bookie, batch(ledger, next..next + 1, 100)).await.unwrap();
                        }
                        next += 1;
                    }
                };
                let (checkpoint, ()) = futures_util::join!(bookie.checkpoint(), adding);
                checkpoint.unwrap();
                node.power_loss();
            }
            let bookie = start().await.unwrap();
            for ledger in 1..9 {
                assert_holds(&bookie, ledger, 0..next).await;
            }
        });
    }
}
