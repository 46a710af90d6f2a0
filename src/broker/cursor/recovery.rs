//! Cursors of a topic taken over: fix the end of the cursor's ledger (which fences a writer still
//! alive), read its last entry and what it builds on, claim the record, which only the topic's owner
//! may. Whatever cannot be read is delivered again, never skipped.

use std::collections::BTreeMap;

use super::handle::{Cursor, CursorPlace};
use super::snapshot::{CursorEntry, CursorRecord, key, name_of, prefix};
use super::state::CursorState;
use super::store::{CursorStore, Image, StoreError};
use crate::broker::managed_ledger::{ManagedLedgerError, lock};
use crate::domain::{EntryId, LedgerId, ReadError};
use crate::ledger::{LedgerReadError, LedgerReader, RecoveryError};
use crate::metadata::Versioned;
use crate::{in_state, mutant, reached};

/// Records asked for at once.
const PAGE: usize = 200;
/// Claims lost in a row before the topic's opening fails.
const CLAIMS_MAX: u32 = 5;

/// A cursor as it was found.
pub(super) struct Recovered {
    pub(super) state: CursorState,
    pub(super) properties: Vec<(String, String)>,
    pub(super) store: CursorStore,
}

/// All stored cursors of a topic.
pub(in crate::broker) async fn recover_cursors(
    place: &CursorPlace,
) -> Result<BTreeMap<String, Cursor>, ManagedLedgerError> {
    let mut cursors = BTreeMap::new();
    match recover_into(&mut cursors, place).await {
        Ok(()) => Ok(cursors),
        Err(error) => {
            // Their tasks must not outlive the attempt.
            cursors.values().for_each(Cursor::abandon);
            Err(error)
        }
    }
}

async fn recover_into(
    cursors: &mut BTreeMap<String, Cursor>,
    place: &CursorPlace,
) -> Result<(), ManagedLedgerError> {
    let prefix = prefix(&place.topic);
    let mut after: Option<String> = None;
    loop {
        let page = place.metadata.list(&prefix, after.as_deref(), PAGE).await;
        let page = page.map_err(|error| ManagedLedgerError::Metadata(error.to_string()))?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for (key, _) in &page {
            let Some(name) = name_of(&place.topic, key) else { continue };
            if let Some(recovered) = load(place, &name).await? {
                let cursor = Cursor::recovered(place.clone(), &name, recovered);
                cursors.insert(name, cursor);
            }
        }
    }
}

/// One cursor; `None` if it is gone.
pub(super) async fn load(
    place: &CursorPlace,
    name: &str,
) -> Result<Option<Recovered>, ManagedLedgerError> {
    let _state = in_state!("cursor: recovery");
    let key = key(&place.topic, name);
    for _ in 0..CLAIMS_MAX {
        let found = place.metadata.get(&key).await;
        let found = found.map_err(|error| ManagedLedgerError::Metadata(error.to_string()))?;
        let Some(found) = found else { return Ok(None) };
        // Asked after the record was read: whoever takes the topic from now on claims the cursor after that, and then
        // this claim is lost. One who was deposed before would put the cursor back to the log as it was then.
        if !place.claim.is_recorded().await? && !mutant!("B-stale-loader") {
            reached!("cursor: a deposed owner would have claimed it");
            return Err(ManagedLedgerError::Fenced);
        }
        match claim(place, name, found).await? {
            Some(recovered) => return Ok(Some(recovered)),
            None => reached!("cursor: lost a claim"),
        }
    }
    Err(ManagedLedgerError::Fenced)
}

async fn claim(
    place: &CursorPlace,
    name: &str,
    found: Versioned,
) -> Result<Option<Recovered>, ManagedLedgerError> {
    let record = CursorRecord::decode(&found.value)
        .map_err(|error| ManagedLedgerError::Metadata(format!("cursor {name}: {error}")))?;
    let ledger = record.ledger;
    let newest = match ledger {
        Some(ledger) => last_state(place, name, ledger).await?,
        None => None,
    };
    let CursorRecord { snapshot, properties, .. } = newest.unwrap_or(record);
    let (state, beyond) = CursorState::restore(&lock(&place.chain), &snapshot);
    if beyond {
        reached!("cursor: a position beyond the log's end was repaired");
        tracing::warn!(
            cursor = name,
            topic = place.topic,
            stored = %snapshot.mark_delete,
            repaired = %state.mark_delete(),
            "the cursor pointed beyond the log's end: acknowledged entries were lost"
        );
    }
    let mut store = CursorStore::default();
    store.version = Some(found.version);
    store.ledger = ledger;
    let image = Image::new(&state, &properties);
    let (_, whole) = image.for_record();
    // A state too large for the record stays in its (now closed) ledger until the next write.
    let named = if whole { None } else { ledger };
    match store.write_record(place, name, named, &image).await {
        Ok(()) => Ok(Some(Recovered { state, properties, store })),
        Err(StoreError::Deposed) => Ok(None),
        Err(StoreError::Failed(error)) => Err(ManagedLedgerError::Metadata(error)),
    }
}

/// The state at the end of a cursor's ledger; `None` if there certainly is no readable one.
async fn last_state(
    place: &CursorPlace,
    name: &str,
    ledger: LedgerId,
) -> Result<Option<CursorRecord>, ManagedLedgerError> {
    let fall_back = |reason: String| {
        reached!("cursor: fell back to the record");
        tracing::warn!(cursor = name, topic = place.topic, %ledger, reason, "older state used");
        Ok(None)
    };
    let failed =
        |error: String| Err(ManagedLedgerError::Storage(format!("cursor {name}: {error}")));
    let closed = match place.ledgers.recover(ledger).await {
        Ok(closed) => closed,
        Err(error @ RecoveryError::NoLedger(_)) => return fall_back(error.to_string()),
        Err(error) => return failed(error.to_string()),
    };
    if closed.last_entry == EntryId::NONE {
        return fall_back("it is empty".to_owned());
    }
    let reader = match place.ledgers.open(ledger).await {
        Ok(reader) => reader,
        Err(error @ LedgerReadError::NoLedger(_)) => return fall_back(error.to_string()),
        Err(error) => return failed(error.to_string()),
    };
    let last = match read_entries(&reader, closed.last_entry, closed.last_entry).await {
        Ok(mut last) => last.pop(),
        Err(Unread::Lost(reason)) => return fall_back(reason),
        Err(Unread::Failed(reason)) => return failed(reason),
    };
    let back = match last {
        Some(CursorEntry::Whole(record)) => return Ok(Some(record)),
        Some(CursorEntry::Change(change)) => i64::from(change.back),
        None => return failed("the last entry is missing".to_owned()),
    };
    reached!("cursor: recovered from a state and changes");
    let first = EntryId(closed.last_entry.0 - back);
    let entries = match read_entries(&reader, first, closed.last_entry).await {
        Ok(entries) => entries,
        Err(Unread::Lost(reason)) => return fall_back(reason),
        Err(Unread::Failed(reason)) => return failed(reason),
    };
    let mut entries = entries.into_iter();
    let Some(CursorEntry::Whole(mut record)) = entries.next() else {
        return fall_back("its changes build on no state".to_owned());
    };
    for entry in entries {
        match entry {
            CursorEntry::Whole(later) => record = later,
            CursorEntry::Change(later) => record.snapshot.extend(later.change),
        }
    }
    Ok(Some(record))
}

/// Why entries of a cursor's ledger were not read.
enum Unread {
    /// They certainly cannot be.
    Lost(String),
    /// Not now.
    Failed(String),
}

async fn read_entries(
    reader: &LedgerReader,
    first: EntryId,
    last: EntryId,
) -> Result<Vec<CursorEntry>, Unread> {
    let mut entries = Vec::new();
    let mut from = first;
    while from <= last {
        let count = u32::try_from(last.0 - from.0 + 1).unwrap_or(u32::MAX);
        let run = match reader.read(from, count, u32::MAX, last).await {
            Ok(run) => run,
            Err(LedgerReadError::NoGoodReplica {
                last: last @ (ReadError::Absent | ReadError::Corrupt(_)),
                ..
            }) => return Err(Unread::Lost(last.to_string())),
            Err(error) => return Err(Unread::Failed(error.to_string())),
        };
        for entry in &run {
            entries.push(CursorEntry::decode(&entry.payload).map_err(Unread::Lost)?);
            from = entry.entry.next();
        }
        if run.is_empty() {
            return Err(Unread::Failed(format!("entry {from} is missing")));
        }
    }
    Ok(entries)
}
