//! Which run holds an entry. Derived data: the entry logs and the checkpoint file can make it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;

use super::Run;
use super::run::{RUN_KEY, run_key};
use crate::bookie::record::u64_at;
use crate::domain::{EntryId, LedgerId};
use crate::runtime::{IndexChange, IndexError, OrderedIndex};
use crate::{mutant, reached};

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

/// The runs of an index, to compare it with what it had: as many others have another sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    runs: u64,
    /// Of the checksums of all pairs, modulo 2^64.
    sum: u64,
}

impl Tally {
    fn add(&mut self, run: &Run) {
        self.runs += 1;
        self.sum = self.sum.wrapping_add(Self::checksum(run));
    }

    fn remove(&mut self, run: &Run) {
        self.runs = self.runs.saturating_sub(1);
        self.sum = self.sum.wrapping_sub(Self::checksum(run));
    }

    fn checksum(run: &Run) -> u64 {
        let (key, value) = run.encode();
        u64::from(crc32c::crc32c_append(crc32c::crc32c(&key), &value))
    }
}

/// What is known of the index without looking into it.
#[derive(Default)]
struct Known {
    uses: BTreeMap<u64, LogUse>,
    tally: Tally,
}

/// The index. Changed by the keeper only.
pub(in crate::bookie) struct LocationIndex {
    index: OrderedIndex,
    known: Mutex<Known>,
}

impl LocationIndex {
    /// Wraps an open index. `scan` must follow.
    pub fn new(index: OrderedIndex) -> Self {
        Self { index, known: Mutex::default() }
    }

    fn lock_known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What refers to a log.
    pub fn log_use(&self, log: u64) -> LogUse {
        self.lock_known().uses.get(&log).copied().unwrap_or_default()
    }

    /// The number, and what runs there are; nothing is known of that in an index from before they were counted.
    fn own_words(&self) -> Result<(u64, Option<Tally>), IndexError> {
        let Some(value) = self.index.get(NUMBER_KEY)? else { return Ok((0, None)) };
        let tally = match value.len() {
            8 => None,
            24 => Some(Tally { runs: u64_at(&value, 8), sum: u64_at(&value, 16) }),
            _ => {
                let detail = format!("{value:?} is not a number");
                return Err(IndexError { operation: "decode", detail });
            }
        };
        Ok((u64_at(&value, 0), tally))
    }

    /// The number of the last checkpoint whose runs are all in; 0 for an empty index.
    pub fn number(&self) -> Result<u64, IndexError> {
        Ok(self.own_words()?.0)
    }

    /// Says that all runs of a checkpoint are in, and which: sled uses the places of pages again, so an index that
    /// lost the newest of its metadata can have the number in an older tree that lacks runs.
    pub fn set_number(&self, number: u64) -> Result<(), IndexError> {
        let Tally { runs, sum } = self.lock_known().tally;
        let value = [number, runs, sum].map(u64::to_le_bytes).concat().into();
        self.index.apply(vec![IndexChange::Put { key: Bytes::from_static(NUMBER_KEY), value }])
    }

    /// Says which runs there are now. Whoever changes runs says so, or calls `set_number`, before anything can
    /// make the changes durable: a flush, or sled's own when it is closed.
    pub fn note_runs(&self) -> Result<(), IndexError> {
        self.set_number(self.number()?)
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
    /// whose checkpoint was never completed. The journal still has their entries. An error if they are
    /// not the runs that the index says it has.
    pub fn scan(&self, extents: &BTreeMap<u64, u64>) -> Result<(), IndexError> {
        *self.lock_known() = Known::default();
        let (_, promised) = self.own_words()?;
        let (mut found, mut dropped) = (Tally::default(), false);
        let mut from = (LedgerId(0), EntryId::FIRST);
        loop {
            let page = self.page(from.0, from.1)?;
            let Some(last) = page.last() else { break };
            from = (last.ledger, last.first.next());
            let mut changes = Vec::new();
            for run in &page {
                found.add(run);
                let end = run.offset + u64::from(run.length);
                if extents.get(&run.log).is_some_and(|extent| end <= *extent) {
                    self.count(run, true);
                } else {
                    reached!("bookie: run of an unfinished checkpoint dropped");
                    changes.push(IndexChange::Remove { key: run_key(run.ledger, run.first) });
                }
            }
            if !changes.is_empty() {
                dropped = true;
                self.index.apply(changes)?;
            }
        }
        let wrong = |promised: &Tally| *promised != found && !mutant!("S-runs");
        if let Some(promised) = promised.filter(wrong) {
            reached!("bookie: the index has not the runs it should have");
            let detail = format!("it has {found:?}, it should be {promised:?}");
            return Err(IndexError { operation: "scan", detail });
        }
        if dropped { self.note_runs() } else { Ok(()) }
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
        let mut known = self.lock_known();
        let used = known.uses.entry(run.log).or_default();
        let bytes = u64::from(run.length);
        if added {
            used.runs += 1;
            used.bytes += bytes;
            known.tally.add(run);
        } else {
            used.runs = used.runs.saturating_sub(1);
            used.bytes = used.bytes.saturating_sub(bytes);
            known.tally.remove(run);
        }
    }
}
