//! What is known of each ledger, in a file of its own: first all ledgers, then, with each checkpoint, those
//! that changed. How much of it counts is written in the checkpoint file, so a stretch counts whole or not at
//! all, together with the mark it goes with; damage in what counts means the bookie must not start (facts
//! read as absent would lose fences and data).
//!
//! ```text
//!  0 u32 "SWF1", u32 zero       64 stretches:  u32 ledgers in it
//!  8 u64 id, zeros                             u32 CRC-32C of that number and the ledgers
//! 60 u32 CRC-32C of the 60                     ledgers: u64 id, u64 creator, i64 last add confirmed,
//!        bytes before                                   i64 last entry,
//!                                                       u64 flags (1 fenced, 2 deleted, 4 limbo; bits
//!                                                       8 to 15: ledger directory + 1, 0: none;
//!                                                       bits 16 to 23: journal)
//! ```
//! A later stretch overrides an earlier one, ledger by ledger. A file is only appended to in the life of the
//! bookie that began it, and is replaced by a new one when most of it is overridden; ids are never used twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::{BufMut, BytesMut};

use crate::bookie::ledger_state::{FenceState, LedgerFacts};
use crate::bookie::record::{u32_at, u64_at};
use crate::domain::{CreatorToken, EntryId, LedgerId};
use crate::runtime::{CreateMode, Disk, DiskError, DiskErrorKind, DiskResult, File, OpenMode};
use crate::{mutant, reached};

const MAGIC: u32 = u32::from_le_bytes(*b"SWF1");
const HEADER_BYTES: usize = 64;
const STRETCH_HEADER_BYTES: usize = 8;
const LEDGER_BYTES: usize = 40;
/// A file is replaced once it is this much longer than twice what it would be if written anew.
const SLACK_BYTES: u64 = 4096;

/// A ledger and what is known of it.
pub(in crate::bookie) type LedgerFact = (LedgerId, LedgerFacts);

/// Which file holds the facts, and how much of it counts. Of no bytes: nothing is known of any ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bookie) struct FactsPlace {
    /// The file's id.
    pub id: u64,
    /// Bytes of it that count.
    pub bytes: u64,
}

/// Why the facts could not be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::bookie) enum FactsError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{0}")]
    Damaged(String),
}

/// The name of a facts log.
pub(in crate::bookie) fn facts_log_name(id: u64) -> String {
    format!("{id:016x}.facts")
}

/// The id in a facts log's name.
pub(in crate::bookie) fn facts_log_id(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".facts")?;
    (id.len() == 16).then(|| u64::from_str_radix(id, 16).ok()).flatten()
}

/// Reads what counts, in ledger order.
pub(in crate::bookie) async fn read_facts(
    disk: &Disk,
    directory: &Path,
    place: FactsPlace,
) -> Result<BTreeMap<LedgerId, LedgerFacts>, FactsError> {
    if place.bytes == 0 {
        return Ok(BTreeMap::new());
    }
    let path = directory.join(facts_log_name(place.id));
    let bytes = disk.read_file(&path).await?.unwrap_or_default();
    let length = usize::try_from(place.bytes).unwrap_or(usize::MAX);
    let counted = bytes.get(..length).ok_or_else(|| {
        FactsError::Damaged(format!(
            "facts log {:016x} has {} bytes, {length} were synced",
            place.id,
            bytes.len()
        ))
    })?;
    decode(counted, place.id)
        .map_err(|damage| FactsError::Damaged(format!("facts log {:016x}: {damage}", place.id)))
}

/// Writes facts logs. One per bookie; begins a new file with its first write.
pub(in crate::bookie) struct FactsLogWriter {
    disk: Disk,
    directory: PathBuf,
    next_id: u64,
    open: Option<OpenFacts>,
    /// Files there are, or may be: all but the newest go once the checkpoint file names that.
    existing: Vec<u64>,
}

struct OpenFacts {
    id: u64,
    file: File,
    written: u64,
}

impl FactsLogWriter {
    /// A writer for the life after `last`. Removes files that are not `last`: a checkpoint that never
    /// completed began them, or they were replaced and not removed.
    pub async fn new(disk: &Disk, directory: &Path, last: FactsPlace) -> DiskResult<Self> {
        let names = disk.list(directory).await?;
        let mut next_id = last.id + 1;
        for id in names.iter().filter_map(|entry| facts_log_id(&entry.name)) {
            next_id = next_id.max(id + 1);
            if id != last.id || last.bytes == 0 {
                reached!("bookie: stray facts log removed");
                disk.remove(&directory.join(facts_log_name(id))).await?;
            }
        }
        let existing = if last.bytes > 0 { vec![last.id] } else { Vec::new() };
        let directory = directory.to_owned();
        Ok(Self { disk: disk.clone(), directory, next_id, open: None, existing })
    }

    /// True if the next write must be of all ledgers: there is no file yet to append to, or what `ledgers`
    /// ledgers take anew is little of it.
    pub fn wants_all(&self, ledgers: usize) -> bool {
        let anew = (HEADER_BYTES + STRETCH_HEADER_BYTES + ledgers * LEDGER_BYTES) as u64;
        self.open.as_ref().is_none_or(|open| open.written > 2 * anew + SLACK_BYTES)
    }

    /// Writes and syncs all ledgers, in a new file whose name is durable when this returns.
    pub async fn write_all(&mut self, all: &[LedgerFact]) -> DiskResult<FactsPlace> {
        self.open = None;
        let id = self.next_id;
        // Counted up even if creating fails: the name may be there all the same.
        self.next_id += 1;
        self.existing.push(id);
        let path = self.directory.join(facts_log_name(id));
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + stretch_bytes(all));
        bytes.put_slice(&header(id));
        encode_stretch(all, &mut bytes);
        let written = bytes.len() as u64;
        let file = self.disk.open(&path, CreateMode::CreateNew, OpenMode::Dedicated).await?;
        file.write_and_sync(0, vec![bytes.freeze()]).await?;
        self.disk.sync_directory(&self.directory).await?;
        self.open = Some(OpenFacts { id, file, written });
        Ok(FactsPlace { id, bytes: written })
    }

    /// Appends and syncs some ledgers. After an error the file is left as it is, and the next write must be
    /// of all. Without an open file it is written as if these were all: ask [`Self::wants_all`] first.
    pub async fn append(&mut self, changed: &[LedgerFact]) -> DiskResult<FactsPlace> {
        let Some(mut open) = self.open.take() else { return self.write_all(changed).await };
        if !changed.is_empty() {
            let mut bytes = BytesMut::with_capacity(stretch_bytes(changed));
            encode_stretch(changed, &mut bytes);
            let length = bytes.len() as u64;
            if mutant!("S-facts") {
                open.file.write_at(open.written, vec![bytes.freeze()]).await?;
            } else {
                open.file.write_and_sync(open.written, vec![bytes.freeze()]).await?;
            }
            open.written += length;
        }
        let place = FactsPlace { id: open.id, bytes: open.written };
        self.open = Some(open);
        Ok(place)
    }

    /// The checkpoint file names this file durably: removes the others. What cannot be removed is tried again
    /// the next time.
    pub async fn named(&mut self, place: FactsPlace) -> DiskResult<()> {
        while let Some(at) = self.existing.iter().position(|id| *id != place.id) {
            let path = self.directory.join(facts_log_name(self.existing[at]));
            match self.disk.remove(&path).await {
                Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error),
                _ => self.existing.remove(at),
            };
        }
        Ok(())
    }
}

fn header(id: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0_u8; HEADER_BYTES];
    header[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[8..16].copy_from_slice(&id.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..60]);
    header[60..64].copy_from_slice(&checksum.to_le_bytes());
    header
}

const fn stretch_bytes(facts: &[LedgerFact]) -> usize {
    STRETCH_HEADER_BYTES + facts.len() * LEDGER_BYTES
}

fn encode_stretch(facts: &[LedgerFact], out: &mut BytesMut) {
    let begin = out.len();
    let count = u32::try_from(facts.len()).unwrap_or(u32::MAX);
    out.put_u32_le(count);
    out.put_u32_le(0);
    for (ledger, facts) in facts {
        out.put_u64_le(ledger.0);
        out.put_u64_le(facts.creator.0);
        out.put_i64_le(facts.last_add_confirmed.0);
        out.put_i64_le(facts.last_entry.0);
        // A fence on its way to the journal may be kept: it was asked for.
        let fenced = u64::from(facts.fence != FenceState::Open);
        let flags = fenced | u64::from(facts.deleted) << 1 | u64::from(facts.limbo) << 2;
        let directory = facts.directory.map_or(0, |directory| u64::from(directory) + 1);
        out.put_u64_le(flags | directory << 8 | u64::from(facts.journal) << 16);
    }
    let stretch = &mut out[begin..];
    let checksum = stretch_checksum(stretch);
    stretch[4..8].copy_from_slice(&checksum.to_le_bytes());
}

fn stretch_checksum(stretch: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&stretch[..4]), &stretch[STRETCH_HEADER_BYTES..])
}

fn decode(bytes: &[u8], id: u64) -> Result<BTreeMap<LedgerId, LedgerFacts>, &'static str> {
    if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES] != header(id) {
        return Err("not a facts log of this id");
    }
    let mut ledgers = BTreeMap::new();
    let mut rest = &bytes[HEADER_BYTES..];
    while !rest.is_empty() {
        let count = if rest.len() < STRETCH_HEADER_BYTES { 0 } else { u32_at(rest, 0) as usize };
        let length = STRETCH_HEADER_BYTES.saturating_add(count.saturating_mul(LEDGER_BYTES));
        let stretch = rest.get(..length).ok_or("a stretch is longer than what counts")?;
        if stretch_checksum(stretch) != u32_at(stretch, 4) {
            return Err("a stretch does not match its checksum");
        }
        let facts = stretch[STRETCH_HEADER_BYTES..].chunks_exact(LEDGER_BYTES);
        ledgers.extend(facts.map(decode_ledger));
        rest = &rest[length..];
    }
    Ok(ledgers)
}

fn decode_ledger(bytes: &[u8]) -> LedgerFact {
    let flags = u64_at(bytes, 32);
    let facts = LedgerFacts {
        creator: CreatorToken(u64_at(bytes, 8)),
        bind_logged: true,
        fence: if flags & 1 != 0 { FenceState::Durable } else { FenceState::Open },
        deleted: flags & 2 != 0,
        limbo: flags & 4 != 0,
        // What is known from before there were several is in the first of either.
        journal: (flags >> 16 & 0xff) as u8,
        directory: Some((flags >> 8 & 0xff).checked_sub(1).map_or(0, |directory| directory as u8)),
        last_add_confirmed: EntryId(u64_at(bytes, 16) as i64),
        last_entry: EntryId(u64_at(bytes, 24) as i64),
    };
    (LedgerId(u64_at(bytes, 0)), facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(last_entry: i64, deleted: bool) -> LedgerFacts {
        let mut facts = LedgerFacts::new(CreatorToken(9), 2);
        facts.bind_logged = true;
        facts.fence = FenceState::Durable;
        facts.deleted = deleted;
        facts.directory = Some(3);
        facts.last_entry = EntryId(last_entry);
        facts
    }

    #[test]
    fn later_stretches_override_and_any_damage_is_found() {
        let mut bytes = BytesMut::from(&header(3)[..]);
        encode_stretch(
            &[(LedgerId(7), facts(4, false)), (LedgerId(8), facts(1, false))],
            &mut bytes,
        );
        let first = bytes.len();
        encode_stretch(&[(LedgerId(7), facts(6, true))], &mut bytes);
        let whole = decode(&bytes, 3).unwrap_or_default();
        assert_eq!(whole[&LedgerId(7)], facts(6, true));
        assert_eq!(whole[&LedgerId(8)], facts(1, false));
        assert!(decode(&bytes, 4).is_err(), "the file of another id");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, 3).is_err(), "byte {at}");
            let is_whole = at == first || at == HEADER_BYTES;
            assert_eq!(decode(&bytes[..at], 3).is_ok(), is_whole, "cut at {at}");
        }
    }
}
