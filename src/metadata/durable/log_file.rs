//! Bytes of a log file. All numbers little-endian.
//!
//! ```text
//! file   := header group*
//! header := magic "SWMLOG01" (8) | salt u64 | first index u64 | CRC-32C of those 24 bytes u32 | zero u32
//! group  := magic "SWMG" (4) | length of payload u32 | first index u64 | CRC-32C u32 | payload
//! ```
//! A group holds what one sync made durable, so a crash can tear only the last one: 512-byte sectors of it
//! may be there in any mixture. Its CRC covers the file's salt, index, length and payload; with the salt
//! nobody can plant a value that looks like a group. A name is `log-` and the first index in 20 digits.

use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};

use crate::mutant;
use crate::runtime::{CreateMode, Disk, DiskResult, File, OpenMode};

pub(in crate::metadata) const FILE_MAGIC: &[u8; 8] = b"SWMLOG01";
pub(in crate::metadata) const GROUP_MAGIC: &[u8; 4] = b"SWMG";
/// Bytes before the first group.
pub(in crate::metadata) const FILE_HEADER_BYTES: usize = 32;
/// Bytes of a group before its payload.
pub(in crate::metadata) const RECORD_HEADER_BYTES: usize = 20;
/// A group is closed when its commands cost this much; one more command may go beyond it.
pub(in crate::metadata) const GROUP_BYTES: usize = 4 * 1024 * 1024;
/// Longest payload a reader believes: a group and its last command.
pub(in crate::metadata) const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The log file being written.
pub(in crate::metadata) struct LogFile {
    file: File,
    salt: u64,
    end: u64,
}

/// Name of the log whose first command is `first`.
pub(in crate::metadata) fn log_name(first: u64) -> String {
    format!("log-{first:020}")
}

/// First index from a log's name.
pub(in crate::metadata) fn log_first(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// A file's header.
pub(in crate::metadata) fn file_header(salt: u64, first: u64) -> Bytes {
    let mut header = BytesMut::with_capacity(FILE_HEADER_BYTES);
    header.put_slice(FILE_MAGIC);
    header.put_u64_le(salt);
    header.put_u64_le(first);
    header.put_u32_le(crc32c::crc32c(&header));
    header.put_u32_le(0);
    header.freeze()
}

/// CRC of a group.
pub(in crate::metadata) fn group_crc(salt: u64, first: u64, payload: &[u8]) -> u32 {
    let mut facts = [0_u8; 20];
    facts[0..8].copy_from_slice(&salt.to_le_bytes());
    facts[8..16].copy_from_slice(&first.to_le_bytes());
    facts[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&facts), payload)
}

/// A group's header.
pub(in crate::metadata) fn group_header(salt: u64, first: u64, payload: &[u8]) -> Bytes {
    let mut header = BytesMut::with_capacity(RECORD_HEADER_BYTES);
    header.put_slice(GROUP_MAGIC);
    header.put_u32_le(payload.len() as u32);
    header.put_u64_le(first);
    header.put_u32_le(group_crc(salt, first, payload));
    header.freeze()
}

impl LogFile {
    /// Begins a log, durable with its name when this returns.
    pub(in crate::metadata) async fn create(
        disk: &Disk,
        directory: &Path,
        salt: u64,
        first: u64,
    ) -> DiskResult<Self> {
        let path = directory.join(log_name(first));
        // A file of this name can only be one whose creation a crash cut short.
        let file = disk.open(&path, CreateMode::CreateIfMissing, OpenMode::Dedicated).await?;
        file.set_length(0).await?;
        file.write_and_sync(0, vec![file_header(salt, first)]).await?;
        disk.sync_directory(directory).await?;
        Ok(Self { file, salt, end: FILE_HEADER_BYTES as u64 })
    }

    /// Goes on with a log whose good part is `good`. That part is written again, in a new file under the
    /// same name: the sync of its last group may have failed, and then what was just read is in memory
    /// only, no later sync puts it on the disk, and a power loss would take it away from under what
    /// follows. The names in the folder are durable on return, too.
    pub(in crate::metadata) async fn resume(
        disk: &Disk,
        directory: &Path,
        first: u64,
        salt: u64,
        good: Bytes,
    ) -> DiskResult<Self> {
        let path = directory.join(log_name(first));
        let end = good.len() as u64;
        if mutant!("M-fsync") {
            let file = disk.open(&path, CreateMode::Existing, OpenMode::Dedicated).await?;
            file.set_length(end).await?;
            file.sync().await?;
            disk.sync_directory(directory).await?;
        } else {
            disk.replace_file(&path, good).await?;
        }
        let file = disk.open(&path, CreateMode::Existing, OpenMode::Dedicated).await?;
        Ok(Self { file, salt, end })
    }

    /// Writes one group and syncs. After an error the file must not be written again.
    pub(in crate::metadata) async fn append(
        &mut self,
        first: u64,
        payload: Bytes,
    ) -> DiskResult<()> {
        let header = group_header(self.salt, first, &payload);
        let bytes = (header.len() + payload.len()) as u64;
        if mutant!("M-log-sync") {
            self.file.write_at(self.end, vec![header, payload]).await?;
        } else {
            self.file.write_and_sync(self.end, vec![header, payload]).await?;
        }
        self.end += bytes;
        Ok(())
    }

    /// Bytes in the file.
    pub(in crate::metadata) fn length(&self) -> u64 {
        self.end
    }
}
