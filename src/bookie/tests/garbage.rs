//! Deleted ledgers stay deleted and give their space back; nothing else goes.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::runtime::real::runtime;
use crate::runtime::sim::{World, WorldSettings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_ledgers_give_their_space_back_and_never_return() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    // Two logs' worth of ledger 1 with a little of ledger 2 in between.
    for round in 0..12 {
        add(&bookie, batch(1, round * 100..round * 100 + 100, 1000)).await.unwrap();
        add(&bookie, batch(2, round..round + 1, 500)).await.unwrap();
    }
    bookie.checkpoint().await.unwrap();
    let before: u64 = folder.files("ledgers", ".entries").await.iter().map(|file| file.1).sum();
    assert!(before > 1_200_000);
    let unsure = Presences(BTreeMap::from([(LedgerId(1), LedgerPresence::Unknown)]));
    bookie.collect_garbage(&unsure).await;
    assert_holds(&bookie, 1, 0..1200).await;
    let gone = Presences(BTreeMap::from([(LedgerId(1), LedgerPresence::Gone)]));
    bookie.collect_garbage(&gone).await;
    let after: u64 = folder.files("ledgers", ".entries").await.iter().map(|file| file.1).sum();
    assert!(after < 600_000, "{before} -> {after}");
    assert_holds(&bookie, 2, 0..12).await;
    assert_eq!(add(&bookie, batch(1, 1200..1201, 10)).await, Err(AddError::Deleted));
    for with_index in [true, false] {
        let copy = folder.crash_copy(with_index).await;
        let other = copy.start().await.unwrap();
        assert_holds(&other, 2, 0..12).await;
        assert_eq!(add(&other, batch(1, 0..1, 10)).await, Err(AddError::Deleted));
        assert!(matches!(read_ids(&other, 1, 0).await, Err(ReadError::Unknown(_))));
        other.stop().await;
        copy.remove().await;
    }
    bookie.stop().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tombstone_not_yet_in_the_checkpoint_file_is_replayed() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    add(&bookie, batch(1, 0..10, 100)).await.unwrap();
    let ledger = bookie.shared.ledgers.find(LedgerId(1)).unwrap();
    let burial = crate::bookie::fence::begin_burial(&bookie.shared, &ledger);
    crate::bookie::fence::end_burial(burial).await.unwrap();
    let copy = folder.crash_copy(true).await;
    let other = copy.start().await.unwrap();
    assert_eq!(add(&other, batch(1, 10..11, 10)).await, Err(AddError::Deleted));
    other.checkpoint().await.unwrap();
    assert!(other.stats().entry_log_bytes == 0);
    other.stop().await;
    bookie.stop().await;
    copy.remove().await;
    folder.remove().await;
}

/// Collects what ledger 1 has left beside a little of ledger 2, for as long as the power lasts. True if it was
/// done by then.
fn collect_for(power: Duration) -> bool {
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
        add(&bookie, batch(1, 0..100, 1000)).await.unwrap();
        add(&bookie, batch(2, 0..10, 500)).await.unwrap();
        // The next life begins another log: this one can be compacted.
        bookie.stop().await;
        let bookie = start().await.unwrap();
        bookie.checkpoint().await.unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let (collecting, done) = (bookie.clone(), Arc::clone(&is_done));
        node.runtime().tasks.spawn("collect", async move {
            let gone = Presences(BTreeMap::from([(LedgerId(1), LedgerPresence::Gone)]));
            collecting.collect_garbage(&gone).await;
            done.store(true, Ordering::SeqCst);
        });
        world.sleep(power).await;
        node.power_loss();
        let bookie = start().await.unwrap();
        assert_holds(&bookie, 2, 0..10).await;
        is_done.load(Ordering::SeqCst)
    })
}

#[test]
fn a_compaction_cut_short_at_any_moment_loses_nothing() {
    let moments = (0..).map(|step| step * Duration::from_millis(1));
    let cut_short = moments.take_while(|power| !collect_for(*power)).count();

    assert!(cut_short > 20, "only {cut_short} moments");
}
