//! Reading ahead: fewer reads of the disk, and the same answers.

use super::*;
use crate::bookie::inspect;
use crate::bookie::read::read_whole_run;
use crate::runtime::real::runtime;

const LEDGER: u64 = 1;
const PART: i64 = 10;

/// A bookie whose entries are in its entry log.
async fn stored(folder: &Folder, entries: i64, read_cache_bytes: usize) -> Bookie {
    let config = BookieConfig { read_cache_bytes, ..folder.config() };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(folder.runtime.clone(), config, directory).await.unwrap();
    add(&bookie, batch(LEDGER, 0..entries, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    bookie
}

async fn read_part(bookie: &Bookie, first: i64) -> Result<Vec<Entry>, ReadError> {
    let request = ReadRequest { entries_max: PART as u32, ..request(LEDGER, first) };
    bookie.read(request).await
}

/// Ids from `first` to before `end`, ten at a time.
async fn assert_reads(bookie: &Bookie, first: i64, end: i64) {
    for first in (first..end).step_by(PART as usize) {
        let entries = read_part(bookie, first).await.unwrap();
        let expected: Vec<Entry> =
            (first..(first + PART).min(end)).map(|entry| sealed(LEDGER, entry, 100)).collect();
        assert_eq!(entries, expected);
    }
}

fn hits_and_misses(bookie: &Bookie) -> (u64, u64) {
    let stats = bookie.stats();
    (stats.read_cache_hits, stats.read_cache_misses)
}

/// The file of entries and where each of them begins in it.
async fn places(folder: &Folder) -> (PathBuf, Vec<u64>) {
    let (path, _) = folder.files("ledgers", ".entries").await.pop().unwrap();
    let logs = folder.path.join("ledgers");
    let disk = &folder.runtime.disk;
    let id = inspect::entry_logs(disk, &logs).await.unwrap().pop().unwrap().id;
    let listing = inspect::entry_log_entries(disk, &logs, id).await.unwrap();
    (path, listing.entries.iter().map(|entry| entry.offset).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_in_sequence_is_read_ahead_for_and_no_other() {
    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 400, 1 << 20).await;
    for first in [0, 390, 100, 20, 300] {
        assert_reads(&bookie, first, first + PART).await;
    }
    assert_eq!(hits_and_misses(&bookie), (0, 5), "none of these began where another ended");
    assert_reads(&bookie, 30, 400).await;
    assert_eq!(
        hits_and_misses(&bookie),
        (36, 6),
        "the second read of the sequence took all of the run"
    );
    // Two readers do not disturb each other, nor does the end of what is kept.
    for first in (0..200).step_by(PART as usize) {
        assert_reads(&bookie, first, first + PART).await;
        assert_reads(&bookie, first + 200, first + 200 + PART).await;
    }
    assert_eq!(read_part(&bookie, 400).await, Err(ReadError::Absent));
    bookie.stop().await;
    folder.remove().await;

    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 400, 0).await;
    assert_reads(&bookie, 0, 400).await;
    assert_eq!(hits_and_misses(&bookie), (0, 0));
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_stored_again_is_read_as_it_is_now() {
    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 100, 1 << 20).await;
    assert_reads(&bookie, 0, 30).await;
    assert_eq!(hits_and_misses(&bookie), (1, 2));
    let again: Vec<Entry> = (30..35)
        .map(|id| {
            let old = sealed(LEDGER, id, 100);
            Entry::seal(old.ledger, old.entry, EntryId(7), old.length, old.payload)
        })
        .collect();
    let copies = AddBatch { recovery: true, entries: again.clone(), ..batch(LEDGER, 0..0, 0) };
    add(&bookie, copies).await.unwrap();
    for _ in 0..2 {
        let mut entries = read_part(&bookie, 30).await.unwrap();
        if entries.len() == 5 {
            entries.append(&mut read_part(&bookie, 35).await.unwrap());
        }
        assert_eq!(entries[..5], again);
        assert_eq!(entries[5..], (35..40).map(|id| sealed(LEDGER, id, 100)).collect::<Vec<_>>());
        bookie.checkpoint().await.unwrap();
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_not_kept_and_what_is_kept_does_not_hide_damage_that_was_found() {
    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 100, 1 << 20).await;
    let (path, offsets) = places(&folder).await;
    flip(&folder.runtime, &path, offsets[46] - 1).await;
    assert_reads(&bookie, 0, 40).await;
    assert_eq!(hits_and_misses(&bookie), (2, 2));
    assert_eq!(read_part(&bookie, 40).await.unwrap().len(), 5);
    assert!(matches!(read_part(&bookie, 45).await, Err(ReadError::Corrupt(_))));
    flip(&folder.runtime, &path, offsets[46] - 1).await;
    assert_reads(&bookie, 45, 65).await;
    // Now it is kept, and what happens to the disk is not seen until somebody looks there.
    flip(&folder.runtime, &path, offsets[71] - 1).await;
    assert_reads(&bookie, 70, 80).await;
    let shared = &bookie.shared;
    let run = shared.index.find(LedgerId(LEDGER), EntryId(0)).unwrap().unwrap();
    assert!(matches!(read_whole_run(shared, &run).await, Err(ReadError::Corrupt(_))));
    assert!(matches!(read_part(&bookie, 70).await, Err(ReadError::Corrupt(_))));
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_deleted_ledger_is_answered_or_kept() {
    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 100, 1 << 20).await;
    assert_reads(&bookie, 0, 30).await;
    assert!(bookie.shared.read_cache.bytes() > 0);
    let gone = Presences(BTreeMap::from([(LedgerId(LEDGER), LedgerPresence::Gone)]));
    bookie.collect_garbage(&gone).await;
    assert_eq!(bookie.shared.read_cache.bytes(), 0);
    assert!(matches!(read_part(&bookie, 30).await, Err(ReadError::Unknown(_))));
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_cache_stays_small() {
    let folder = Folder::new(&runtime()).await;
    let bookie = stored(&folder, 1000, 8 * 1024).await;
    for first in [0, 500] {
        assert_reads(&bookie, first, first + 500).await;
        assert!(bookie.shared.read_cache.bytes() <= 8 * 1024);
    }
    let (hits, misses) = hits_and_misses(&bookie);
    assert!(hits > 0 && misses > hits / 4, "{hits} hits, {misses} misses");
    bookie.stop().await;
    folder.remove().await;
}
