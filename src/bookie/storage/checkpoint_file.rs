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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::{BufMut, BytesMut};

use super::FactsPlace;
use crate::bookie::journal::JournalPosition;
use crate::bookie::record::{u32_at, u64_at};
use crate::runtime::{Disk, DiskResult};

const MAGIC: u32 = u32::from_le_bytes(*b"SWC2");
const HEADER_BYTES: usize = 72;
const LOG_BYTES: usize = 16;

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
        let length = HEADER_BYTES + LOG_BYTES * self.extents.len() + 4;
        let mut out = BytesMut::with_capacity(length);
        out.put_u32_le(MAGIC);
        out.put_u32_le(u32::try_from(self.extents.len()).unwrap_or(u32::MAX));
        out.put_u64_le(self.number);
        out.put_u64_le(self.index_number);
        out.put_u64_le(self.mark.file);
        out.put_u64_le(self.mark.offset);
        out.put_u64_le(self.mark.sequence);
        out.put_u64_le(self.next_log);
        out.put_u64_le(self.facts.id);
        out.put_u64_le(self.facts.bytes);
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
        if body < HEADER_BYTES || u32_at(bytes, 0) != MAGIC {
            return Err("not a checkpoint file".to_owned());
        }
        if u32_at(bytes, body) != crc32c::crc32c(&bytes[..body]) {
            return Err("the checkpoint file does not match its checksum".to_owned());
        }
        if HEADER_BYTES + LOG_BYTES * u32_at(bytes, 4) as usize != body {
            return Err("the checkpoint file has another length than it says".to_owned());
        }
        let extents = bytes[HEADER_BYTES..body].chunks_exact(LOG_BYTES);
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
            facts: FactsPlace { id: u64_at(bytes, 56), bytes: u64_at(bytes, 64) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_survives_and_any_damage_is_found() {
        let file = CheckpointFile {
            number: 3,
            index_number: 2,
            mark: JournalPosition { sequence: 8, file: 1, offset: 4096 },
            next_log: 5,
            extents: BTreeMap::from([(1, 100), (4, 2000)]),
            facts: FactsPlace { id: 7, bytes: 512 },
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
