//! What was answered stays true.

use super::*;
use crate::domain::LastAddConfirmed;
use crate::runtime::real::runtime;
use crate::runtime::sim::{World, WorldSettings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_survive_every_kind_of_restart() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    assert!(bookie.is_fresh());
    add(&bookie, batch(1, 0..100, 300)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    add(&bookie, batch(1, 100..150, 300)).await.unwrap();
    add(&bookie, batch(2, 5..9, 10)).await.unwrap();
    for with_index in [true, false] {
        let copy = folder.crash_copy(with_index).await;
        let other = copy.start().await.unwrap();
        assert!(!other.is_fresh());
        assert_eq!(other.id(), bookie.id());
        for _ in 0..2 {
            assert_holds(&other, 1, 0..150).await;
            assert_holds(&other, 2, 5..9).await;
            assert_eq!(read_ids(&other, 2, 4).await, Err(ReadError::Absent));
            other.checkpoint().await.unwrap();
        }
        other.stop().await;
        assert!(matches!(read_ids(&other, 1, 0).await, Err(ReadError::Unreachable(_))));
        let again = copy.start().await.unwrap();
        assert_holds(&again, 1, 0..150).await;
        again.stop().await;
        copy.remove().await;
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_data_rolls_and_recycles_files_and_fills_halves() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    for round in 0..40 {
        let adds: Vec<_> = (1..4)
            .map(|ledger| begin_add(&bookie, batch(ledger, round * 20..round * 20 + 20, 1000)))
            .collect();
        for answer in adds {
            answer.await.unwrap().result.unwrap();
        }
    }
    for ledger in 1..4 {
        assert_holds(&bookie, ledger, 0..800).await;
    }
    bookie.checkpoint().await.unwrap();
    let journal = folder.files("journal", ".journal").await;
    assert!(journal.len() <= 6, "{journal:?}");
    assert!(folder.files("ledgers", ".entries").await.len() >= 4);
    // The files now hold groups of their previous lives after the newest group.
    add(&bookie, batch(9, 0..3, 100)).await.unwrap();
    let copy = folder.crash_copy(false).await;
    let other = copy.start().await.unwrap();
    for ledger in 1..4 {
        assert_holds(&other, ledger, 0..800).await;
    }
    assert_holds(&other, 9, 0..3).await;
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_replay_flushed_is_in_the_index_before_the_mark_moves() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    for entry in 0..20 {
        add(&bookie, batch(1, entry..entry + 1, 300)).await.unwrap();
    }
    let copy = folder.crash_copy(true).await;
    // Every group of the replay fills a half by itself, so none is left for the first checkpoint.
    let config = BookieConfig { write_cache_bytes: 1, ..copy.config() };
    let directory = Arc::new(Presences::default());
    let other = Bookie::start(copy.runtime.clone(), config, directory).await.unwrap();
    other.checkpoint().await.unwrap();
    let second = copy.crash_copy(true).await;
    let third = second.start().await.unwrap();
    assert_holds(&third, 1, 0..20).await;
    third.stop().await;
    other.stop().await;
    bookie.stop().await;
    second.remove().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_is_durable_before_any_answer_and_for_ever() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    // A ledger never seen here, asked for an entry that is not there: the negative answer, too, comes after
    // the fence.
    let fenced = ReadRequest { fence: true, ..request(4, 0) };
    assert_eq!(bookie.read(fenced).await, Err(ReadError::Absent));
    let copy = folder.crash_copy(true).await;
    for checkpoint_first in [false, true] {
        let other = copy.start().await.unwrap();
        assert_eq!(add(&other, batch(4, 0..1, 10)).await, Err(AddError::Fenced));
        if checkpoint_first {
            // Nothing but the flag is to be flushed.
            other.checkpoint().await.unwrap();
        }
        other.stop().await;
    }
    add(&bookie, batch(5, 0..3, 10)).await.unwrap();
    let told = bookie.last_add_confirmed(LedgerId(5), CREATOR, true).await.unwrap();
    let expected =
        LastAddConfirmed { last_add_confirmed: EntryId(1), last_entry: EntryId(2), fenced: true };
    assert_eq!(told, expected);
    assert_eq!(add(&bookie, batch(5, 3..4, 10)).await, Err(AddError::Fenced));
    let recovery = AddBatch { recovery: true, ..batch(5, 2..5, 10) };
    add(&bookie, recovery).await.unwrap();
    assert_holds(&bookie, 5, 0..5).await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_refused() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    let mut damaged = batch(1, 0..2, 10);
    damaged.entries[1].digest ^= 1;
    assert!(matches!(add(&bookie, damaged).await, Err(AddError::Damaged(_))));
    assert_eq!(read_ids(&bookie, 1, 0).await, Err(ReadError::Absent));
    add(&bookie, batch(1, 0..2, 10)).await.unwrap();
    let stranger = AddBatch { creator: CreatorToken(1), ..batch(1, 2..3, 10) };
    assert_eq!(add(&bookie, stranger).await, Err(AddError::WrongCreator));
    let stranger = ReadRequest { creator: CreatorToken(1), fence: true, ..request(1, 0) };
    assert_eq!(bookie.read(stranger).await, Err(ReadError::WrongCreator));
    add(&bookie, batch(1, 2..3, 10)).await.unwrap();
    let limited = ReadRequest { entries_max: 2, ..request(1, 0) };
    assert_eq!(bookie.read(limited).await.unwrap().len(), 2);
    let limited = ReadRequest { bytes_max: 5, ..request(1, 0) };
    assert_eq!(bookie.read(limited).await.unwrap().len(), 1);
    bookie.checkpoint().await.unwrap();
    assert_eq!(bookie.read(limited).await.unwrap().len(), 1);
    let stats = bookie.stats();
    assert_eq!((stats.entries_added, stats.bytes_added), (3, 30));
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_stored_again_is_read_from_its_newest_copy() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..50, 100)).await.unwrap();
    bookie.checkpoint().await.unwrap();
    let mut again = AddBatch { recovery: true, ..batch(1, 20..30, 100) };
    for entry in &mut again.entries {
        *entry =
            Entry::seal(entry.ledger, entry.entry, EntryId(7), entry.length, entry.payload.clone());
    }
    add(&bookie, again).await.unwrap();
    bookie.checkpoint().await.unwrap();
    let copy = folder.crash_copy(false).await;
    let other = copy.start().await.unwrap();
    for bookie in [&bookie, &other] {
        assert_holds(bookie, 1, 0..50).await;
        for (first, expected) in [(19, 18), (20, 7), (29, 7), (30, 29)] {
            let entries = bookie.read(request(1, first)).await.unwrap();
            assert_eq!(entries[0].last_add_confirmed, EntryId(expected), "entry {first}");
        }
    }
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_without_its_cookie_is_refused() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..2, 10)).await.unwrap();
    bookie.stop().await;
    for lost in ["journal", "ledgers"] {
        let copy = folder.crash_copy(true).await;
        copy.runtime.disk.remove_directory(&copy.path.join(lost)).await.unwrap();
        assert!(matches!(copy.start().await, Err(BookieStartError::Cookie(_))), "{lost}");
        copy.remove().await;
    }
    let other = Folder::new(&folder.runtime).await;
    other.start().await.unwrap().stop().await;
    let (mine, theirs) = (folder.path.join("journal/cookie"), other.path.join("journal/cookie"));
    let swapped = folder.runtime.disk.read_file(&theirs).await.unwrap().unwrap();
    write_file(&folder.runtime, &mine, swapped).await;
    assert!(matches!(folder.start().await, Err(BookieStartError::Cookie(_))));
    other.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_can_be_made_from_a_task() {
    fn movable<T: Send>(work: T) -> T {
        work
    }
    let folder = Folder::new(&runtime()).await;
    let directory = Arc::new(Presences::default());
    let start = Bookie::start(folder.runtime.clone(), folder.config(), directory.clone());
    let bookie = movable(start).await.unwrap();
    assert_eq!(movable(bookie.read(request(1, 0))).await, Err(ReadError::Absent));
    let told = movable(bookie.tell_last_add_confirmed(LedgerId(1), CREATOR, EntryId(3))).await;
    assert_eq!(told, Ok(()));
    movable(bookie.last_add_confirmed(LedgerId(1), CREATOR, true)).await.unwrap();
    movable(bookie.checkpoint()).await.unwrap();
    movable(bookie.collect_garbage(directory.as_ref())).await;
    drop(movable(bookie.poisoned()));
    movable(bookie.stop()).await;
    let ledgers = folder.path.join("ledgers");
    let summary = movable(crate::bookie::inspect::checkpoint(&folder.runtime.disk, &ledgers)).await;
    let summary = summary.unwrap().unwrap().unwrap();
    assert!(summary.ledgers[0].fenced);
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_life_rolls_past_every_file_it_was_stocked_with() {
    let folder = Folder::new(&runtime()).await;
    // A cache with room for everything: no checkpoint lets a file go meanwhile.
    let config = BookieConfig { write_cache_bytes: 16 * 1024 * 1024, ..folder.config() };
    let directory = Arc::new(Presences::default());
    let bookie = Bookie::start(runtime(), config, directory).await.unwrap();
    bookie.checkpoint().await.unwrap();
    for entry in 0..100 {
        add(&bookie, batch(1, entry..entry + 1, 60_000)).await.unwrap();
    }
    assert_eq!(bookie.stats().poisoned, None);
    bookie.stop().await;
    folder.remove().await;
}

/// Each life begins an entry log. Their names are numbers to base 16, which from the tenth on are no decimal ones.
#[test]
fn every_life_finds_the_logs_of_all_lives_before() {
    World::run(1, WorldSettings::default(), |world| async move {
        let node = world.create_node("bookie", "bookie");
        let config = BookieConfig {
            garbage_interval: Duration::from_secs(1000),
            free_space_low_bytes: 0,
            ..BookieConfig::below(Path::new("/data"))
        };
        for life in 0..20 {
            let directory = Arc::new(Presences::default());
            let bookie = Bookie::start(node.runtime(), config.clone(), directory).await.unwrap();
            assert_holds(&bookie, 1, 0..life).await;
            add(&bookie, batch(1, life..life + 1, 100)).await.unwrap();
            bookie.stop().await;
        }
    });
}
