//! sled as the production index, under four rules learned by measuring it: never flush by itself; bounded
//! scans are ours (its `range` reads on to the end of the tree); memory grows with keys (about 95 bytes
//! each), so callers keep few; what fails to open is rebuilt by its owner.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;

use crate::runtime::{IndexChange, IndexDriver, IndexError, IndexFactoryDriver, OrderedIndex};

type Database = sled::Db<1024>;

/// Cache asked of sled. It does not bound its memory; kept small all the same.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct SledIndexes;

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

#[async_trait]
impl IndexFactoryDriver for SledIndexes {
    async fn open(&self, path: &Path) -> Result<OrderedIndex, IndexError> {
        let path = path.to_owned();
        let database = blocking("open", move || {
            sled::Config::new()
                .path(path)
                .cache_capacity_bytes(CACHE_BYTES)
                .flush_every_ms(None)
                .open::<1024>()
        })
        .await?;
        Ok(Arc::new(SledIndex { database: Mutex::new(database) }))
    }

    async fn destroy(&self, path: &Path) -> Result<(), IndexError> {
        let path = path.to_owned();
        blocking("destroy", move || match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            result => result,
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
