//! Reading entries: from both halves of the write cache, else by way of the index from what was read ahead or the
//! entry log.

use std::sync::atomic::Ordering;

use super::ledger_state::LedgerState;
use super::record::{RecordKind, split_any_record};
use super::shared::Shared;
use super::storage::Run;
use super::write_cache::ReadBudget;
use crate::domain::{Entry, EntryId, ReadError, ReadRequest};
use crate::{mutant, reached};

/// A lookup can meet a log that was just compacted away; the index then names another place.
const ATTEMPTS_MAX: u32 = 3;

/// The contiguous run that begins with the first entry asked for.
pub(super) async fn read(
    shared: &Shared,
    ledger: &LedgerState,
    request: &ReadRequest,
) -> Result<Vec<Entry>, ReadError> {
    let ahead = shared.read_cache.begins(request.ledger, request.first);
    let result = read_run(shared, ledger, request, ahead).await;
    if let Ok(Some(last)) = result.as_ref().map(|entries| entries.last()) {
        shared.read_cache.ended(request.ledger, last.entry.next());
    }
    result
}

async fn read_run(
    shared: &Shared,
    ledger: &LedgerState,
    request: &ReadRequest,
    ahead: u64,
) -> Result<Vec<Entry>, ReadError> {
    let mut budget = ReadBudget::new(request.entries_max, request.bytes_max);
    let mut entries = Vec::new();
    let mut failed_attempts = 0;
    loop {
        // The cache first: a flush puts runs into the index before it empties the half, so an entry is
        // found in at least one of the two if they are looked at in this order.
        let (next, cached) =
            shared.cache.lock().run(request.ledger, request.first, &mut budget, &mut entries);
        if budget.is_spent() {
            return Ok(entries);
        }
        let found = shared.index_said(shared.index.find(request.ledger, next));
        let run = match found {
            Ok(Some(run)) => Run { end: run.end.min(cached), ..run },
            Ok(None) => return absent(ledger, next, entries),
            Err(error) => return first_or(entries, ReadError::Unknown(error.to_string())),
        };
        match read_ahead(shared, &run, next, &mut budget, &mut entries) {
            Some(true) => continue,
            Some(false) => return Ok(entries),
            None => {}
        }
        let before = entries.len();
        match read_part(shared, &run, next, ahead, &mut budget, &mut entries).await {
            Ok(more) if !more || entries.len() == before => return Ok(entries),
            Ok(_) => failed_attempts = 0,
            Err(ReadError::Unknown(_)) if failed_attempts + 1 < ATTEMPTS_MAX => {
                reached!("bookie: read tried again");
                failed_attempts += 1;
            }
            Err(error) if entries.is_empty() => return Err(error),
            Err(_) => return Ok(entries),
        }
    }
}

fn first_or(entries: Vec<Entry>, error: ReadError) -> Result<Vec<Entry>, ReadError> {
    if entries.is_empty() { Err(error) } else { Ok(entries) }
}

fn absent(
    ledger: &LedgerState,
    next: EntryId,
    entries: Vec<Entry>,
) -> Result<Vec<Entry>, ReadError> {
    if !entries.is_empty() {
        return Ok(entries);
    }
    if ledger.facts().limbo {
        reached!("bookie: missing entry of a ledger in limbo");
        let detail = format!("entry {next} may have been lost to damage");
        return Err(ReadError::Unknown(detail));
    }
    Err(ReadError::Absent)
}

/// What was read ahead of a run, if anything was. False if a limit was met.
fn read_ahead(
    shared: &Shared,
    run: &Run,
    first: EntryId,
    budget: &mut ReadBudget,
    out: &mut Vec<Entry>,
) -> Option<bool> {
    let chunk = shared.read_cache.find(run, first)?;
    let before = out.len();
    let mut wanted = first;
    for entry in chunk.from(first).iter().take_while(|entry| entry.entry < run.end) {
        if entry.verify(run.ledger, wanted).is_err() {
            // Sound when it was put in: the memory is not. The disk may be.
            shared.read_cache.forget_ledger(run.ledger);
            break;
        }
        if !budget.take(entry.payload.len()) {
            return Some(false);
        }
        out.push(entry.clone());
        wanted = wanted.next();
    }
    (out.len() > before).then_some(!budget.is_spent())
}

/// One disk read; entries are slices of it. With `ahead` at least so many bytes of the run are read, and the
/// read cache is given those behind the limits. False if a limit was met.
async fn read_part(
    shared: &Shared,
    run: &Run,
    first: EntryId,
    ahead: u64,
    budget: &mut ReadBudget,
    out: &mut Vec<Entry>,
) -> Result<bool, ReadError> {
    let unknown = |error: crate::runtime::DiskError| ReadError::Unknown(error.to_string());
    let file = shared.logs.open(run.log).await.map_err(unknown)?;
    let entries_max = if ahead > 0 { u32::MAX } else { budget.entries };
    let bytes_max = ahead.max(budget.bytes + budget.bytes / 8);
    let (start, length, mut wanted) = run.part(first, entries_max, bytes_max);
    let bytes =
        file.read_at(run.offset + u64::from(start), length as usize).await.map_err(unknown)?;
    let mut at = 0;
    while wanted < run.end && at < length as usize {
        let Some((header, payload)) = split_any_record(&bytes, at) else {
            return corrupt(shared, run, wanted, "its header is damaged", out.is_empty());
        };
        let length = header.total_length();
        if wanted >= first {
            let entry = header.into_entry(payload);
            let sound = header.kind == RecordKind::Entry;
            if let Err(damage) = entry.verify(run.ledger, wanted) {
                return corrupt(shared, run, wanted, &damage.to_string(), out.is_empty());
            }
            if !sound {
                return Ok(false);
            }
            if !budget.take(entry.payload.len()) {
                if ahead > 0 {
                    shared.read_cache.fill(run, wanted, &bytes[at..]);
                }
                return Ok(false);
            }
            out.push(entry);
        }
        at += length;
        wanted = wanted.next();
    }
    Ok(!budget.is_spent())
}

/// A damaged copy. Entries before it are still good: the reader meets it again with its next request.
fn corrupt(
    shared: &Shared,
    run: &Run,
    entry: EntryId,
    damage: &str,
    is_first: bool,
) -> Result<bool, ReadError> {
    if !is_first {
        return Ok(false);
    }
    reached!("bookie: damaged copy found by a read");
    shared.counters.corrupt_found.fetch_add(1, Ordering::Relaxed);
    shared.note_damaged(run.ledger);
    if !mutant!("S-kept") {
        // Whoever checks the ledger for it now has to see the disk.
        shared.read_cache.forget_ledger(run.ledger);
    }
    if mutant!("S31") {
        return Err(ReadError::Absent);
    }
    let place = format!("log {:016x}, stretch at {}", run.log, run.offset);
    Err(ReadError::Corrupt(format!("entry {}:{entry} in {place}: {damage}", run.ledger)))
}

/// All entries of a run as it lies in the log; an error if a single one is damaged.
pub(super) async fn read_whole_run(shared: &Shared, run: &Run) -> Result<Vec<Entry>, ReadError> {
    let mut entries = Vec::new();
    let mut next = run.first;
    while next < run.end {
        let mut budget = ReadBudget::new(u32::MAX, u32::MAX);
        let mut part = Vec::new();
        read_part(shared, run, next, 0, &mut budget, &mut part).await?;
        let Some(last) = part.last() else {
            return Err(ReadError::Corrupt(format!("entry {}:{next} is not there", run.ledger)));
        };
        next = last.entry.next();
        entries.append(&mut part);
    }
    Ok(entries)
}
