//! The runs that an index says it has: what differs is made again, and a crash makes nothing differ.

use super::*;
use crate::runtime::real::runtime;
use crate::runtime::{
    IndexChange, IndexError, IndexFactoryDriver, OrderedIndex, OrderedIndexFactory,
};

/// Counts how often an index is made anew.
struct Counting {
    indexes: OrderedIndexFactory,
    destroyed: AtomicU64,
}

#[async_trait]
impl IndexFactoryDriver for Counting {
    async fn open(&self, path: &Path) -> Result<OrderedIndex, IndexError> {
        self.indexes.open(path).await
    }

    async fn destroy(&self, path: &Path) -> Result<(), IndexError> {
        self.destroyed.fetch_add(1, Ordering::Relaxed);
        self.indexes.destroy(path).await
    }
}

/// Starts a bookie on the folder that holds what it should, and returns how often its index was made again.
async fn made_again(folder: &Folder, entries: i64) -> u64 {
    let indexes = Arc::clone(&folder.runtime.indexes);
    let counting = Arc::new(Counting { indexes, destroyed: AtomicU64::new(0) });
    let runtime = Runtime { indexes: Arc::clone(&counting) as _, ..folder.runtime.clone() };
    let counted = Folder { path: folder.path.clone(), runtime };
    let bookie = counted.start().await.unwrap();
    for ledger in 1..=3 {
        assert_holds(&bookie, ledger, 0..entries).await;
    }
    bookie.stop().await;
    counting.destroyed.load(Ordering::Relaxed)
}

async fn fill(bookie: &Bookie, entries: std::ops::Range<i64>) {
    for ledger in 1..=3 {
        add(bookie, batch(ledger, entries.clone(), 100)).await.unwrap();
    }
}

/// The index of a stopped bookie.
async fn open_index(folder: &Folder) -> OrderedIndex {
    folder.runtime.indexes.open(&folder.path.join("ledgers/index")).await.unwrap()
}

async fn stopped() -> Folder {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    fill(&bookie, 0..20).await;
    bookie.checkpoint().await.unwrap();
    bookie.stop().await;
    folder
}

async fn change(folder: &Folder, change: IndexChange) {
    let index = open_index(folder).await;
    index.apply(vec![change]).unwrap();
    index.flush().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_missing_is_looked_for_in_the_logs() {
    let folder = stopped().await;
    let runs = open_index(&folder).await.range(b"r", b"s", 10).unwrap();
    assert_eq!(runs.len(), 3);
    // Another run in its place: as many, but not the same.
    let stray = |value: &Bytes| {
        let mut key = runs[2].0.to_vec();
        key[8] += 1;
        IndexChange::Put { key: key.into(), value: value.clone() }
    };
    for (key, value) in &runs {
        for stray in [None, Some(stray(value))] {
            let copy = folder.crash_copy(true).await;
            change(&copy, IndexChange::Remove { key: key.clone() }).await;
            if let Some(stray) = stray {
                change(&copy, stray).await;
            }
            assert_eq!(made_again(&copy, 20).await, 1);
            assert_eq!(made_again(&copy, 20).await, 0);
            copy.remove().await;
        }
    }
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_from_before_runs_were_counted_is_taken_as_it_is() {
    let folder = stopped().await;
    let key = Bytes::from_static(b"m");
    let now = open_index(&folder).await.get(&key).unwrap().unwrap();
    assert_eq!(now.len(), 24);
    change(&folder, IndexChange::Put { key: key.clone(), value: now.slice(..8) }).await;
    assert_eq!(made_again(&folder, 20).await, 0);
    assert_eq!(open_index(&folder).await.get(&key).unwrap().unwrap().len(), 24);
    change(&folder, IndexChange::Put { key, value: now.slice(..13) }).await;
    assert_eq!(made_again(&folder, 20).await, 1);
    folder.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_costs_no_index() {
    let folder = Folder::new(&runtime()).await;
    let bookie = folder.start().await.unwrap();
    let mut entries = 0;
    for _ in 0..3 {
        fill(&bookie, entries..entries + 10).await;
        entries += 10;
        // Stored again: older runs are trimmed.
        let again = AddBatch { recovery: true, ..batch(2, 3..entries - 2, 100) };
        add(&bookie, again).await.unwrap();
        let before = folder.crash_copy(true).await;
        let between = folder.crash_copy(false).await;
        bookie.checkpoint().await.unwrap();
        let after = folder.crash_copy(true).await;
        // The index is flushed, the checkpoint file not yet replaced.
        let index = "ledgers/index";
        copy_folder(&folder.runtime, &folder.path.join(index), &between.path.join(index), true)
            .await;
        for copy in [before, between, after] {
            assert_eq!(made_again(&copy, entries).await, 0);
            copy.remove().await;
        }
    }
    bookie.stop().await;
    folder.remove().await;
}
