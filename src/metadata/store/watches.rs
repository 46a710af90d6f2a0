//! Who is told what, in which order. Watches are not part of the replicated state: each node has its own.
//!
//! A watch misses nothing because it is registered and given its first state under the lock that also
//! applies commands: every change is either in that state or dispatched after.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::limits::{
    LIST_PAGE_MAX, WATCH_PENDING_BYTES_MAX, WATCH_PENDING_EVENTS_MAX, WATCHES_MAX, check_prefix,
};
use super::recent_events::RecentEvents;
use super::state::Store;
use crate::metadata::{MetadataError, Revision, WatchEvent};
use crate::{mutant, reached};

/// The watches of one node.
#[derive(Default)]
pub struct Watches {
    last: u64,
    watches: BTreeMap<u64, Watch>,
    /// The newest events, for watchers that come from another node.
    recent: RecentEvents,
    /// Filled only by the planted bug M-watch: watches that begin after the next change.
    late: Vec<Watch>,
}

struct Watch {
    prefix: String,
    queue: Arc<Queue>,
}

/// A watcher's end: what it has not taken yet. One taker.
pub struct WatchQueue {
    initial: VecDeque<Vec<WatchEvent>>,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<Pending>,
    changed: Notify,
}

#[derive(Default)]
struct Pending {
    events: Vec<WatchEvent>,
    bytes: usize,
    ended: bool,
    abandoned: bool,
}

impl Watches {
    /// No watches of a store that has changed before.
    pub fn behind(revision: Revision) -> Self {
        Self { recent: RecentEvents::behind(revision), ..Self::default() }
    }

    /// No watches of a new store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on with a watch that has told everything up to `after`; `None` if that is too long ago for the events
    /// kept here.
    pub fn resume(
        &mut self,
        prefix: &str,
        after: Revision,
        store: &Store,
    ) -> Result<Option<WatchQueue>, MetadataError> {
        let Some(missed) = self.recent.after(after, prefix, store.revision()) else {
            reached!("metadata: a watch could not be resumed");
            return Ok(None);
        };
        reached!("metadata: a watch was resumed");
        let mut queue = self.enter(prefix)?;
        queue.initial.extend((!missed.is_empty()).then_some(missed));
        Ok(Some(queue))
    }

    /// Begins a watch with the state of now.
    pub fn open(&mut self, prefix: &str, store: &Store) -> Result<WatchQueue, MetadataError> {
        let mut queue = self.enter(prefix)?;
        let pairs = store.list(prefix, None, usize::MAX);
        queue.initial = pairs
            .chunks(LIST_PAGE_MAX)
            .map(|page| {
                page.iter()
                    .map(|(key, value)| WatchEvent::Put { key: key.clone(), value: value.clone() })
                    .collect()
            })
            .collect();
        queue.initial.push_back(Vec::new());
        Ok(queue)
    }

    fn enter(&mut self, prefix: &str) -> Result<WatchQueue, MetadataError> {
        check_prefix(prefix)?;
        self.watches.retain(|_, watch| !watch.queue.lock().abandoned);
        if self.watches.len() >= WATCHES_MAX {
            return Err(MetadataError::Refused(format!("allowed {WATCHES_MAX} watches")));
        }
        let queue = Arc::new(Queue::default());
        let watch = Watch { prefix: prefix.to_owned(), queue: Arc::clone(&queue) };
        if mutant!("M-watch") {
            self.late.push(watch);
        } else {
            self.last += 1;
            self.watches.insert(self.last, watch);
        }
        Ok(WatchQueue { initial: VecDeque::new(), queue })
    }

    /// Tells the watchers of each event's key, in the order the watches began.
    pub fn dispatch(&mut self, events: &[WatchEvent]) {
        if events.is_empty() {
            return;
        }
        self.recent.keep(events);
        self.watches.retain(|_, watch| watch.tell(events));
        for watch in std::mem::take(&mut self.late) {
            self.last += 1;
            self.watches.insert(self.last, watch);
        }
    }

    /// Ends every watch, because the store became another one's that is at `revision`.
    pub fn begin_anew(&mut self, revision: Revision) {
        self.end();
        if !mutant!("M13") {
            self.recent = RecentEvents::behind(revision);
        }
    }

    /// Ends every watch.
    pub fn end(&mut self) {
        for watch in std::mem::take(&mut self.watches).into_values() {
            watch.queue.lock().ended = true;
            watch.queue.changed.notify_one();
        }
    }

    /// Watches open now, those whose watcher left included until the next event.
    pub fn len(&self) -> usize {
        self.watches.len()
    }

    /// True if nobody watches.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }
}

impl Watch {
    /// False if the watch is over.
    fn tell(&self, events: &[WatchEvent]) -> bool {
        let mut pending = self.queue.lock();
        if pending.abandoned {
            return false;
        }
        let mut told = false;
        for event in events {
            let (key, bytes) = match event {
                WatchEvent::Put { key, value } => (key, key.len() + value.value.len()),
                WatchEvent::Deleted { key, .. } => (key, key.len()),
            };
            if !key.starts_with(&self.prefix) {
                continue;
            }
            told = true;
            pending.bytes += bytes;
            pending.events.push(event.clone());
        }
        // Past its bound a watch ends as a whole: a gap in it would go unnoticed.
        let over = pending.events.len() > WATCH_PENDING_EVENTS_MAX
            || pending.bytes > WATCH_PENDING_BYTES_MAX;
        if over {
            reached!("metadata: a watcher was too slow");
            pending.events = Vec::new();
            pending.ended = true;
        }
        drop(pending);
        if told {
            self.queue.changed.notify_one();
        }
        !over
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl WatchQueue {
    /// The next events; `None` when the watch ended. Cancellation safe.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        if let Some(batch) = self.initial.pop_front() {
            return Some(batch);
        }
        loop {
            {
                let mut pending = self.queue.lock();
                if !pending.events.is_empty() {
                    pending.bytes = 0;
                    return Some(std::mem::take(&mut pending.events));
                }
                if pending.ended {
                    return None;
                }
            }
            self.queue.changed.notified().await;
        }
    }
}

impl Drop for WatchQueue {
    fn drop(&mut self) {
        self.queue.lock().abandoned = true;
    }
}
