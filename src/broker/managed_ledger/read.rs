//! Reads across ledgers: from the tail cache, from what was read ahead, from bookies.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::contract::{ManagedLedgerError, StoredEntry};
use super::handle::{Shared, lock};
use crate::broker::EntryHeader;
use crate::domain::{EntryId, FormatLevel, LedgerId, Position, WallTime};
use crate::ledger::LedgerReader;
use crate::mutant;

/// Open readers kept for one topic.
const READERS_MAX: usize = 8;
/// Runs read ahead and kept for one topic, and the size asked for: large enough that a consumer that
/// catches up pays one round trip for a megabyte.
const RUNS_MAX: usize = 4;
const RUN_BYTES: u32 = 2 * 1024 * 1024;
const RUN_ENTRIES: u32 = 8 * 1024;
/// Entries looked at together by a search by time.
const SEARCH_ENTRIES: i64 = 4096;

pub(super) async fn read(
    shared: &Shared,
    from: Position,
    entries_max: usize,
    bytes_max: usize,
) -> Result<Vec<StoredEntry>, ManagedLedgerError> {
    let reads_up_to = shared.environment.config.formats.reads_up_to;
    let mut stored = Vec::new();
    let mut bytes = 0;
    let mut next = from;
    while stored.len() < entries_max && (stored.is_empty() || bytes < bytes_max) {
        let before = Position::new(next.ledger, next.entry.previous());
        let (first, last, first_number) = {
            let chain = lock(&shared.chain);
            let Some(first) = chain.next_entry(before) else { break };
            let Some(ledger) = chain.get(first.ledger) else { break };
            (first, EntryId(ledger.entries as i64 - 1), ledger.first_number)
        };
        let count = entries_max - stored.len();
        let room = bytes_max.saturating_sub(bytes).max(1);
        let payloads = payloads(shared, first, last, count, room).await?;
        for (entry, payload) in (first.entry.0..).zip(payloads) {
            bytes += payload.len();
            let position = Position::new(first.ledger, EntryId(entry));
            let number = first_number + entry as u64;
            stored.push(open_entry(position, number, &payload, reads_up_to)?);
            next = Position::new(first.ledger, EntryId(entry + 1));
        }
    }
    Ok(stored)
}

fn open_entry(
    position: Position,
    number: u64,
    payload: &Bytes,
    reads_up_to: FormatLevel,
) -> Result<StoredEntry, ManagedLedgerError> {
    let (header, client_bytes) = EntryHeader::split(payload, reads_up_to)
        .map_err(|error| ManagedLedgerError::Storage(format!("entry {position}: {error}")))?;
    Ok(StoredEntry {
        position,
        number,
        message_count: header.message_count,
        is_batch: header.is_batch,
        publish_time: header.publish_time,
        client_bytes,
    })
}

/// At least one stored payload, from `first` on, not past `last`.
async fn payloads(
    shared: &Shared,
    first: Position,
    last: EntryId,
    count: usize,
    bytes_max: usize,
) -> Result<Vec<Bytes>, ManagedLedgerError> {
    let count = count.min(usize::try_from(last.0 - first.entry.0 + 1).unwrap_or(1));
    let mut out = Vec::new();
    shared.environment.cache.read(first.ledger, first.entry, count, bytes_max, &mut out);
    if !out.is_empty() {
        return Ok(out);
    }
    take_ahead(shared, first, count, bytes_max, &mut out);
    if !out.is_empty() {
        return Ok(out);
    }
    // A short read (of one message to deliver again, say) does not deserve a megabyte.
    let ahead = if count > 16 { RUN_ENTRIES } else { count as u32 };
    let reader = reader(shared, first.ledger).await?;
    let entries = u32::try_from(last.0 - first.entry.0 + 1).unwrap_or(u32::MAX).min(ahead);
    let run = reader
        .read(first.entry, entries, RUN_BYTES, last)
        .await
        .map_err(|error| ManagedLedgerError::Storage(error.to_string()))?;
    let run: Vec<Bytes> = run.into_iter().map(|entry| entry.payload).collect();
    if run.is_empty() {
        return Err(ManagedLedgerError::Storage(format!("no entry at {first}")));
    }
    let mut bytes = 0;
    for payload in run.iter().take(count) {
        out.push(payload.clone());
        bytes += payload.len();
        if bytes >= bytes_max {
            break;
        }
    }
    if out.len() < run.len() {
        let mut runs = lock(&shared.read_ahead);
        runs.push_back((first.ledger, first.entry.0, run));
        if runs.len() > RUNS_MAX {
            runs.pop_front();
        }
    }
    Ok(out)
}

fn take_ahead(
    shared: &Shared,
    first: Position,
    count: usize,
    bytes_max: usize,
    out: &mut Vec<Bytes>,
) {
    let mut runs = lock(&shared.read_ahead);
    let holds = |run: &(LedgerId, i64, Vec<Bytes>)| {
        run.0 == first.ledger && (run.1..run.1 + run.2.len() as i64).contains(&first.entry.0)
    };
    let Some(at) = runs.iter().position(holds) else { return };
    let mut bytes = 0;
    let mut used_up = false;
    if let Some((_, start, run)) = runs.get(at) {
        let skip = usize::try_from(first.entry.0 - start).unwrap_or(0);
        for payload in run.iter().skip(skip).take(count) {
            out.push(payload.clone());
            bytes += payload.len();
            if bytes >= bytes_max {
                break;
            }
        }
        used_up = skip + out.len() == run.len();
    }
    if used_up {
        runs.remove(at);
    }
}

async fn reader(
    shared: &Shared,
    ledger: LedgerId,
) -> Result<Arc<LedgerReader>, ManagedLedgerError> {
    if let Some((_, reader)) = lock(&shared.readers).iter().find(|(id, _)| *id == ledger) {
        return Ok(Arc::clone(reader));
    }
    let opened = shared.environment.ledgers.open(ledger).await;
    let reader = Arc::new(opened.map_err(|error| ManagedLedgerError::Storage(error.to_string()))?);
    if !shared.closed.load(Ordering::Relaxed) {
        let mut readers = lock(&shared.readers);
        readers.push_back((ledger, Arc::clone(&reader)));
        if readers.len() > READERS_MAX {
            readers.pop_front();
        }
    }
    Ok(reader)
}

/// Looks backwards, a ledger at a time, leaving out ledgers all of whose entries are known to be later.
/// Publish times need not rise, so nothing can be bisected.
pub(super) async fn last_before(
    shared: &Shared,
    time: WallTime,
) -> Result<Option<Position>, ManagedLedgerError> {
    let ledgers = lock(&shared.chain).ledgers.clone();
    for ledger in ledgers.iter().rev() {
        if ledger.publish_min.is_some_and(|earliest| earliest >= time) {
            continue;
        }
        let mut end = ledger.entries as i64;
        while end > 0 {
            let start = (end - SEARCH_ENTRIES).max(0);
            let mut found = None;
            let mut next = start;
            while next < end {
                let from = Position::new(ledger.id, EntryId(next));
                let count = usize::try_from(end - next).unwrap_or(1);
                let entries = read(shared, from, count, RUN_BYTES as usize).await?;
                // Trimmed meanwhile: the read went on to a later ledger.
                if entries.first().is_none_or(|entry| entry.position.ledger != ledger.id) {
                    return Ok(None);
                }
                next += entries.len() as i64;
                let earlier = match mutant!("T7") {
                    true => {
                        let behind = entries.partition_point(|entry| entry.publish_time < time);
                        entries[..behind].last()
                    }
                    false => entries.iter().rev().find(|entry| entry.publish_time < time),
                };
                found = earlier.map(|entry| entry.position).or(found);
            }
            if found.is_some() {
                return Ok(found);
            }
            end = start;
        }
    }
    Ok(None)
}
