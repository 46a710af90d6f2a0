//! The newest changes, kept for watchers that lost the node they watched at: whoever has seen everything up to a
//! revision that is still covered goes on without reading the state again.

use std::collections::VecDeque;

use super::limits::{RECENT_BYTES_MAX, RECENT_EVENTS_MAX};
use crate::metadata::{Revision, WatchEvent};
use crate::mutant;

/// The newest changes, in order.
#[derive(Default)]
pub(super) struct RecentEvents {
    events: VecDeque<WatchEvent>,
    bytes: usize,
    /// Every change behind this revision is here.
    covered_from: Revision,
}

/// Bytes of key and value.
fn cost(event: &WatchEvent) -> usize {
    match event {
        WatchEvent::Put { key, value } => key.len() + value.value.len(),
        WatchEvent::Deleted { key, .. } => key.len(),
    }
}

impl RecentEvents {
    /// None, of a store that has changed before.
    pub(super) fn behind(revision: Revision) -> Self {
        Self { covered_from: revision, ..Self::default() }
    }

    /// Keeps the next changes and forgets the oldest ones beyond the bounds.
    pub(super) fn keep(&mut self, events: &[WatchEvent]) {
        for event in events {
            self.bytes += cost(event);
            self.events.push_back(event.clone());
        }
        while self.events.len() > RECENT_EVENTS_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= cost(&oldest);
            self.covered_from = oldest.revision();
        }
    }

    /// The changes under a prefix behind `after`, if all of them are here. A store at an older revision than
    /// `after` is not the one the watcher has seen.
    pub(super) fn after(
        &self,
        after: Revision,
        prefix: &str,
        newest: Revision,
    ) -> Option<Vec<WatchEvent>> {
        if after < self.covered_from || after > newest {
            return None;
        }
        if mutant!("M-resume") {
            return Some(Vec::new());
        }
        let first = self.events.partition_point(|event| event.revision() <= after);
        let missed = self.events.iter().skip(first);
        Some(missed.filter(|event| event.key().starts_with(prefix)).cloned().collect())
    }
}
