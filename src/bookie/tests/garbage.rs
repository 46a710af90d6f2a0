//! Deleted ledgers stay deleted and give their space back; nothing else goes.

use super::*;
use crate::runtime::real::runtime;

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
