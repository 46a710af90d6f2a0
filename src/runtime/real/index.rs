//! sled as the production index, under four rules learned by measuring it: never flush by itself; bounded
//! scans are ours (its `range` reads on to the end of the tree); memory grows with keys (about 95 bytes
//! each), so callers keep few; what fails to open is rebuilt by its owner.
//!
//! Damage in sled's metadata can make it panic (which ends a node) or look for a key for ever. So an index is read
//! through before it is given out, and a file beside it says that this is being done: where the file is found, the
//! start before did not get through, and the index does not open. A walk that stands still is given up; an opening that does is
//! waited for, since its thread may still write.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::runtime::{IndexChange, IndexDriver, IndexError, IndexFactoryDriver, OrderedIndex};

type Database = sled::Db<1024>;

/// Cache asked of sled. It does not bound its memory; kept small all the same.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How long opening may stand still.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Opens sled's databases.
pub(super) struct SledIndexes {
    patience: Duration,
}

impl SledIndexes {
    /// Gives an index up that was not read on for so long. One given up for slowness is made again: never wrong.
    pub(super) const fn new(patience: Duration) -> Self {
        Self { patience }
    }
}

/// sled's handle is `Send` but not `Sync`: calls are short, so one lock serves; a flush works on a clone.
struct SledIndex {
    database: Mutex<Database>,
}

impl SledIndex {
    fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn fail(operation: &'static str) -> impl Fn(std::io::Error) -> IndexError {
    move |error| IndexError { operation, detail: error.to_string() }
}

/// Runs sled's blocking call on the pool; a panic inside sled is an error of the index, not of the node.
async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, IndexError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(fail(operation)),
        Err(panic) => Err(IndexError { operation, detail: panic.to_string() }),
    }
}

/// The file that is there while an index is opened and read through.
fn opening_mark(path: &Path) -> PathBuf {
    path.with_extension("opening")
}

fn there_or_not(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Opens on a thread of its own, which is left alone if it stands still: nothing can end it, and the executor's
/// pool would wait for it at the end.
async fn open_in_time(path: PathBuf, patience: Duration) -> Result<Box<Database>, IndexError> {
    let progress = Arc::new(AtomicU64::new(0));
    let (sender, mut opened) = tokio::sync::oneshot::channel();
    let steps = Arc::clone(&progress);
    let mark = opening_mark(&path);
    let opening = move || {
        if let Err(late) = sender.send(open_whole(&path, &steps)) {
            // Given up, and another one is in its place: this one must write nothing at its end.
            std::mem::forget(late);
        }
    };
    std::thread::Builder::new()
        .name("index-open".to_owned())
        .spawn(opening)
        .map_err(fail("open"))?;
    let mut steps_before = 0;
    loop {
        match tokio::time::timeout(patience, &mut opened).await {
            Ok(Ok(result)) => {
                let database = result.map_err(fail("open"))?;
                blocking("open", move || there_or_not(std::fs::remove_file(mark))).await?;
                return Ok(database);
            }
            Ok(Err(_)) => {
                return Err(IndexError { operation: "open", detail: "it panicked".to_owned() });
            }
            Err(_) => {
                let steps = progress.load(Ordering::Relaxed);
                if steps == 0 {
                    // Its thread may still make files: another index in its place could be damaged by it. Whoever ends
                    // this process lets the next start find the mark, and make the index anew.
                    tracing::warn!("an index is being opened for long");
                } else if steps == steps_before {
                    tracing::error!(
                        "an index stands still; its thread works until the process ends"
                    );
                    return Err(IndexError {
                        operation: "open",
                        detail: "it stands still".to_owned(),
                    });
                }
                steps_before = steps;
            }
        }
    }
}

/// Opens, and reads every pair: what is damaged shows now, not to whoever looks for a key later.
fn open_whole(path: &Path, steps: &AtomicU64) -> std::io::Result<Box<Database>> {
    let mark = opening_mark(path);
    if mark.exists() {
        return Err(std::io::Error::other("the last start did not get through it"));
    }
    std::fs::File::create(&mark)?;
    let database: Database = sled::Config::new()
        .path(path)
        .cache_capacity_bytes(CACHE_BYTES)
        .flush_every_ms(None)
        .open()?;
    steps.fetch_add(1, Ordering::Relaxed);
    let mut last = None;
    for pair in database.iter() {
        let (key, _) = pair?;
        if last.is_some_and(|last| last >= key) {
            return Err(std::io::Error::other("keys do not rise"));
        }
        last = Some(key);
        steps.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Box::new(database))
}

#[async_trait]
impl IndexFactoryDriver for SledIndexes {
    async fn open(&self, path: &Path) -> Result<OrderedIndex, IndexError> {
        let database = open_in_time(path.to_owned(), self.patience).await?;
        Ok(Arc::new(SledIndex { database: Mutex::new(*database) }))
    }

    async fn destroy(&self, path: &Path) -> Result<(), IndexError> {
        let path = path.to_owned();
        blocking("destroy", move || {
            there_or_not(std::fs::remove_dir_all(&path))?;
            there_or_not(std::fs::remove_file(opening_mark(&path)))
        })
        .await
    }
}

#[async_trait]
impl IndexDriver for SledIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        let value = self.database().get(key).map_err(fail("get"))?;
        Ok(value.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn at_or_below(&self, key: &[u8]) -> Result<Option<(Bytes, Bytes)>, IndexError> {
        if let Some(value) = self.get(key)? {
            return Ok(Some((Bytes::copy_from_slice(key), value)));
        }
        let pair = self.database().get_lt(key).map_err(fail("get below"))?;
        Ok(pair.map(|(key, value)| (Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value))))
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, IndexError> {
        let mut pairs = Vec::new();
        if from >= to {
            return Ok(pairs);
        }
        // Open-ended on purpose: with an upper bound sled reads every later leaf after the last hit.
        for pair in self.database().range(from..) {
            let (key, value) = pair.map_err(fail("range"))?;
            if &key[..] >= to || pairs.len() >= limit {
                break;
            }
            pairs.push((Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value)));
        }
        Ok(pairs)
    }

    fn apply(&self, changes: Vec<IndexChange>) -> Result<(), IndexError> {
        let mut batch = sled::Batch::default();
        for change in changes {
            match change {
                IndexChange::Put { key, value } => batch.insert(&key[..], &value[..]),
                IndexChange::Remove { key } => batch.remove(&key[..]),
            }
        }
        self.database().apply_batch(batch).map_err(fail("apply"))
    }

    async fn flush(&self) -> Result<(), IndexError> {
        let database = Box::new(self.database().clone());
        blocking("flush", move || database.flush().map(|_| ())).await
    }
}
