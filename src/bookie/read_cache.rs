//! Entries read ahead for readers that go through a ledger in sequence.
//!
//! A read that begins where one of the same ledger ended takes more of the run from the disk than was asked for,
//! and the rest is kept. It is kept by its place in an entry log. A place is written once and the id of a log is
//! never used again, so what is kept of a place stays true; which place counts the index is asked before every
//! look. An entry stored again, a compaction or a removal therefore needs to clear nothing for the answers to be
//! right, and what is cleared is cleared for the memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::record::{RecordKind, split_any_record};
use super::storage::Run;
use crate::domain::{Entry, EntryId, LedgerId};
use crate::{mutant, reached};

/// Most that one disk read takes for a reader in sequence: a whole run.
const READ_AHEAD_BYTES: u64 = 1024 * 1024;
/// One chunk takes at most this part of the cache.
const CHUNKS_LEAST: u64 = 4;
/// Ends of reads that are remembered. With more readers the ones longest silent read as if for the first time.
const READERS_MAX: usize = 1024;
/// Memory of an entry beside its payload.
const ENTRY_OVERHEAD_BYTES: usize = 96;
/// Memory of a chunk beside its entries.
const CHUNK_OVERHEAD_BYTES: usize = 256;

/// Consecutive entries of one stretch of an entry log, each of them verified.
pub(super) struct Chunk {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Chunk {
    /// The entries from `first` on.
    pub fn from(&self, first: EntryId) -> &[Entry] {
        let at = self.entries.partition_point(|entry| entry.entry < first);
        &self.entries[at..]
    }

    fn holds(&self, entry: EntryId) -> bool {
        self.entries.first().is_some_and(|first| first.entry <= entry)
            && self.entries.last().is_some_and(|last| entry <= last.entry)
    }
}

/// Where a chunk is from: ledger, log, offset of the stretch, first entry.
type Place = (LedgerId, u64, u64, EntryId);

/// Values by key, the longest unused first to go.
struct Lru<K, V> {
    values: BTreeMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    uses: u64,
}

impl<K: Ord + Copy, V> Lru<K, V> {
    const fn new() -> Self {
        Self { values: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    fn insert(&mut self, key: K, value: V) {
        self.uses += 1;
        self.order.insert(self.uses, key);
        self.values.insert(key, (self.uses, value));
    }

    fn remove(&mut self, key: K) -> Option<V> {
        let (used, value) = self.values.remove(&key)?;
        self.order.remove(&used);
        Some(value)
    }

    fn remove_oldest(&mut self) -> Option<V> {
        let key = *self.order.first_key_value()?.1;
        self.remove(key)
    }
}

struct Inner {
    chunks: Lru<Place, Arc<Chunk>>,
    bytes: usize,
    /// Where reads ended: a read that begins at one of these is in sequence.
    ends: Lru<(LedgerId, EntryId), ()>,
}

impl Inner {
    fn remove(&mut self, place: Place) {
        if let Some(chunk) = self.chunks.remove(place) {
            self.bytes -= chunk.bytes;
        }
    }
}

/// The cache. At most `bytes_max` bytes of chunks, the one longest unused going first.
pub(super) struct ReadCache {
    inner: Mutex<Inner>,
    bytes_max: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ReadCache {
    /// An empty cache; with 0 bytes it stays empty and nothing is read ahead.
    pub const fn new(bytes_max: usize) -> Self {
        let inner = Inner { chunks: Lru::new(), bytes: 0, ends: Lru::new() };
        let (hits, misses) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { inner: Mutex::new(inner), bytes_max, hits, misses }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Parts of reads answered from here, and parts that had to be read from a disk. Without a cache both stay 0.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Memory taken, near enough.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// How much to read from the disk at least for a read that begins here; 0 if it is not in sequence.
    pub fn begins(&self, ledger: LedgerId, first: EntryId) -> u64 {
        if self.bytes_max == 0 || self.lock().ends.remove((ledger, first)).is_none() {
            return 0;
        }
        READ_AHEAD_BYTES.min(self.bytes_max as u64 / CHUNKS_LEAST)
    }

    /// A read ended before this entry.
    pub fn ended(&self, ledger: LedgerId, next: EntryId) {
        if self.bytes_max == 0 {
            return;
        }
        let ends = &mut self.lock().ends;
        ends.remove((ledger, next));
        ends.insert((ledger, next), ());
        if ends.values.len() > READERS_MAX {
            ends.remove_oldest();
        }
    }

    /// What is kept of the run's stretch from this entry on.
    pub fn find(&self, run: &Run, entry: EntryId) -> Option<Arc<Chunk>> {
        if self.bytes_max == 0 {
            return None;
        }
        let mut inner = self.lock();
        let from = (run.ledger, run.log, run.offset, EntryId::FIRST);
        let to = (run.ledger, run.log, run.offset, entry);
        let (from, to) = if mutant!("S-ahead") {
            ((run.ledger, 0, 0, EntryId::FIRST), (run.ledger, u64::MAX, u64::MAX, entry))
        } else {
            (from, to)
        };
        let mut kept = inner.chunks.values.range(from..=to).rev().take(CHUNKS_LEAST as usize);
        let found = kept.find(|(_, (_, chunk))| chunk.holds(entry)).map(|(place, _)| *place);
        let Some((place, chunk)) = found.and_then(|at| Some((at, inner.chunks.remove(at)?))) else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        inner.chunks.insert(place, Arc::clone(&chunk));
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(chunk)
    }

    /// Keeps the sound entries that `records`, the rest of what was read of a run, begins with. The first of
    /// them is `first`.
    pub fn fill(&self, run: &Run, first: EntryId, records: &[u8]) {
        // Copied, so that the entries given to the reader do not stay in memory with those kept.
        let records = Bytes::copy_from_slice(records);
        let mut entries = Vec::new();
        let (mut at, mut next, mut bytes) = (0, first, CHUNK_OVERHEAD_BYTES + records.len());
        while at < records.len() && next < run.end {
            let sound = split_any_record(&records, at)
                .filter(|(header, _)| header.kind == RecordKind::Entry)
                .map(|(header, payload)| (header.total_length(), header.into_entry(payload)))
                .filter(|(_, entry)| entry.verify(run.ledger, next).is_ok());
            let Some((length, entry)) = sound else {
                // The reader comes to it with a read of its own, and that one tells of it.
                reached!("bookie: damage met while reading ahead");
                break;
            };
            at += length;
            bytes += ENTRY_OVERHEAD_BYTES;
            next = next.next();
            entries.push(entry);
        }
        if entries.is_empty() || bytes > self.bytes_max {
            return;
        }
        reached!("bookie: entries read ahead");
        let place = (run.ledger, run.log, run.offset, first);
        let mut inner = self.lock();
        inner.remove(place);
        inner.bytes += bytes;
        inner.chunks.insert(place, Arc::new(Chunk { entries, bytes }));
        while inner.bytes > self.bytes_max {
            let Some(oldest) = inner.chunks.remove_oldest() else { break };
            inner.bytes -= oldest.bytes;
        }
    }

    /// Lets go of what is kept of a ledger: it is not here any more, or what is kept is not sound.
    pub fn forget_ledger(&self, ledger: LedgerId) {
        self.forget(|(of, ..)| *of == ledger);
    }

    /// Lets go of what is kept of logs that are about to be removed.
    pub fn forget_logs(&self, logs: &[u64]) {
        self.forget(|(_, log, ..)| logs.contains(log));
    }

    fn forget(&self, goes: impl Fn(&Place) -> bool) {
        let mut inner = self.lock();
        let places: Vec<Place> =
            inner.chunks.values.keys().filter(|at| goes(at)).copied().collect();
        for place in places {
            inner.remove(place);
        }
    }
}
