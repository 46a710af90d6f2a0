//! Recent entries in memory. Inserted in batches at confirmation, looked up by index, never searched:
//! both are on the path of every message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;

use crate::domain::{EntryId, LedgerId};
use crate::mutant;

/// A contiguous run of one ledger's entries.
#[derive(Default)]
struct Run {
    first: i64,
    payloads: VecDeque<Bytes>,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<LedgerId, Run>,
    /// Batches by age: ledger, entries, bytes.
    batches: VecDeque<(LedgerId, usize, usize)>,
    bytes: usize,
}

/// Recent entries of all topics, bounded in bytes; the oldest go first.
pub struct TailCache {
    bytes_max: usize,
    state: Mutex<State>,
}

impl TailCache {
    /// A cache of at most `bytes_max` bytes of payload.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::new(State::default()) }
    }

    /// Adds confirmed entries that begin at `first`. Stored payloads, with our header.
    pub(super) fn insert(&self, ledger: LedgerId, first: EntryId, payloads: Vec<Bytes>) {
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        if payloads.is_empty() || bytes > self.bytes_max {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let run = state.runs.entry(ledger).or_default();
        if run.payloads.is_empty() {
            run.first = first.0;
        } else if run.first + run.payloads.len() as i64 != first.0 {
            // A hole (a batch larger than the cache): what is here stays right, the batch is not taken.
            return;
        }
        let count = payloads.len();
        run.payloads.extend(payloads);
        state.batches.push_back((ledger, count, bytes));
        state.bytes += bytes;
        while state.bytes > self.bytes_max {
            let Some((ledger, count, bytes)) = state.batches.pop_front() else { break };
            state.bytes -= bytes;
            if let Some(run) = state.runs.get_mut(&ledger) {
                run.payloads.drain(..count);
                run.first += count as i64;
                if run.payloads.is_empty() {
                    state.runs.remove(&ledger);
                }
            }
        }
    }

    /// Appends up to `entries_max` payloads from `first` on to `out`, stopping after `bytes_max` bytes.
    /// Takes none if the first is not here.
    pub(super) fn read(
        &self,
        ledger: LedgerId,
        first: EntryId,
        entries_max: usize,
        bytes_max: usize,
        out: &mut Vec<Bytes>,
    ) {
        let state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(run) = state.runs.get(&ledger) else { return };
        let before = if mutant!("D11") { first.0.max(run.first) } else { first.0 };
        let Ok(skip) = usize::try_from(before - run.first) else { return };
        if skip >= run.payloads.len() {
            return;
        }
        let end = skip.saturating_add(entries_max).min(run.payloads.len());
        let mut bytes = 0;
        for payload in run.payloads.range(skip..end) {
            out.push(payload.clone());
            bytes += payload.len();
            if bytes >= bytes_max {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_reads_are_contiguous() {
        let cache = TailCache::new(10);
        let payload = |byte: u8| Bytes::from(vec![byte; 4]);
        cache.insert(LedgerId(1), EntryId(0), vec![payload(0)]);
        cache.insert(LedgerId(1), EntryId(1), vec![payload(1)]);
        cache.insert(LedgerId(2), EntryId(0), vec![payload(2)]);
        let read = |ledger, first, bytes| {
            let mut out = Vec::new();
            cache.read(LedgerId(ledger), EntryId(first), 9, bytes, &mut out);
            out
        };
        assert_eq!(read(1, 0, 99), Vec::<Bytes>::new());
        assert_eq!(read(1, 1, 99), vec![payload(1)]);
        assert_eq!(read(2, 0, 1), vec![payload(2)]);
        cache.insert(LedgerId(1), EntryId(5), vec![payload(9)]);
        assert_eq!(read(1, 5, 99), Vec::<Bytes>::new());
    }
}
