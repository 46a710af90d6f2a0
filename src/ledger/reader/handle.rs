//! What the broker holds of a ledger it reads.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::end::{ask_last_add_confirmed, wait_for_news};
use super::replicas::{Asker, Replica};
use crate::domain::{Entry, EntryId, LedgerId, ReadError, ReadRequest};
use crate::ledger::ensemble::Striping;
use crate::ledger::records::Records;
use crate::ledger::{BookiePool, LedgerConfig, LedgerReadError, LedgerRecord, LedgerState};
use crate::reached;
use crate::runtime::Clock;

/// Reads a ledger, never past its last add confirmed (its last entry once closed).
pub struct LedgerReader {
    ledger: LedgerId,
    clock: Clock,
    bookies: Arc<dyn BookiePool>,
    config: LedgerConfig,
    records: Records,
    known: Mutex<Known>,
}

struct Known {
    /// The record as last read. It may be old: fragments may have been added and bookies replaced.
    record: Arc<LedgerRecord>,
    /// The highest last add confirmed learned while the ledger was open.
    confirmed: EntryId,
    /// The position asked first while it gives good answers, so that its read-ahead serves the whole run.
    sticky: usize,
}

impl Known {
    /// The last entry that may be read as far as is known, given what the caller is sure of. Once closed,
    /// what bookies said before does not count: a recoverer may have pushed them further.
    fn last(&self, sure: EntryId) -> EntryId {
        match self.record.state {
            LedgerState::Closed { last_entry, .. } => last_entry,
            LedgerState::Open | LedgerState::InRecovery => self.confirmed.max(sure),
        }
    }
}

impl LedgerReader {
    pub(in crate::ledger) fn new(
        clock: Clock,
        bookies: Arc<dyn BookiePool>,
        config: LedgerConfig,
        records: Records,
        record: LedgerRecord,
        sticky: usize,
    ) -> Self {
        Self {
            ledger: record.ledger,
            clock,
            bookies,
            config,
            records,
            known: Mutex::new(Known { record: Arc::new(record), confirmed: EntryId::NONE, sticky }),
        }
    }

    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// The last entry that may be read, as known now; asks the bookies when the ledger is not closed.
    pub async fn last_add_confirmed(&self) -> Result<EntryId, LedgerReadError> {
        let mut record = Arc::clone(&self.lock().record);
        if !is_closed(&record) {
            record = self.read_record_again().await?;
        }
        if !is_closed(&record) {
            let confirmed =
                ask_last_add_confirmed(&self.clock, &self.bookies, &self.config, &record).await?;
            let mut known = self.lock();
            known.confirmed = known.confirmed.max(confirmed);
        }
        Ok(self.lock().last(EntryId::NONE))
    }

    /// Waits until there may be more to read than up to `known`: until a bookie of an open ledger knows a
    /// later last add confirmed, or `patience` is over. Where there is nothing to wait for (closed, being
    /// recovered, no bookie answers) it takes `pause`, so that a caller asking again and again does no harm.
    pub async fn wait_beyond(&self, known: EntryId, patience: Duration, pause: Duration) {
        let rest = self.clock.sleep(pause);
        let record = Arc::clone(&self.lock().record);
        if !is_closed(&record) {
            let news = wait_for_news(&self.clock, &self.bookies, &record, known, patience).await;
            if let Some(confirmed) = news {
                let mut known = self.lock();
                known.confirmed = known.confirmed.max(confirmed);
                return;
            }
        }
        rest.await;
    }

    /// Reads a contiguous run beginning with `first`: at least one entry, at most `entries_max`, stopping
    /// after `bytes_max` payload bytes. `known_last` is a last confirmed the caller is sure of (the owner of
    /// the writer knows it better than the bookies); entries up to it may be read without asking.
    pub async fn read(
        &self,
        first: EntryId,
        entries_max: u32,
        bytes_max: u32,
        known_last: EntryId,
    ) -> Result<Vec<Entry>, LedgerReadError> {
        let mut last = self.lock().last(known_last);
        if first > last {
            self.last_add_confirmed().await?;
            last = self.lock().last(known_last);
        }
        if first > last || first < EntryId::FIRST {
            return Err(LedgerReadError::BeyondEnd { asked: first, last_confirmed: last });
        }
        let up_to_last = u32::try_from(last.0 - first.0 + 1).unwrap_or(u32::MAX);
        let entries_max = entries_max.clamp(1, up_to_last);
        let mut record = Arc::clone(&self.lock().record);
        loop {
            let error = match self.read_with(&record, first, entries_max, bytes_max).await {
                Ok(entries) => return Ok(entries),
                Err(error) => error,
            };
            // A good copy is good wherever it was found; but if none was, the record may just be old.
            let again = self.read_record_again().await?;
            if again.fragments == record.fragments {
                return Err(LedgerReadError::NoGoodReplica {
                    ledger: self.ledger,
                    entry: first,
                    last: error,
                });
            }
            reached!("ledger reader: fragments changed under it");
            record = again;
        }
    }

    async fn read_with(
        &self,
        record: &LedgerRecord,
        first: EntryId,
        entries_max: u32,
        bytes_max: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        let Some(fragment) = record.fragment_of(first) else { return Err(ReadError::Absent) };
        let next = record.fragments.iter().find(|next| next.first_entry > first);
        let in_fragment = next.map_or(u32::MAX, |next| {
            u32::try_from(next.first_entry.0 - first.0).unwrap_or(u32::MAX)
        });
        let striping = Striping::new(record.quorum);
        let sticky = self.lock().sticky;
        // The longest run first; among equals the sticky position, then round robin from it.
        let size = fragment.ensemble.len();
        let mut replicas: Vec<Replica> = (0..size)
            .map(|k| (sticky + k) % size)
            .filter(|position| striping.holds(*position, first))
            .map(|position| Replica {
                position,
                bookie: fragment.ensemble[position],
                entries_max: striping.run_length(position, first),
            })
            .collect();
        replicas.sort_by_key(|replica| std::cmp::Reverse(replica.entries_max));
        let request = ReadRequest {
            ledger: self.ledger,
            creator: record.creator,
            first,
            entries_max: entries_max.min(in_fragment),
            bytes_max,
            fence: false,
        };
        let asker = Asker { clock: &self.clock, bookies: &self.bookies, config: &self.config };
        let (position, entries) = asker.first_good(request, replicas).await?;
        self.lock().sticky = position;
        Ok(entries)
    }

    async fn read_record_again(&self) -> Result<Arc<LedgerRecord>, LedgerReadError> {
        let found = self.records.load(self.ledger).await?;
        let found = found.ok_or(LedgerReadError::NoLedger(self.ledger))?;
        let record = Arc::new(found.record);
        self.lock().record = Arc::clone(&record);
        Ok(record)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn is_closed(record: &LedgerRecord) -> bool {
    matches!(record.state, LedgerState::Closed { .. })
}
