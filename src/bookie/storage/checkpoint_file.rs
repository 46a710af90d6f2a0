//! The checkpoint file: how much of the journal is behind, how much of each entry log counts, and what is
//! known of each ledger. Replaced as a whole, so its parts always agree; never damaged by a crash, so damage
//! means the bookie must not start (a ledger table read as empty would lose fences and data).
//!
//! ```text
//!  0 u32 "SWC1"             48 u64 id of the next entry log
//!  4 u32 entry logs         56 u32 ledgers
//!  8 u64 number             60 u32 zero
//! 16 u64 number in index    64 entry logs: u64 id, u64 length that counts
//! 24 u64 journal file          ledgers: u64 id, u64 creator, i64 last add confirmed, i64 last entry,
//! 32 u64 journal offset                 u64 flags (1 fenced, 2 deleted, 4 limbo)
//! 40 u64 journal sequence      u32 CRC-32C of everything before
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::{BufMut, BytesMut};

use super::super::journal::JournalPosition;
use super::super::ledger_state::{FenceState, LedgerFacts, LedgerTable};
use super::super::record::{u32_at, u64_at};
use crate::domain::{CreatorToken, EntryId, LedgerId};
use crate::runtime::{Disk, DiskResult};

const MAGIC: u32 = u32::from_le_bytes(*b"SWC1");
const HEADER_BYTES: usize = 64;
const LOG_BYTES: usize = 16;
const LEDGER_BYTES: usize = 40;

/// The content of the checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookie) struct CheckpointFile {
    /// Grows by one with every replacement.
    pub number: u64,
    /// An index with a lower number lacks something and is made again.
    pub index_number: u64,
    /// Replay begins here.
    pub mark: JournalPosition,
    /// The id the next entry log will have, at least.
    pub next_log: u64,
    /// Entry logs that exist, and how much of each counts.
    pub extents: BTreeMap<u64, u64>,
    /// Ledgers, in id order.
    pub ledgers: Vec<(LedgerId, LedgerFacts)>,
}

impl CheckpointFile {
    /// The file's path.
    pub fn path(ledger_directory: &Path) -> PathBuf {
        ledger_directory.join("checkpoint")
    }

    /// The ledgers as they are now.
    pub fn snapshot(table: &LedgerTable) -> Vec<(LedgerId, LedgerFacts)> {
        table.all().iter().map(|ledger| (ledger.id, *ledger.facts())).collect()
    }

    /// Replaces the file.
    pub async fn write(&self, disk: &Disk, ledger_directory: &Path) -> DiskResult<()> {
        disk.replace_file(&Self::path(ledger_directory), self.encode().freeze()).await
    }

    fn encode(&self) -> BytesMut {
        let length =
            HEADER_BYTES + LOG_BYTES * self.extents.len() + LEDGER_BYTES * self.ledgers.len() + 4;
        let mut out = BytesMut::with_capacity(length);
        out.put_u32_le(MAGIC);
        out.put_u32_le(u32::try_from(self.extents.len()).unwrap_or(u32::MAX));
        out.put_u64_le(self.number);
        out.put_u64_le(self.index_number);
        out.put_u64_le(self.mark.file);
        out.put_u64_le(self.mark.offset);
        out.put_u64_le(self.mark.sequence);
        out.put_u64_le(self.next_log);
        out.put_u32_le(u32::try_from(self.ledgers.len()).unwrap_or(u32::MAX));
        out.put_u32_le(0);
        for (log, extent) in &self.extents {
            out.put_u64_le(*log);
            out.put_u64_le(*extent);
        }
        for (ledger, facts) in &self.ledgers {
            out.put_u64_le(ledger.0);
            out.put_u64_le(facts.creator.0);
            out.put_i64_le(facts.last_add_confirmed.0);
            out.put_i64_le(facts.last_entry.0);
            // A fence on its way to the journal may be kept: it was asked for.
            let fenced = u64::from(facts.fence != FenceState::Open);
            let flags = fenced | u64::from(facts.deleted) << 1 | u64::from(facts.limbo) << 2;
            out.put_u64_le(flags);
        }
        let checksum = crc32c::crc32c(&out);
        out.put_u32_le(checksum);
        out
    }

    /// Reads the content back; an error says what is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let body = bytes.len().saturating_sub(4);
        if body < HEADER_BYTES || u32_at(bytes, 0) != MAGIC {
            return Err("not a checkpoint file".to_owned());
        }
        if u32_at(bytes, body) != crc32c::crc32c(&bytes[..body]) {
            return Err("the checkpoint file does not match its checksum".to_owned());
        }
        let (logs, ledgers) = (u32_at(bytes, 4) as usize, u32_at(bytes, 56) as usize);
        let ledgers_at = HEADER_BYTES + LOG_BYTES * logs;
        if ledgers_at + LEDGER_BYTES * ledgers != body {
            return Err("the checkpoint file has another length than it says".to_owned());
        }
        let extents = bytes[HEADER_BYTES..ledgers_at].chunks_exact(LOG_BYTES);
        let ledgers = bytes[ledgers_at..body].chunks_exact(LEDGER_BYTES);
        Ok(Self {
            number: u64_at(bytes, 8),
            index_number: u64_at(bytes, 16),
            mark: JournalPosition {
                file: u64_at(bytes, 24),
                offset: u64_at(bytes, 32),
                sequence: u64_at(bytes, 40),
            },
            next_log: u64_at(bytes, 48),
            extents: extents.map(|pair| (u64_at(pair, 0), u64_at(pair, 8))).collect(),
            ledgers: ledgers.map(decode_ledger).collect(),
        })
    }
}

fn decode_ledger(bytes: &[u8]) -> (LedgerId, LedgerFacts) {
    let flags = u64_at(bytes, 32);
    let facts = LedgerFacts {
        creator: CreatorToken(u64_at(bytes, 8)),
        bind_logged: true,
        fence: if flags & 1 != 0 { FenceState::Durable } else { FenceState::Open },
        deleted: flags & 2 != 0,
        limbo: flags & 4 != 0,
        last_add_confirmed: EntryId(u64_at(bytes, 16) as i64),
        last_entry: EntryId(u64_at(bytes, 24) as i64),
    };
    (LedgerId(u64_at(bytes, 0)), facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_survives_and_any_damage_is_found() {
        let mut facts = LedgerFacts::new(CreatorToken(9));
        facts.bind_logged = true;
        facts.fence = FenceState::Durable;
        facts.last_entry = EntryId(4);
        let file = CheckpointFile {
            number: 3,
            index_number: 2,
            mark: JournalPosition { sequence: 8, file: 1, offset: 4096 },
            next_log: 5,
            extents: BTreeMap::from([(1, 100), (4, 2000)]),
            ledgers: vec![(LedgerId(7), facts)],
        };
        let bytes = file.encode();
        assert_eq!(CheckpointFile::decode(&bytes), Ok(file));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(CheckpointFile::decode(&damaged).is_err(), "byte {at}");
            assert!(CheckpointFile::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
