//! Which run holds an entry. Derived data: the entry logs and the checkpoint file can make it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

use super::Run;
use super::run::{RUN_KEY, run_key};
use crate::bookie::record::u64_at;
use crate::domain::{EntryId, LedgerId};
use crate::reached;
use crate::runtime::{IndexChange, IndexError, OrderedIndex};

const NUMBER_KEY: &[u8] = b"m";
const PAGE: usize = 256;

/// A pair that is not a run must not be taken for none: its entries would be called absent.
fn decode(key: &Bytes, value: &Bytes) -> Result<Run, IndexError> {
    Run::decode(key, value).ok_or_else(|| {
        reached!("bookie: a pair of the index is not a run");
        IndexError { operation: "decode", detail: format!("{key:?} is not a run") }
    })
}

fn decode_all(pairs: &[(Bytes, Bytes)]) -> Result<Vec<Run>, IndexError> {
    pairs.iter().map(|(key, value)| decode(key, value)).collect()
}

/// What refers to one entry log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bookie) struct LogUse {
    /// Runs in the index.
    pub runs: u64,
    /// Bytes of their stretches; a trimmed run counts whole.
    pub bytes: u64,
}

/// The index. Changed by the keeper only.
pub(in crate::bookie) struct LocationIndex {
    index: OrderedIndex,
    uses: Mutex<BTreeMap<u64, LogUse>>,
}

impl LocationIndex {
    /// Wraps an open index. `scan` must follow.
    pub fn new(index: OrderedIndex) -> Self {
        Self { index, uses: Mutex::default() }
    }

    fn lock_uses(&self) -> MutexGuard<'_, BTreeMap<u64, LogUse>> {
        self.uses.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What refers to a log.
    pub fn log_use(&self, log: u64) -> LogUse {
        self.lock_uses().get(&log).copied().unwrap_or_default()
    }

    /// The number of the last checkpoint whose runs are all in; 0 for an empty index.
    pub fn number(&self) -> Result<u64, IndexError> {
        Ok(self.index.get(NUMBER_KEY)?.map_or(0, |value| u64_at(&value, 0)))
    }

    /// Says that all runs of a checkpoint are in.
    pub fn set_number(&self, number: u64) -> Result<(), IndexError> {
        let value = Bytes::copy_from_slice(&number.to_le_bytes());
        self.index.apply(vec![IndexChange::Put { key: Bytes::from_static(NUMBER_KEY), value }])
    }

    /// Makes all changes durable.
    pub async fn flush(&self) -> Result<(), IndexError> {
        self.index.flush().await
    }

    /// The run that holds an entry.
    pub fn find(&self, ledger: LedgerId, entry: EntryId) -> Result<Option<Run>, IndexError> {
        if entry < EntryId::FIRST {
            return Ok(None);
        }
        let found = self.index.at_or_below(&run_key(ledger, entry))?;
        // Below the first run lies the number.
        let found = found.filter(|(key, _)| key.first() == Some(&RUN_KEY));
        let run = found.map(|(key, value)| decode(&key, &value)).transpose()?;
        Ok(run.filter(|run| run.holds(ledger, entry)))
    }

    /// Up to a page of runs from (ledger, entry) on, of any ledger.
    pub fn page(&self, ledger: LedgerId, entry: EntryId) -> Result<Vec<Run>, IndexError> {
        let pairs = self.index.range(&run_key(ledger, entry), b"s", PAGE)?;
        decode_all(&pairs)
    }

    /// Counts what refers to each log, and drops runs of stretches that do not count: written by a flush
    /// whose checkpoint was never completed. The journal still has their entries.
    pub fn scan(&self, extents: &BTreeMap<u64, u64>) -> Result<(), IndexError> {
        self.lock_uses().clear();
        let mut from = (LedgerId(0), EntryId::FIRST);
        loop {
            let page = self.page(from.0, from.1)?;
            let Some(last) = page.last() else { return Ok(()) };
            from = (last.ledger, last.first.next());
            let mut changes = Vec::new();
            for run in &page {
                let end = run.offset + u64::from(run.length);
                if extents.get(&run.log).is_some_and(|extent| end <= *extent) {
                    self.count(run, true);
                } else {
                    reached!("bookie: run of an unfinished checkpoint dropped");
                    changes.push(IndexChange::Remove { key: run_key(run.ledger, run.first) });
                }
            }
            if !changes.is_empty() {
                self.index.apply(changes)?;
            }
        }
    }

    /// Puts runs in. Where they overlap older ones, the older are trimmed: the newest copy counts.
    pub fn insert(&self, runs: &[Run]) -> Result<(), IndexError> {
        let mut pending = Vec::new();
        for run in runs {
            let overlapping = self.overlapping(run)?;
            let (key, value) = run.encode();
            let put = IndexChange::Put { key, value };
            self.count(run, true);
            if overlapping.is_empty() {
                pending.push(put);
            } else {
                reached!("bookie: older run trimmed");
                // The next run may overlap what is left of these: it must find them.
                pending.extend(self.trim(overlapping, run, put));
                self.index.apply(std::mem::take(&mut pending))?;
            }
            if pending.len() >= PAGE {
                self.index.apply(std::mem::take(&mut pending))?;
            }
        }
        self.index.apply(pending)
    }

    fn overlapping(&self, new: &Run) -> Result<Vec<Run>, IndexError> {
        let mut overlapping = Vec::new();
        overlapping.extend(self.find(new.ledger, new.first)?);
        let mut from = new.first.next();
        let to = run_key(new.ledger, new.end);
        while from < new.end {
            let pairs = self.index.range(&run_key(new.ledger, from), &to, PAGE)?;
            let full = pairs.len() == PAGE;
            overlapping.extend(decode_all(&pairs)?);
            match overlapping.last() {
                Some(last) if full => from = last.first.next(),
                _ => break,
            }
        }
        Ok(overlapping)
    }

    /// The changes that put `new` over older runs, in an order in which after every single one each entry
    /// is still found, in its old place or in its new one.
    fn trim(&self, overlapping: Vec<Run>, new: &Run, put: IndexChange) -> Vec<IndexChange> {
        let (mut rights, mut lefts, mut removals) = (Vec::new(), Vec::new(), Vec::new());
        for old in overlapping {
            self.count(&old, false);
            if old.end > new.end {
                let right = Run { first: new.end, ..old.clone() };
                self.count(&right, true);
                let (key, value) = right.encode();
                rights.push(IndexChange::Put { key, value });
            }
            if old.first > new.first {
                removals.push(IndexChange::Remove { key: run_key(old.ledger, old.first) });
            } else if old.first < new.first {
                let left = Run { end: new.first, ..old };
                self.count(&left, true);
                let (key, value) = left.encode();
                lefts.push(IndexChange::Put { key, value });
            }
        }
        rights.push(put);
        rights.extend(lefts);
        rights.extend(removals);
        rights
    }

    /// Drops all runs of a ledger.
    pub fn remove_ledger(&self, ledger: LedgerId) -> Result<(), IndexError> {
        let to = LedgerId(ledger.0.saturating_add(1));
        loop {
            let from = run_key(ledger, EntryId::FIRST);
            let pairs = self.index.range(&from, &run_key(to, EntryId::FIRST), PAGE)?;
            if pairs.is_empty() {
                return Ok(());
            }
            let mut changes = Vec::new();
            for (key, value) in pairs {
                self.count(&decode(&key, &value)?, false);
                changes.push(IndexChange::Remove { key });
            }
            self.index.apply(changes)?;
        }
    }

    fn count(&self, run: &Run, added: bool) {
        let mut uses = self.lock_uses();
        let used = uses.entry(run.log).or_default();
        let bytes = u64::from(run.length);
        if added {
            used.runs += 1;
            used.bytes += bytes;
        } else {
            used.runs = used.runs.saturating_sub(1);
            used.bytes = used.bytes.saturating_sub(bytes);
        }
    }
}
