//! Reading a log file's bytes: where its good part ends, and whether a crash explains the rest.

use bytes::Bytes;

use super::log_file::{
    FILE_HEADER_BYTES, FILE_MAGIC, GROUP_BYTES_MAX, GROUP_MAGIC, RECORD_HEADER_BYTES, group_crc,
};

/// A log file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogHeader {
    pub(super) salt: u64,
    pub(super) first: u64,
}

/// One good group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) first: u64,
    pub(super) payload: Bytes,
    /// Offset of the byte after it.
    pub(super) end: usize,
}

/// What follows the last good group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    Clean,
    /// Bytes that a crash during the last write explains.
    Torn,
    /// Bytes that no crash explains.
    Damaged(String),
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(number)
}

/// The header, `None` if it is torn or damaged.
pub(super) fn read_header(bytes: &[u8]) -> Option<LogHeader> {
    let good = bytes.len() >= FILE_HEADER_BYTES
        && bytes.starts_with(FILE_MAGIC)
        && u32_at(bytes, 24) == crc32c::crc32c(&bytes[..24]);
    good.then(|| LogHeader { salt: u64_at(bytes, 8), first: u64_at(bytes, 16) })
}

/// The group at `offset`, if there is a good one.
pub(super) fn read_group(bytes: &Bytes, offset: usize, salt: u64) -> Option<Group> {
    let header = bytes.get(offset..offset.checked_add(RECORD_HEADER_BYTES)?)?;
    if !header.starts_with(GROUP_MAGIC) {
        return None;
    }
    let length = u32_at(header, 4) as usize;
    if length > GROUP_BYTES_MAX {
        return None;
    }
    let start = offset + RECORD_HEADER_BYTES;
    let end = start.checked_add(length)?;
    let first = u64_at(header, 8);
    let good = u32_at(header, 16) == group_crc(salt, first, bytes.get(start..end)?);
    good.then(|| Group { first, payload: bytes.slice(start..end), end })
}

/// Judges the bytes from `offset`, where no good group begins. Only one group is ever being written, so a
/// crash leaves no good group behind a bad one, and no more bytes than one group has.
pub(super) fn judge_tail(bytes: &Bytes, offset: usize, salt: u64) -> Tail {
    let rest = bytes.len() - offset;
    if rest == 0 {
        return Tail::Clean;
    }
    if rest > RECORD_HEADER_BYTES + GROUP_BYTES_MAX {
        return Tail::Damaged(format!("{rest} bytes after offset {offset} hold no good group"));
    }
    let later = (offset + 1..bytes.len()).find(|at| read_group(bytes, *at, salt).is_some());
    match later {
        Some(at) => Tail::Damaged(format!("a bad group at {offset}, a good one at {at}")),
        None => Tail::Torn,
    }
}
