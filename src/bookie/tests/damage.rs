//! Torn ends are forgiven, corruption is not, and neither is ever called absent.

use super::*;
use crate::bookie::inspect;
use crate::bookie::journal::{GROUP_HEADER_BYTES, GroupHeader};
use crate::bookie::storage::LocationIndex;
use crate::runtime::IndexChange;
use crate::runtime::real::runtime;

/// Offsets of the groups in a copied journal file.
async fn groups(folder: &Folder, path: &Path) -> Vec<u64> {
    let bytes = folder.runtime.disk.read_file(path).await.unwrap().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let id = crate::bookie::journal::journal_file_id(name).unwrap();
    (0..bytes.len())
        .step_by(4096)
        .filter(|at| {
            let header = &bytes[*at..(*at + GROUP_HEADER_BYTES).min(bytes.len())];
            GroupHeader::decode(header, id, *at as u64).is_some()
        })
        .map(|at| at as u64)
        .collect()
}

/// The last journal file that holds groups, and where they are; the one made ready after it holds none.
async fn last_groups(folder: &Folder) -> (PathBuf, Vec<u64>) {
    for (path, _) in folder.files("journal", ".journal").await.into_iter().rev() {
        let offsets = groups(folder, &path).await;
        if !offsets.is_empty() {
            return (path, offsets);
        }
    }
    panic!("no journal file holds a group");
}

/// Where a start begins to read a journal file.
async fn read_from(folder: &Folder, path: &Path) -> u64 {
    let ledgers = folder.path.join("ledgers");
    let read = inspect::checkpoint(&folder.runtime.disk, &ledgers).await.unwrap();
    let summary = read.expect("there is one").expect("whole");
    let name = path.file_name().unwrap().to_str().unwrap();
    let mark = &summary.marks[0];
    let is_here = crate::bookie::journal::journal_file_id(name) == Some(mark.file);
    if is_here { mark.offset } else { 0 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_last_group_is_an_end_and_a_bad_group_before_it_is_corruption() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    for entry in 0..4 {
        add(&bookie, batch(1, entry..entry + 1, 6000)).await.unwrap();
    }
    let copy = folder.crash_copy(true).await;
    bookie.stop().await;
    let (path, offsets) = last_groups(&copy).await;
    assert_eq!(offsets.len(), 4);

    let torn = copy.crash_copy(true).await;
    let torn_path = torn.path.join("journal").join(path.file_name().unwrap());
    flip(&torn.runtime, &torn_path, offsets[3] + 5000).await;
    let other = torn.start().await.unwrap();
    assert_holds(&other, 1, 0..3).await;
    add(&other, batch(1, 3..4, 100)).await.unwrap();
    let next = torn.crash_copy(true).await;
    other.stop().await;
    let survivor = next.start().await.unwrap();
    assert_holds(&survivor, 1, 0..4).await;
    survivor.stop().await;
    next.remove().await;
    torn.remove().await;

    // What a checkpoint has passed is not read again: the keeper may just have made one when the first groups came.
    let read_from = read_from(&copy, &path).await;
    let bad = [offsets[1] + 10, offsets[1] + 5000, offsets[0] + 100, offsets[2] + 10];
    for bad in bad.into_iter().filter(|bad| *bad >= read_from) {
        let corrupt = copy.crash_copy(true).await;
        let corrupt_path = corrupt.path.join("journal").join(path.file_name().unwrap());
        flip(&corrupt.runtime, &corrupt_path, bad).await;
        assert!(matches!(corrupt.start().await, Err(BookieStartError::Corrupt(_))), "byte {bad}");
        corrupt.remove().await;
    }
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_group_stays_an_end_over_many_crashes() {
    let mut folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..2, 3000)).await.unwrap();
    let first = folder.crash_copy(true).await;
    bookie.stop().await;
    folder.remove().await;
    folder = first;
    for life in 0..3 {
        // A torn group of the last life: the last file's first free place gets half a group.
        let (path, offsets) = last_groups(&folder).await;
        if let Some(last) = offsets.last().filter(|_| life > 0) {
            flip(&folder.runtime, &path, last + 70).await;
        }
        let bookie = folder.start().await.unwrap();
        assert_holds(&bookie, 1, 0..2).await;
        add(&bookie, batch(1, 2..3, 3000)).await.unwrap();
        let copy = folder.crash_copy(true).await;
        bookie.stop().await;
        folder.remove().await;
        folder = copy;
    }
    folder.remove().await;
}

/// Whole groups in the files behind it are not the end, they show that something was before them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_file_that_is_gone_is_corruption() {
    let folder = Folder::new(&runtime()).await;
    let config = BookieConfig { write_cache_bytes: 16 << 20, ..folder.config() };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(folder.runtime.clone(), config, directory).await.unwrap();
    for entry in 0..20 {
        add(&bookie, batch(1, entry..entry + 1, 40_000)).await.unwrap();
    }
    let copy = folder.crash_copy(true).await;
    bookie.stop().await;
    let mut used = Vec::new();
    for (path, _) in copy.files("journal", ".journal").await {
        if !groups(&copy, &path).await.is_empty() {
            used.push(path);
        }
    }
    assert!(used.len() > 2, "{used:?}");
    copy.runtime.disk.remove(&used[1]).await.unwrap();
    let refused = copy.start().await.err();
    assert!(matches!(refused, Some(BookieStartError::Corrupt(_))), "{refused:?}");
    folder.remove().await;
    copy.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rot_in_an_entry_log_is_corrupt_and_never_absent() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..20, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    let (path, _) = folder.files("ledgers", ".entries").await.pop().unwrap();
    let logs = folder.path.join("ledgers");
    let disk = &folder.runtime.disk;
    let id = inspect::entry_logs(disk, &logs).await.unwrap().pop().unwrap().id;
    let listing = inspect::entry_log_entries(disk, &logs, id).await.unwrap();
    let (fifth, sixth) = (&listing.entries[5], &listing.entries[6]);
    // Entry 5's last byte.
    flip(&folder.runtime, &path, sixth.offset - 1).await;
    assert_eq!(read_ids(&bookie, 1, 0).await.unwrap(), vec![0, 1, 2, 3, 4]);
    assert!(matches!(read_ids(&bookie, 1, 5).await, Err(ReadError::Corrupt(_))));
    assert_eq!(read_ids(&bookie, 1, 6).await.unwrap().len(), 14);
    assert!(bookie.stats().corrupt_found > 0);
    // Its header: without the index, the entry's place cannot be told any more.
    flip(&folder.runtime, &path, fifth.offset + 6).await;
    let copy = folder.crash_copy(false).await;
    let other = copy.start().await.unwrap();
    assert!(matches!(read_ids(&other, 1, 5).await, Err(ReadError::Unknown(_))));
    assert!(matches!(read_ids(&other, 1, 20).await, Err(ReadError::Unknown(_))));
    assert_eq!(read_ids(&other, 1, 6).await.unwrap().len(), 14);
    // A good copy heals it.
    let healing = AddBatch { recovery: true, ..batch(1, 5..6, 100) };
    add(&other, healing).await.unwrap();
    other.checkpoint().await.unwrap();
    assert_eq!(read_ids(&other, 1, 0).await.unwrap().len(), 20);
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_checkpoint_file_or_a_lost_log_refuses_the_start() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..20, 100)).await.unwrap();
    bookie.stop().await;
    let damaged = folder.crash_copy(true).await;
    flip(&damaged.runtime, &damaged.path.join("ledgers/checkpoint"), 70).await;
    assert!(matches!(damaged.start().await, Err(BookieStartError::Corrupt(_))));
    damaged.remove().await;
    let lost = folder.crash_copy(true).await;
    for (path, _) in lost.files("ledgers", ".entries").await {
        lost.runtime.disk.remove(&path).await.unwrap();
    }
    assert!(matches!(lost.start().await, Err(BookieStartError::Corrupt(_))));
    lost.remove().await;
    let lost = folder.crash_copy(true).await;
    for (path, _) in lost.files("journal", ".journal").await {
        lost.runtime.disk.remove(&path).await.unwrap();
    }
    assert!(matches!(lost.start().await, Err(BookieStartError::Corrupt(_))));
    lost.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_last_group_is_corruption_once_a_witness_follows_it() {
    let folder = Folder::new(&runtime()).await;
    let config =
        BookieConfig { journal_witness_delay: Duration::from_millis(1), ..folder.config() };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(folder.runtime.clone(), config, directory).await.unwrap();
    bookie.checkpoint().await.unwrap();
    add(&bookie, batch(1, 0..3, 2000)).await.unwrap();
    for _ in 0..3000 {
        if last_groups(&folder).await.1.len() == 2 {
            break;
        }
        folder.runtime.clock.sleep(Duration::from_millis(1)).await;
    }
    let copy = folder.crash_copy(true).await;
    bookie.stop().await;
    let (path, offsets) = last_groups(&copy).await;
    assert_eq!(offsets.len(), 2, "a group and its witness");
    for (bad, is_refused) in [(offsets[0], true), (offsets[0] + 3000, true), (offsets[1], false)] {
        let damaged = copy.crash_copy(true).await;
        flip(&damaged.runtime, &damaged.path.join("journal").join(path.file_name().unwrap()), bad)
            .await;
        match damaged.start().await {
            Ok(other) => {
                assert!(!is_refused, "byte {bad}");
                assert_holds(&other, 1, 0..3).await;
                other.stop().await;
            }
            Err(error) => {
                assert!(is_refused && matches!(error, BookieStartError::Corrupt(_)), "{error}");
            }
        }
        damaged.remove().await;
    }
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_went_back_in_time_is_made_again() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..10, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    let former = folder.crash_copy(true).await;
    add(&bookie, batch(1, 10..20, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    let copy = folder.crash_copy(false).await;
    copy_folder(
        &copy.runtime,
        &former.path.join("ledgers/index"),
        &copy.path.join("ledgers/index"),
        true,
    )
    .await;
    let other = copy.start().await.unwrap();
    assert_holds(&other, 1, 0..20).await;
    assert_eq!(read_ids(&other, 1, 20).await, Err(ReadError::Absent));
    other.stop().await;
    bookie.stop().await;
    former.remove().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pair_that_is_no_run_is_an_error_and_never_nothing() {
    let folder = Folder::new(&runtime()).await;
    let raw = folder.runtime.indexes.open(&folder.path.join("index")).await.unwrap();
    let index = LocationIndex::new(Arc::clone(&raw));
    assert_eq!(index.find(LedgerId(1), EntryId(3)), Ok(None));
    let mut key = vec![b'r'];
    key.extend(1_u64.to_be_bytes());
    key.extend(0_u64.to_be_bytes());
    let put = IndexChange::Put { key: key.into(), value: Bytes::from_static(b"no run") };
    raw.apply(vec![put]).unwrap();
    assert!(index.find(LedgerId(1), EntryId(3)).is_err());
    assert!(index.page(LedgerId(1), EntryId(0)).is_err());
    assert!(index.remove_ledger(LedgerId(1)).is_err());
    drop((index, raw));
    folder.remove().await;
}
