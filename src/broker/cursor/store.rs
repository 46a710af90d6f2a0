//! Where a cursor's state is stored: a record in metadata that names a ledger, whose last entries are the
//! state. To move to a new ledger: create it, write the whole state, compare-and-set the record, delete
//! the old one; never in another order.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::Notify;

use super::handle::CursorPlace;
use super::snapshot::{CHANGES_MAX, CursorEntry, CursorRecord, CursorSnapshot, key};
use super::state::CursorState;
use crate::broker::managed_ledger::compare_and_set::{CasError, compare_and_set};
use crate::broker::managed_ledger::lock;
use crate::domain::{EntryId, LedgerId};
use crate::ledger::{LedgerWriter, WriterEnd, WriterEvents};
use crate::metadata::{Expect, Revision};
use crate::{in_state, mutant, reached};

/// Why the state is not durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StoreError {
    #[error("another owner took the cursor")]
    Deposed,
    #[error("{0}")]
    Failed(String),
}

#[derive(Default)]
struct News {
    told: Mutex<(Option<EntryId>, Option<WriterEnd>)>,
    changed: Notify,
}

impl WriterEvents for News {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        lock(&self.told).0 = Some(up_to);
        self.changed.notify_one();
    }

    fn ended(&self, _ledger: LedgerId, _last_confirmed: EntryId, reason: WriterEnd) {
        lock(&self.told).1 = Some(reason);
        self.changed.notify_one();
    }
}

impl News {
    async fn wait_for(&self, entry: EntryId) -> Result<(), StoreError> {
        loop {
            {
                let told = lock(&self.told);
                if told.0.is_some_and(|confirmed| confirmed >= entry) {
                    return Ok(());
                }
                if let Some(end) = &told.1 {
                    return Err(StoreError::Failed(end.to_string()));
                }
            }
            self.changed.notified().await;
        }
    }
}

/// Up to so many entries and batches beyond mark-delete a state is always written whole.
const SMALL: u64 = 16;
/// Ranges (and partial batches) stored in an entry of the cursor's ledger, and in its record. More are
/// delivered again after a restart.
const RANGES_MAX: usize = 10_000;
const RECORD_RANGES_MAX: usize = 1000;

struct Open {
    writer: LedgerWriter,
    news: Arc<News>,
    entries: u64,
    /// The last whole state in it is all there was: changes may build on it.
    is_complete: bool,
    /// Changes since then.
    changes: u32,
}

impl Open {
    async fn write(&mut self, encoded: Bytes) -> Result<(), StoreError> {
        let entry = self
            .writer
            .append(vec![encoded])
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        self.entries += 1;
        self.news.wait_for(entry).await
    }

    async fn write_whole(&mut self, image: &Image) -> Result<(), StoreError> {
        let record = CursorRecord::new(None, image.full.clone(), image.properties.clone(), 0);
        self.write(record.encode()).await?;
        (self.is_complete, self.changes) = (image.is_complete, 0);
        Ok(())
    }
}

/// A state to store.
pub(super) struct Image {
    full: CursorSnapshot,
    /// `full` is everything.
    is_complete: bool,
    pub(super) properties: Vec<(String, String)>,
}

impl Image {
    /// Of a state and its properties.
    pub(super) fn new(state: &CursorState, properties: &[(String, String)]) -> Self {
        let (full, is_complete) = state.snapshot(RANGES_MAX);
        Self { full, is_complete, properties: properties.to_vec() }
    }

    /// What a record holds of the state, and whether that is all of it.
    pub(super) fn for_record(&self) -> (CursorSnapshot, bool) {
        let mut short = self.full.clone();
        short.ranges.truncate(RECORD_RANGES_MAX);
        short.partial.truncate(RECORD_RANGES_MAX);
        let is_whole = self.is_complete && short == self.full;
        if mutant!("B17") {
            short.partial.clear();
        }
        (short, is_whole)
    }
}

/// The store of one cursor; used by one task at a time.
#[derive(Default)]
pub(super) struct CursorStore {
    /// Version of the record, `None` before it exists.
    pub(super) version: Option<Revision>,
    /// The ledger it names.
    pub(super) ledger: Option<LedgerId>,
    /// A record whose writing has an unknown outcome, and the ledger it names.
    doubtful: Option<(Bytes, Option<LedgerId>)>,
    open: Option<Open>,
}

impl CursorStore {
    /// True if the next write may be of a change alone, of a state with this much beyond mark-delete.
    pub(super) fn takes_change(&self, place: &CursorPlace, beyond_mark_delete: u64) -> bool {
        beyond_mark_delete > SMALL
            && self.open.as_ref().is_some_and(|open| {
                open.is_complete
                    && open.changes < CHANGES_MAX
                    && open.entries < place.config.cursor_ledger_entries_max
            })
    }

    /// Makes what came since the last write durable. After an error the whole state must be written.
    pub(super) async fn write_change(&mut self, change: CursorSnapshot) -> Result<(), StoreError> {
        let Some(mut open) = self.open.take() else {
            return Err(StoreError::Failed("no open ledger".to_owned()));
        };
        reached!("cursor: only a change written");
        open.changes += 1;
        open.write(CursorEntry::change(open.changes, change).encode()).await?;
        self.open = Some(open);
        Ok(())
    }

    /// Makes the whole state durable.
    pub(super) async fn write(
        &mut self,
        place: &CursorPlace,
        name: &str,
        image: &Image,
    ) -> Result<(), StoreError> {
        let entries_max = place.config.cursor_ledger_entries_max;
        if let Some(open) = &mut self.open
            && open.entries < entries_max
            && open.write_whole(image).await.is_ok()
        {
            return Ok(());
        }
        self.roll(place, name, image).await
    }

    async fn roll(
        &mut self,
        place: &CursorPlace,
        name: &str,
        image: &Image,
    ) -> Result<(), StoreError> {
        let _state = in_state!("cursor: the next ledger");
        self.open = None;
        let news = Arc::new(News::default());
        let purpose = format!("cursor {name} of {}", place.topic);
        let events: Arc<News> = Arc::clone(&news);
        let writer = place
            .ledgers
            .create(place.config.cursor_quorum, &purpose, events)
            .await
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let ledger = writer.ledger();
        let mut open = Open { writer, news, entries: 0, is_complete: false, changes: 0 };
        let mut written = open.write_whole(image).await;
        if written.is_ok() {
            written = self.write_record(place, name, Some(ledger), image).await;
        }
        match written {
            Ok(()) => {
                self.open = Some(open);
                Ok(())
            }
            Err(error) => {
                reached!("cursor: could not move to a new ledger");
                if self.doubtful.is_none() {
                    let _ = place.ledgers.delete(ledger).await;
                }
                Err(error)
            }
        }
    }

    /// Writes the record, naming `ledger`; deletes the ledger it named before.
    pub(super) async fn write_record(
        &mut self,
        place: &CursorPlace,
        name: &str,
        ledger: Option<LedgerId>,
        image: &Image,
    ) -> Result<(), StoreError> {
        let key = key(&place.topic, name);
        if let Some((value, named)) = self.doubtful.clone() {
            let found = place.metadata.get(&key).await;
            let found = found.map_err(|error| StoreError::Failed(error.to_string()))?;
            if let Some(found) = found.filter(|found| found.value == value) {
                reached!("cursor: a record of unknown outcome was written");
                self.version = Some(found.version);
                self.ledger = named;
            }
        }
        let nonce = place.runtime.random.next();
        let (snapshot, _) = image.for_record();
        let record = CursorRecord::new(ledger, snapshot, image.properties.clone(), nonce).encode();
        let expect = self.version.map_or(Expect::Absent, Expect::Version);
        let clock = &place.runtime.clock;
        match compare_and_set(&place.metadata, clock, &key, record.clone(), expect).await {
            Ok(version) => {
                self.doubtful = None;
                self.version = Some(version);
                let old = std::mem::replace(&mut self.ledger, ledger);
                if let Some(old) = old.filter(|old| Some(*old) != ledger) {
                    // A failure leaves an orphan, not a loss.
                    let _ = place.ledgers.delete(old).await;
                }
                Ok(())
            }
            Err(CasError::Conflict) => Err(StoreError::Deposed),
            Err(CasError::Unknown(error)) => {
                self.doubtful = Some((record, ledger));
                Err(StoreError::Failed(error))
            }
        }
    }

    /// Gives the ledger's writer up.
    pub(super) fn release(&mut self) {
        self.open = None;
    }
}
