//! The record shared by journal and entry log: a header of 15 to 54 bytes, then the payload.
//!
//! ```text
//! u32     CRC-32C of the rest of the header
//! u8      kind
//! varint  payload length, at most 5 bytes
//! varint  ledger
//!         an entry:                                  the other kinds:
//! varint  entry                                      u64 creator token
//! varint  entry less last add confirmed, zigzag
//! varint  length so far
//! u32     digest of the entry
//! ```
//! Fixed numbers little-endian; a varint has seven bits a byte, low ones first, the high bit saying that more
//! follow, and only its shortest form is a header. An entry of 1 KiB has a header of about 22 bytes: what is
//! stored twice for each entry, in journal and entry log, is worth packing. The header has a checksum of its
//! own, so a damaged payload can be stepped over; the payload is covered by the entry's digest, which is never
//! computed a second time.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use crate::domain::{CreatorToken, Entry, EntryId, LedgerId, unzigzag, zigzag};

/// The longest header: what to read where one may begin.
pub(super) const RECORD_HEADER_BYTES_MAX: usize = CHECKSUM_BYTES + 1 + 5 + 4 * 10 + 4;
const CHECKSUM_BYTES: usize = 4;

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

    /// Appends the header and returns its length in bytes.
    pub fn encode(&self, out: &mut BytesMut) -> usize {
        let begin = out.len();
        out.put_u32_le(0);
        out.put_u8(self.kind.code());
        encode_varint(u64::from(self.payload_length), out);
        encode_varint(self.ledger.0, out);
        if self.kind == RecordKind::Entry {
            encode_varint(self.entry.0 as u64, out);
            encode_varint(self.zigzag_lag(), out);
            encode_varint(self.number, out);
            out.put_u32_le(self.digest);
        } else {
            out.put_u64_le(self.number);
        }
        let checksum = crc32c::crc32c(&out[begin + CHECKSUM_BYTES..]);
        out[begin..begin + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        out.len() - begin
    }

    /// Reads the header these bytes begin with; `None` if they do not begin with one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let header = Self::parse(bytes)?;
        let rest = bytes.get(CHECKSUM_BYTES..header.length())?;
        (u32_at(bytes, 0) == crc32c::crc32c(rest)).then_some(header)
    }

    /// The numbers, whatever the checksum says.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(CHECKSUM_BYTES..)?;
        let kind = RecordKind::of(rest.try_get_u8().ok()?)?;
        let payload_length = u32::try_from(decode_varint(&mut rest).ok()?).ok()?;
        let ledger = LedgerId(decode_varint(&mut rest).ok()?);
        let mut header = Self { payload_length, ..Self::of_ledger(kind, ledger, CreatorToken(0)) };
        if kind == RecordKind::Entry {
            header.entry = EntryId(decode_varint(&mut rest).ok()? as i64);
            let lag = unzigzag(decode_varint(&mut rest).ok()?);
            header.last_add_confirmed = EntryId(header.entry.0.wrapping_sub(lag));
            header.number = decode_varint(&mut rest).ok()?;
            header.digest = rest.try_get_u32_le().ok()?;
        } else {
            header.number = rest.try_get_u64_le().ok()?;
        }
        (bytes.len() - rest.len() == header.length()).then_some(header)
    }

    /// How far the last add confirmed is behind the entry, small numbers of either sign first.
    const fn zigzag_lag(&self) -> u64 {
        zigzag(self.entry.0.wrapping_sub(self.last_add_confirmed.0))
    }

    /// Bytes of the header.
    pub fn length(&self) -> usize {
        let common = CHECKSUM_BYTES
            + 1
            + encoded_len_varint(u64::from(self.payload_length))
            + encoded_len_varint(self.ledger.0);
        if self.kind != RecordKind::Entry {
            return common + 8;
        }
        common
            + encoded_len_varint(self.entry.0 as u64)
            + encoded_len_varint(self.zigzag_lag())
            + encoded_len_varint(self.number)
            + 4
    }

    /// Bytes of header and payload together.
    pub fn total_length(&self) -> usize {
        self.length() + self.payload_length as usize
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
    Some((header, bytes.slice(at + header.length()..end)))
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

    fn entry(ledger: u64, entry: i64, confirmed: i64, length: u64) -> Entry {
        let payload = Bytes::from_static(b"abc");
        Entry::seal(LedgerId(ledger), EntryId(entry), EntryId(confirmed), length, payload)
    }

    #[test]
    fn a_record_survives_and_every_flipped_bit_of_its_header_is_found() {
        for entry in [
            entry(7, 3, 2, 30),
            entry(0, 0, -1, 0),
            entry(1 << 40, 1 << 33, (1 << 33) + 5, 1 << 50),
            entry(u64::MAX, i64::MAX, i64::MIN, u64::MAX),
        ] {
            let header = RecordHeader::of_entry(&entry);
            let mut out = BytesMut::new();
            let length = header.encode(&mut out);
            assert_eq!((length, header.length()), (out.len(), out.len()));
            assert!(length <= RECORD_HEADER_BYTES_MAX);
            out.put_slice(&entry.payload);
            let bytes = out.freeze();
            let (header, payload) = split_record(&bytes, 0).unwrap();
            assert_eq!(header.into_entry(payload), entry);
            for bit in 0..length * 8 {
                let mut damaged = bytes.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(RecordHeader::decode(&damaged), None, "bit {bit}");
            }
            for cut in 0..length {
                assert_eq!(RecordHeader::decode(&bytes[..cut]), None, "cut at {cut}");
            }
        }
    }

    #[test]
    fn records_about_ledgers_survive_and_zeros_are_none() {
        for kind in [RecordKind::Bind, RecordKind::Fence, RecordKind::Tombstone] {
            let header = RecordHeader::of_ledger(kind, LedgerId(300), CreatorToken(u64::MAX));
            let mut out = BytesMut::new();
            assert_eq!(header.encode(&mut out), header.length());
            assert_eq!(RecordHeader::decode(&out), Some(header));
        }
        assert_eq!(RecordHeader::decode(&[0; RECORD_HEADER_BYTES_MAX]), None);
    }

    #[test]
    fn a_number_written_longer_than_needed_is_not_a_header() {
        let header = RecordHeader::of_ledger(RecordKind::Bind, LedgerId(5), CreatorToken(1));
        let mut out = BytesMut::new();
        header.encode(&mut out);
        // Payload length 0 as two bytes, with a checksum that fits.
        let mut longer = out.to_vec();
        longer.splice(5..6, [0x80, 0x00]);
        let checksum = crc32c::crc32c(&longer[4..]);
        longer[..4].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(RecordHeader::decode(&longer), None);
    }
}
