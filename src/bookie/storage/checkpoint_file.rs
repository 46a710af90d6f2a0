//! The checkpoint file: how much of the journal is behind, how much of each entry log and of the facts log
//! counts. Replaced as a whole, so its parts always agree; never damaged by a crash, so damage means the
//! bookie must not start.
//!
//! ```text
//!  0 u32 "SWC2"             40 u64 journal sequence
//!  4 u32 entry logs         48 u64 id of the next entry log
//!  8 u64 number             56 u64 facts log
//! 16 u64 number in index    64 u64 bytes of it that count
//! 24 u64 journal file       72 entry logs: u64 id, u64 length that counts
//! 32 u64 journal offset        u32 CRC-32C of everything before
//! ```
//! With several journals it is "SWC3": the mark at 24 is the first one's, and at 72, before the entry logs, are a
//! u64, the number of the other journals, and their marks, 24 bytes each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::{BufMut, BytesMut};

use super::FactsPlace;
use crate::bookie::journal::{JournalPosition, JournalPositions};
use crate::bookie::record::{u32_at, u64_at};
use crate::runtime::{Disk, DiskResult};

const MAGIC: u32 = u32::from_le_bytes(*b"SWC2");
const MAGIC_OF_SEVERAL: u32 = u32::from_le_bytes(*b"SWC3");
const HEADER_BYTES: usize = 72;
const MARK_BYTES: usize = 24;
const LOG_BYTES: usize = 16;

/// The content of the checkpoint file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookie) struct CheckpointFile {
    /// Grows by one with every replacement.
    pub number: u64,
    /// An index with a lower number lacks something and is made again.
    pub index_number: u64,
    /// Where replay of each journal begins; at least one.
    pub marks: JournalPositions,
    /// The id the next entry log will have, at least.
    pub next_log: u64,
    /// Entry logs that exist, and how much of each counts.
    pub extents: BTreeMap<u64, u64>,
    /// Where what is known of each ledger is.
    pub facts: FactsPlace,
}

impl CheckpointFile {
    /// The file's path.
    pub fn path(ledger_directory: &Path) -> PathBuf {
        ledger_directory.join("checkpoint")
    }

    /// Replaces the file.
    pub async fn write(&self, disk: &Disk, ledger_directory: &Path) -> DiskResult<()> {
        disk.replace_file(&Self::path(ledger_directory), self.encode().freeze()).await
    }

    fn encode(&self) -> BytesMut {
        let (marks, logs) = (self.marks.len() * MARK_BYTES, self.extents.len() * LOG_BYTES);
        let mut out = BytesMut::with_capacity(HEADER_BYTES + 8 + marks + logs + 4);
        let mut marks = self.marks.iter();
        let first = marks.next().unwrap_or(JournalPosition { sequence: 0, file: 0, offset: 0 });
        let others = self.marks.len().saturating_sub(1) as u64;
        out.put_u32_le(if others == 0 { MAGIC } else { MAGIC_OF_SEVERAL });
        out.put_u32_le(u32::try_from(self.extents.len()).unwrap_or(u32::MAX));
        out.put_u64_le(self.number);
        out.put_u64_le(self.index_number);
        put_mark(first, &mut out);
        out.put_u64_le(self.next_log);
        out.put_u64_le(self.facts.id);
        out.put_u64_le(self.facts.bytes);
        if others > 0 {
            out.put_u64_le(others);
            marks.for_each(|mark| put_mark(mark, &mut out));
        }
        for (log, extent) in &self.extents {
            out.put_u64_le(*log);
            out.put_u64_le(*extent);
        }
        let checksum = crc32c::crc32c(&out);
        out.put_u32_le(checksum);
        out
    }

    /// Reads the content back; an error says what is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let body = bytes.len().saturating_sub(4);
        let magic = u32_at(bytes, 0);
        if body < HEADER_BYTES || ![MAGIC, MAGIC_OF_SEVERAL].contains(&magic) {
            return Err("not a checkpoint file".to_owned());
        }
        if u32_at(bytes, body) != crc32c::crc32c(&bytes[..body]) {
            return Err("the checkpoint file does not match its checksum".to_owned());
        }
        let logs = match magic {
            MAGIC => HEADER_BYTES,
            // More than fit are as wrong as one too many.
            _ => HEADER_BYTES + 8 + MARK_BYTES * u64_at(bytes, 72).min(body as u64) as usize,
        };
        if logs + LOG_BYTES * u32_at(bytes, 4) as usize != body {
            return Err("the checkpoint file has another length than it says".to_owned());
        }
        let others = bytes[HEADER_BYTES..logs].get(8..).unwrap_or_default();
        let marks = std::iter::once(mark_at(bytes, 24))
            .chain(others.chunks_exact(MARK_BYTES).map(|mark| mark_at(mark, 0)));
        let extents = bytes[logs..body].chunks_exact(LOG_BYTES);
        Ok(Self {
            number: u64_at(bytes, 8),
            index_number: u64_at(bytes, 16),
            marks: JournalPositions::new(marks.collect()),
            next_log: u64_at(bytes, 48),
            extents: extents.map(|pair| (u64_at(pair, 0), u64_at(pair, 8))).collect(),
            facts: FactsPlace { id: u64_at(bytes, 56), bytes: u64_at(bytes, 64) },
        })
    }
}

fn put_mark(mark: JournalPosition, out: &mut BytesMut) {
    out.put_u64_le(mark.file);
    out.put_u64_le(mark.offset);
    out.put_u64_le(mark.sequence);
}

fn mark_at(bytes: &[u8], at: usize) -> JournalPosition {
    JournalPosition {
        file: u64_at(bytes, at),
        offset: u64_at(bytes, at + 8),
        sequence: u64_at(bytes, at + 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(journals: u64) -> CheckpointFile {
        let mark = |number| JournalPosition { sequence: 8 + number, file: 1, offset: 4096 };
        CheckpointFile {
            number: 3,
            index_number: 2,
            marks: JournalPositions::new((0..journals).map(mark).collect()),
            next_log: 5,
            extents: BTreeMap::from([(1, 100), (4, 2000)]),
            facts: FactsPlace { id: 7, bytes: 512 },
        }
    }

    #[test]
    fn the_file_survives_and_any_damage_is_found() {
        for journals in 1..4 {
            let bytes = file(journals).encode();
            assert_eq!(CheckpointFile::decode(&bytes), Ok(file(journals)));
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert!(CheckpointFile::decode(&damaged).is_err(), "byte {at}");
                assert!(CheckpointFile::decode(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn with_one_journal_the_file_is_what_it_was_before_there_were_several() {
        let bytes = file(1).encode();
        assert_eq!(bytes[..4], *b"SWC2");
        assert_eq!(bytes.len(), 72 + 2 * 16 + 4);
        assert_eq!(file(2).encode()[..4], *b"SWC3");
    }

    #[test]
    fn a_number_of_journals_that_cannot_be_is_refused() {
        let mut bytes = file(2).encode();
        let body = bytes.len() - 4;
        bytes[72..80].copy_from_slice(&u64::MAX.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..body]);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        assert!(CheckpointFile::decode(&bytes).is_err());
    }
}
