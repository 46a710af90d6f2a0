//! Ordered key-value indexes: sled in production, an ordered map with the same crash rules in simulation.
//!
//! # What a runtime promises
//! - Changes are seen by reads at once, and are durable only after the next successful `flush`. A crash
//!   before that loses **all or any prefix or none** of the changes since the last flush; it never invents,
//!   reorders or mixes them beyond that, or the index fails to open.
//! - What is read is what was put, or an error: bytes that flipped at rest are never returned. An index damaged
//!   while closed may open in the state of an earlier flush, or in parts of several: its owner keeps in it a number
//!   of the flush and a sum of all there is, and compares.
//! - An index that fails to open is destroyed and rebuilt by its owner: nothing may be only there.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChange {
    /// Sets a key.
    Put {
        /// The key; order is by bytes.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// Removes a key, if present.
    Remove {
        /// The key.
        key: Bytes,
    },
}

/// The index could not be opened, read or flushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("index {operation}: {detail}")]
pub struct IndexError {
    /// What was tried.
    pub operation: &'static str,
    /// The engine's words.
    pub detail: String,
}

/// What a runtime must provide for an open index. Calls other than `flush` are short and synchronous.
#[async_trait]
pub trait IndexDriver: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError>;
    /// The last pair whose key is at or below `key`.
    fn at_or_below(&self, key: &[u8]) -> Result<Option<(Bytes, Bytes)>, IndexError>;
    /// Up to `limit` pairs with `from <= key < to`, in key order.
    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, IndexError>;
    /// Applies changes in order.
    fn apply(&self, changes: Vec<IndexChange>) -> Result<(), IndexError>;
    /// Makes all applied changes durable.
    async fn flush(&self) -> Result<(), IndexError>;
}

/// An open index.
pub type OrderedIndex = Arc<dyn IndexDriver>;

/// Opens and destroys indexes.
#[async_trait]
pub trait IndexFactoryDriver: Send + Sync {
    /// Opens the index in this folder, creating it if missing.
    async fn open(&self, path: &Path) -> Result<OrderedIndex, IndexError>;
    /// Removes the index in this folder, if any.
    async fn destroy(&self, path: &Path) -> Result<(), IndexError>;
}

/// Handle to a node's indexes.
pub type OrderedIndexFactory = Arc<dyn IndexFactoryDriver>;
