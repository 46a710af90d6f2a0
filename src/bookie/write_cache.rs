//! Entries that are in the journal and not yet in the entry log, in two halves: one takes new entries, the
//! other is being flushed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::journal::{JournalPosition, JournalPositions};
use crate::domain::{Entry, EntryId, LedgerId};
use crate::{invariant, reached};

/// Memory of an entry beside its payload.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Entries by ledger, each ledger's in id order.
#[derive(Default)]
pub(super) struct Half {
    /// The entries.
    pub ledgers: BTreeMap<LedgerId, Vec<Entry>>,
    bytes: usize,
}

impl Half {
    /// Takes entries in. Ascending ids, the ordinary case, are appended.
    pub fn insert(&mut self, ledger: LedgerId, entries: &[Entry]) {
        let kept = self.ledgers.entry(ledger).or_default();
        for entry in entries {
            self.bytes += entry.payload.len() + ENTRY_OVERHEAD_BYTES;
            if kept.last().is_none_or(|last| last.entry < entry.entry) {
                kept.push(entry.clone());
                continue;
            }
            match kept.binary_search_by_key(&entry.entry, |kept| kept.entry) {
                Ok(at) => {
                    // The protocol makes all copies of an entry equal; only the last add confirmed of a
                    // recovery add may differ.
                    invariant!(
                        kept[at].payload == entry.payload && kept[at].length == entry.length,
                        "entry {ledger}:{} is added again with other bytes",
                        entry.entry
                    );
                    reached!("bookie: entry added again");
                    kept[at] = entry.clone();
                }
                Err(at) => kept.insert(at, entry.clone()),
            }
        }
    }

    /// Forgets a deleted ledger.
    pub fn forget(&mut self, ledger: LedgerId) {
        if let Some(entries) = self.ledgers.remove(&ledger) {
            let payloads: usize = entries.iter().map(|entry| entry.payload.len()).sum();
            let bytes = payloads + entries.len() * ENTRY_OVERHEAD_BYTES;
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }

    /// True without any entries.
    pub fn is_empty(&self) -> bool {
        self.ledgers.is_empty()
    }

    /// Memory taken, near enough.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn first_after(&self, ledger: LedgerId, entry: EntryId) -> Option<EntryId> {
        let kept = self.ledgers.get(&ledger)?;
        let at = kept.partition_point(|kept| kept.entry <= entry);
        kept.get(at).map(|kept| kept.entry)
    }

    /// Appends the contiguous run from `first` to before `end` to `out`, within the limits.
    fn run(
        &self,
        ledger: LedgerId,
        first: EntryId,
        end: Option<EntryId>,
        budget: &mut ReadBudget,
        out: &mut Vec<Entry>,
    ) {
        let Some(kept) = self.ledgers.get(&ledger) else { return };
        let Ok(at) = kept.binary_search_by_key(&first, |kept| kept.entry) else { return };
        let mut wanted = first;
        for entry in &kept[at..] {
            let ended = entry.entry != wanted || end.is_some_and(|end| entry.entry >= end);
            if ended || !budget.take(entry.payload.len()) {
                return;
            }
            out.push(entry.clone());
            wanted = wanted.next();
        }
    }
}

/// What a read may still return. The first entry always passes.
pub(super) struct ReadBudget {
    /// Entries left.
    pub entries: u32,
    /// Payload bytes left.
    pub bytes: u64,
    started: bool,
}

impl ReadBudget {
    /// At most this much.
    pub fn new(entries: u32, bytes: u32) -> Self {
        Self { entries: entries.max(1), bytes: u64::from(bytes), started: false }
    }

    /// Takes one entry of this size, if it fits.
    pub fn take(&mut self, payload: usize) -> bool {
        let payload = payload as u64;
        if self.entries == 0 || (self.started && payload > self.bytes) {
            return false;
        }
        self.started = true;
        self.entries -= 1;
        self.bytes = self.bytes.saturating_sub(payload);
        true
    }

    /// Nothing more fits.
    pub const fn is_spent(&self) -> bool {
        self.entries == 0 || (self.started && self.bytes == 0)
    }
}

/// A half on its way to the entry log, with the places that may become the journals' marks once it is there.
pub(super) struct FrozenHalf {
    /// The entries.
    pub half: Half,
    /// Everything before them is in this half or already flushed.
    pub marks: JournalPositions,
}

/// Both halves, under one lock.
pub(super) struct Halves {
    active: Half,
    frozen: Option<Arc<FrozenHalf>>,
    synced: JournalPositions,
    limit: usize,
}

impl Halves {
    /// Takes synced entries in.
    pub fn insert(&mut self, ledger: LedgerId, entries: &[Entry]) {
        self.active.insert(ledger, entries);
    }

    /// Everything before `position` of this journal is inserted. True if it is time to flush.
    pub fn set_synced(&mut self, journal: usize, position: JournalPosition) -> bool {
        self.synced.set(journal, position);
        self.active.bytes >= self.limit / 4 * 3
    }

    /// Everything before these places is synced and inserted.
    pub const fn synced(&self) -> &JournalPositions {
        &self.synced
    }

    /// The half being flushed; if there is none, freezes the active one first. The marks are of one moment,
    /// captured under the same lock that insertion holds, so nothing before them can be outside the frozen half.
    pub fn freeze(&mut self) -> Arc<FrozenHalf> {
        if let Some(frozen) = &self.frozen {
            reached!("bookie: a failed flush is tried again first");
            return Arc::clone(frozen);
        }
        let half = std::mem::take(&mut self.active);
        let frozen = Arc::new(FrozenHalf { half, marks: self.synced.clone() });
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }

    /// Planted bug S29: the failed half goes behind newer entries.
    pub fn trade_places(&mut self) {
        if let Some(frozen) = self.frozen.take().and_then(Arc::into_inner) {
            let half = std::mem::replace(&mut self.active, frozen.half);
            self.frozen = Some(Arc::new(FrozenHalf { half, marks: self.synced.clone() }));
        }
    }

    /// Appends the contiguous run from `first`, going from half to half. Returns the first entry not found,
    /// and the next one after it that is here: the log's copy of that one, if any, is older.
    pub fn run(
        &self,
        ledger: LedgerId,
        first: EntryId,
        budget: &mut ReadBudget,
        out: &mut Vec<Entry>,
    ) -> (EntryId, EntryId) {
        loop {
            let before = out.len();
            self.active.run(ledger, next_of(first, out), None, budget, out);
            if let Some(frozen) = &self.frozen {
                // What is in the active half, too, is newer there.
                let next = next_of(first, out);
                let end = self.active.first_after(ledger, next);
                frozen.half.run(ledger, next, end, budget, out);
            }
            if out.len() == before {
                let next = next_of(first, out);
                let frozen = self.frozen.as_ref().map(|frozen| &frozen.half);
                let later = [Some(&self.active), frozen]
                    .into_iter()
                    .flatten()
                    .filter_map(|half| half.first_after(ledger, next))
                    .min();
                return (next, later.unwrap_or(EntryId(i64::MAX)));
            }
        }
    }

    /// Forgets a deleted ledger.
    pub fn forget(&mut self, ledger: LedgerId) {
        self.active.forget(ledger);
    }

    /// Entries of the ledger are waiting for a flush.
    pub fn holds(&self, ledger: LedgerId) -> bool {
        let frozen = self.frozen.as_ref().is_some_and(|f| f.half.ledgers.contains_key(&ledger));
        frozen || self.active.ledgers.contains_key(&ledger)
    }

    /// Nothing is waiting for a flush.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.frozen.is_none()
    }
}

fn next_of(first: EntryId, out: &[Entry]) -> EntryId {
    out.last().map_or(first, |last| last.entry.next())
}

/// The cache with its wake-ups.
pub(super) struct WriteCache {
    halves: Mutex<Halves>,
    limit: usize,
    /// Wakes the keeper.
    pub flush_wanted: Notify,
    /// Wake the journals' writers, each its own.
    room: Vec<Notify>,
}

impl WriteCache {
    /// An empty cache behind `synced`.
    pub fn new(limit: usize, synced: JournalPositions) -> Self {
        let room = synced.iter().map(|_| Notify::new()).collect();
        let halves = Halves { active: Half::default(), frozen: None, synced, limit };
        Self { halves: Mutex::new(halves), limit, flush_wanted: Notify::new(), room }
    }

    /// Puts in what replay found.
    pub fn fill(&mut self, half: Half) {
        self.lock().active = half;
    }

    /// Locks both halves. Never held across a suspension point.
    pub fn lock(&self) -> MutexGuard<'_, Halves> {
        self.halves.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How full the active half is, of the level at which it is flushed; above 1 beyond it.
    pub fn pressure(&self) -> f64 {
        self.lock().active.bytes as f64 / (self.limit / 4 * 3).max(1) as f64
    }

    /// The active half can take more.
    pub fn has_room(&self) -> bool {
        self.lock().active.bytes < self.limit
    }

    /// Waits until the active half can take more. One waiter a journal: its writer.
    pub async fn wait_for_room(&self, journal: usize) {
        while !self.has_room() {
            self.flush_wanted.notify_one();
            self.room[journal].notified().await;
        }
    }

    /// Every writer looks again: what one leaves of the room is the others'.
    fn tell_room(&self) {
        for writer in &self.room {
            writer.notify_one();
        }
    }

    /// Starts a flush; see [`Halves::freeze`].
    pub fn freeze(&self) -> Arc<FrozenHalf> {
        let frozen = self.lock().freeze();
        self.tell_room();
        frozen
    }

    /// The frozen half is in the entry log and in the index.
    pub fn flushed(&self) {
        let frozen = self.lock().frozen.take();
        // Freed outside the lock: it can be large.
        drop(frozen);
        self.tell_room();
    }
}
