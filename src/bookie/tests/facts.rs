//! The facts log: appended to, written anew, cut off where a checkpoint never completed; damage is told from
//! that.

use super::*;
use crate::runtime::real::runtime;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_are_appended_and_written_anew_and_fences_survive_both() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    let (mut appended, mut anew) = (0, 0);
    let mut before = folder.files("ledgers", ".facts").await;
    for round in 0..30_i64 {
        for ledger in 1..=20 {
            add(&bookie, batch(ledger, round..round + 1, 10)).await.unwrap();
        }
        let fenced = 100 + u64::try_from(round).unwrap();
        add(&bookie, batch(fenced, 0..1, 10)).await.unwrap();
        bookie.read(ReadRequest { fence: true, ..request(fenced, 0) }).await.unwrap();
        bookie.checkpoint().await.unwrap();
        let now = folder.files("ledgers", ".facts").await;
        assert_eq!(now.len(), 1, "{now:?}");
        assert!(now[0].1 < 2 * (72 + 40 * 50) + 4096 + 1024, "{now:?}");
        let is_same = now[0].0 == before[0].0;
        appended += u32::from(is_same && now[0].1 > before[0].1);
        anew += u32::from(!is_same);
        before = now;
    }
    assert!(appended > 10 && anew > 1, "{appended} appended, {anew} written anew");
    bookie.stop().await;
    let copy = folder.crash_copy(false).await;
    let other = copy.start().await.unwrap();
    for ledger in 100..130 {
        assert_eq!(add(&other, batch(ledger, 1..2, 10)).await, Err(AddError::Fenced), "{ledger}");
    }
    add(&other, batch(7, 30..31, 10)).await.unwrap();
    other.stop().await;
    copy.remove().await;
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_refuses_the_start_and_an_unfinished_checkpoint_does_not() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    for ledger in 1..5 {
        add(&bookie, batch(ledger, 0..3, 10)).await.unwrap();
        bookie.checkpoint().await.unwrap();
    }
    bookie.stop().await;
    let (path, length) = folder.files("ledgers", ".facts").await.remove(0);
    let name = path.file_name().unwrap().to_owned();
    for offset in [10, 70, length - 1] {
        let damaged = folder.crash_copy(true).await;
        flip(&damaged.runtime, &damaged.path.join("ledgers").join(&name), offset).await;
        assert!(matches!(damaged.start().await, Err(BookieStartError::Corrupt(_))), "{offset}");
        damaged.remove().await;
    }
    let short = folder.crash_copy(true).await;
    let disk = &short.runtime.disk;
    let place = short.path.join("ledgers").join(&name);
    let file = disk.open(&place, CreateMode::Existing, OpenMode::Shared).await.unwrap();
    file.set_length(length - 1).await.unwrap();
    assert!(matches!(short.start().await, Err(BookieStartError::Corrupt(_))));
    disk.remove(&place).await.unwrap();
    assert!(matches!(short.start().await, Err(BookieStartError::Corrupt(_))));
    short.remove().await;
    let unfinished = folder.crash_copy(true).await;
    let disk = &unfinished.runtime.disk;
    let place = unfinished.path.join("ledgers").join(&name);
    let file = disk.open(&place, CreateMode::Existing, OpenMode::Shared).await.unwrap();
    file.write_at(length, vec![Bytes::from_static(&[9; 100])]).await.unwrap();
    let stray = unfinished.path.join("ledgers/00000000000000ff.facts");
    write_file(&unfinished.runtime, &stray, Bytes::from_static(b"half a header")).await;
    let other = unfinished.start().await.unwrap();
    assert!(!disk.exists(&stray).await.unwrap());
    for ledger in 1..5 {
        assert_holds(&other, ledger, 0..3).await;
    }
    other.stop().await;
    unfinished.remove().await;
    folder.remove().await;
}
