//! The record shared by journal and entry log: a 48-byte header, then the payload.
//!
//! ```text
//!  0 u32 payload length          16 u64 ledger
//!  4 u32 CRC-32C of the other    24 i64 entry
//!        44 bytes of the header  32 i64 last add confirmed
//!  8 u8  kind, 9..12 zero        40 u64 length so far (entry) or creator token (the others)
//! 12 u32 digest of the entry
//! ```
//! All numbers little-endian. The header has a checksum of its own, so a damaged payload can be stepped
//! over; the payload is covered by the entry's digest, which is never computed a second time.

use bytes::{BufMut, Bytes, BytesMut};

use crate::domain::{CreatorToken, Entry, EntryId, LedgerId};

/// Bytes of a record's header.
pub(super) const RECORD_HEADER_BYTES: usize = 48;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// An entry.
    Entry,
    /// The ledger belongs to this creator.
    Bind,
    /// The ledger is fenced; names the creator, so it can create the ledger when replayed alone.
    Fence,
    /// The ledger is deleted for ever.
    Tombstone,
}

impl RecordKind {
    const fn code(self) -> u8 {
        match self {
            Self::Entry => 1,
            Self::Bind => 2,
            Self::Fence => 3,
            Self::Tombstone => 4,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Entry),
            2 => Some(Self::Bind),
            3 => Some(Self::Fence),
            4 => Some(Self::Tombstone),
            _ => None,
        }
    }
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// What follows.
    pub payload_length: u32,
    /// What the record says.
    pub kind: RecordKind,
    /// The entry's digest; 0 for other kinds.
    pub digest: u32,
    /// The ledger.
    pub ledger: LedgerId,
    /// The entry; `NONE` for other kinds.
    pub entry: EntryId,
    /// Carried by the entry.
    pub last_add_confirmed: EntryId,
    /// The entry's cumulative length, or the creator token.
    pub number: u64,
}

impl RecordHeader {
    /// The header of an entry.
    pub fn of_entry(entry: &Entry) -> Self {
        Self {
            payload_length: u32::try_from(entry.payload.len()).unwrap_or(u32::MAX),
            kind: RecordKind::Entry,
            digest: entry.digest,
            ledger: entry.ledger,
            entry: entry.entry,
            last_add_confirmed: entry.last_add_confirmed,
            number: entry.length,
        }
    }

    /// The header of a record about a ledger.
    pub fn of_ledger(kind: RecordKind, ledger: LedgerId, creator: CreatorToken) -> Self {
        Self {
            payload_length: 0,
            kind,
            digest: 0,
            ledger,
            entry: EntryId::NONE,
            last_add_confirmed: EntryId::NONE,
            number: creator.0,
        }
    }

    /// Appends the header.
    pub fn encode(&self, out: &mut BytesMut) -> [u8; RECORD_HEADER_BYTES] {
        let mut header = [0_u8; RECORD_HEADER_BYTES];
        header[0..4].copy_from_slice(&self.payload_length.to_le_bytes());
        header[8] = self.kind.code();
        header[12..16].copy_from_slice(&self.digest.to_le_bytes());
        header[16..24].copy_from_slice(&self.ledger.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.entry.0.to_le_bytes());
        header[32..40].copy_from_slice(&self.last_add_confirmed.0.to_le_bytes());
        header[40..48].copy_from_slice(&self.number.to_le_bytes());
        let checksum = checksum(&header);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        out.put_slice(&header);
        header
    }

    /// Reads a header; `None` if these bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; RECORD_HEADER_BYTES] =
            bytes.get(..RECORD_HEADER_BYTES)?.try_into().ok()?;
        let kind = RecordKind::of(header[8])?;
        if u32_at(header, 4) != checksum(header) {
            return None;
        }
        Some(Self {
            payload_length: u32_at(header, 0),
            kind,
            digest: u32_at(header, 12),
            ledger: LedgerId(u64_at(header, 16)),
            entry: EntryId(u64_at(header, 24) as i64),
            last_add_confirmed: EntryId(u64_at(header, 32) as i64),
            number: u64_at(header, 40),
        })
    }

    /// Bytes of header and payload together.
    pub const fn total_length(&self) -> usize {
        RECORD_HEADER_BYTES + self.payload_length as usize
    }

    /// The entry of this header with its payload; its digest is not checked here.
    pub fn into_entry(self, payload: Bytes) -> Entry {
        Entry {
            ledger: self.ledger,
            entry: self.entry,
            last_add_confirmed: self.last_add_confirmed,
            length: self.number,
            digest: self.digest,
            payload,
        }
    }
}

/// The first record of `bytes` and its payload, if both are whole. The payload is not checked.
pub(super) fn split_record(bytes: &Bytes, at: usize) -> Option<(RecordHeader, Bytes)> {
    let header = RecordHeader::decode(bytes.get(at..)?)?;
    let end = at.checked_add(header.total_length())?;
    if end > bytes.len() {
        return None;
    }
    Some((header, bytes.slice(at + RECORD_HEADER_BYTES..end)))
}

fn checksum(header: &[u8; RECORD_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[0..4]), &header[8..])
}

/// A little-endian number; 0 past the end.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// A little-endian number; 0 past the end.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_and_every_flipped_byte_of_its_header_is_found() {
        let entry =
            Entry::seal(LedgerId(7), EntryId(3), EntryId(2), 30, Bytes::from_static(b"abc"));
        let mut out = BytesMut::new();
        RecordHeader::of_entry(&entry).encode(&mut out);
        out.put_slice(&entry.payload);
        let bytes = out.freeze();
        let (header, payload) = split_record(&bytes, 0).unwrap();
        assert_eq!(header.into_entry(payload), entry);
        for at in 0..RECORD_HEADER_BYTES {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 0x10;
            let decoded = RecordHeader::decode(&damaged);
            // Bytes 9..12 are zero and checksummed too.
            assert_eq!(decoded, None, "byte {at}");
        }
    }
}
