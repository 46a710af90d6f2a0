//! A watch as a store begins it for others: from the state of now, or behind what the watcher has seen elsewhere.

use async_trait::async_trait;

use super::store::{Store, WatchQueue, Watches};
use super::{MetadataError, Revision, WatchEvent, WatchStream};

/// A watch that has begun.
pub struct StoreWatch {
    /// Its events.
    pub stream: Box<dyn WatchStream>,
    /// It goes on behind what the watcher has seen; otherwise it begins with the state.
    pub is_resumed: bool,
    /// The store's revision when it began: the state is that of this revision.
    pub began_at: Revision,
}

impl StoreWatch {
    /// Begins a watch of a prefix.
    pub(super) fn begin(
        watches: &mut Watches,
        store: &Store,
        prefix: &str,
        after: Option<Revision>,
    ) -> Result<Self, MetadataError> {
        let resumed = match after {
            Some(after) => watches.resume(prefix, after, store)?,
            None => None,
        };
        let is_resumed = resumed.is_some();
        let queue = match resumed {
            Some(queue) => queue,
            None => watches.open(prefix, store)?,
        };
        Ok(Self { stream: Box::new(queue), is_resumed, began_at: store.revision() })
    }
}

#[async_trait]
impl WatchStream for WatchQueue {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        Self::next(self).await
    }
}
