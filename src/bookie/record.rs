//! The record shared by journal and entry log: a header, then the payload. The level (`src/domain/format_level.rs`) says
//! which form a header has.
//!
//! ```text
//! level 2: 15 to 54 bytes                                    level 1: 48 bytes
//! u32     CRC-32C of the rest of the header                   0 u32  payload length
//! u8      kind                                                4 u32  CRC-32C of the other 44 bytes of the header
//! varint  payload length, at most 5 bytes                     8 u8   kind, 9..12 zero
//! varint  ledger                                             12 u32  digest of the entry, 0 for the other kinds
//!         an entry:                the other kinds:          16 u64  ledger
//! varint  entry                    u64 creator token         24 i64  entry, -1 for the other kinds
//! varint  entry less last add                                32 i64  last add confirmed, the same
//!         confirmed, zigzag                                  40 u64  length so far, or creator token
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

use crate::domain::{CreatorToken, Entry, EntryId, FormatLevel, LedgerId, unzigzag, zigzag};

/// The longest header of any level: what to read where one may begin.
pub(super) const RECORD_HEADER_BYTES_MAX: usize = CHECKSUM_BYTES + 1 + 5 + 4 * 10 + 4;
/// Length at level 1.
const FIXED_BYTES: usize = 48;
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
    /// Whose form it has.
    pub level: FormatLevel,
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
    pub fn of_entry(entry: &Entry, level: FormatLevel) -> Self {
        Self {
            level,
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
    pub fn of_ledger(
        kind: RecordKind,
        ledger: LedgerId,
        creator: CreatorToken,
        level: FormatLevel,
    ) -> Self {
        Self {
            level,
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
        match self.level {
            FormatLevel::One => self.put_fixed(out),
            FormatLevel::Two => self.put_packed(out),
        }
        out.len() - begin
    }

    fn put_fixed(&self, out: &mut BytesMut) {
        let mut header = [0; FIXED_BYTES];
        header[0..4].copy_from_slice(&self.payload_length.to_le_bytes());
        header[8] = self.kind.code();
        header[12..16].copy_from_slice(&self.digest.to_le_bytes());
        header[16..24].copy_from_slice(&self.ledger.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.entry.0.to_le_bytes());
        header[32..40].copy_from_slice(&self.last_add_confirmed.0.to_le_bytes());
        header[40..48].copy_from_slice(&self.number.to_le_bytes());
        let checksum = fixed_checksum(&header);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        out.put_slice(&header);
    }

    fn put_packed(&self, out: &mut BytesMut) {
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
    }

    /// Reads the header of this level that these bytes begin with; `None` if they do not begin with one.
    pub fn decode(bytes: &[u8], level: FormatLevel) -> Option<Self> {
        match level {
            FormatLevel::One => Self::take_fixed(bytes),
            FormatLevel::Two => Self::take_packed(bytes),
        }
    }

    /// The same where nothing around it says which level it is: the one whose checksum fits, the newest first.
    pub fn decode_any(bytes: &[u8]) -> Option<Self> {
        FormatLevel::ALL.into_iter().rev().find_map(|level| Self::decode(bytes, level))
    }

    fn take_fixed(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; FIXED_BYTES] = bytes.get(..FIXED_BYTES)?.try_into().ok()?;
        let kind = RecordKind::of(header[8])?;
        if u32_at(header, 4) != fixed_checksum(header) {
            return None;
        }
        Some(Self {
            level: FormatLevel::One,
            payload_length: u32_at(header, 0),
            kind,
            digest: u32_at(header, 12),
            ledger: LedgerId(u64_at(header, 16)),
            entry: EntryId(u64_at(header, 24) as i64),
            last_add_confirmed: EntryId(u64_at(header, 32) as i64),
            number: u64_at(header, 40),
        })
    }

    fn take_packed(bytes: &[u8]) -> Option<Self> {
        let header = Self::parse(bytes)?;
        let rest = bytes.get(CHECKSUM_BYTES..header.length())?;
        (u32_at(bytes, 0) == crc32c::crc32c(rest)).then_some(header)
    }

    /// The numbers of level 2, whatever the checksum says.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.get(CHECKSUM_BYTES..)?;
        let kind = RecordKind::of(rest.try_get_u8().ok()?)?;
        let payload_length = u32::try_from(decode_varint(&mut rest).ok()?).ok()?;
        let ledger = LedgerId(decode_varint(&mut rest).ok()?);
        let empty = Self::of_ledger(kind, ledger, CreatorToken(0), FormatLevel::Two);
        let mut header = Self { payload_length, ..empty };
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
        if self.level == FormatLevel::One {
            return FIXED_BYTES;
        }
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

/// The record of this level at `at` and its payload, if both are whole. The payload is not checked.
pub(super) fn split_record(
    bytes: &Bytes,
    at: usize,
    level: FormatLevel,
) -> Option<(RecordHeader, Bytes)> {
    with_payload(RecordHeader::decode(bytes.get(at..)?, level)?, bytes, at)
}

/// The same where nothing around it says which level it is.
pub(super) fn split_any_record(bytes: &Bytes, at: usize) -> Option<(RecordHeader, Bytes)> {
    with_payload(RecordHeader::decode_any(bytes.get(at..)?)?, bytes, at)
}

fn with_payload(header: RecordHeader, bytes: &Bytes, at: usize) -> Option<(RecordHeader, Bytes)> {
    let end = at.checked_add(header.total_length())?;
    if end > bytes.len() {
        return None;
    }
    Some((header, bytes.slice(at + header.length()..end)))
}

/// The checksum of level 1.
fn fixed_checksum(header: &[u8; FIXED_BYTES]) -> u32 {
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

    fn entry(ledger: u64, entry: i64, confirmed: i64, length: u64) -> Entry {
        let payload = Bytes::from_static(b"abc");
        Entry::seal(LedgerId(ledger), EntryId(entry), EntryId(confirmed), length, payload)
    }

    #[test]
    fn a_record_survives_and_every_flipped_bit_of_its_header_is_found() {
        for level in FormatLevel::ALL {
            for entry in [
                entry(7, 3, 2, 30),
                entry(0, 0, -1, 0),
                entry(1 << 40, 1 << 33, (1 << 33) + 5, 1 << 50),
                entry(u64::MAX, i64::MAX, i64::MIN, u64::MAX),
            ] {
                let header = RecordHeader::of_entry(&entry, level);
                let mut out = BytesMut::new();
                let length = header.encode(&mut out);
                assert_eq!((length, header.length()), (out.len(), out.len()));
                assert!(length <= RECORD_HEADER_BYTES_MAX);
                out.put_slice(&entry.payload);
                let bytes = out.freeze();
                let (header, payload) = split_record(&bytes, 0, level).unwrap();
                assert_eq!(split_any_record(&bytes, 0), Some((header, payload.clone())));
                assert_eq!(header.into_entry(payload), entry);
                for bit in 0..length * 8 {
                    let mut damaged = bytes.to_vec();
                    damaged[bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(RecordHeader::decode_any(&damaged), None, "bit {bit}");
                }
                for cut in 0..length {
                    assert_eq!(RecordHeader::decode_any(&bytes[..cut]), None, "cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn records_about_ledgers_survive_and_zeros_are_none() {
        for level in FormatLevel::ALL {
            for kind in [RecordKind::Bind, RecordKind::Fence, RecordKind::Tombstone] {
                let creator = CreatorToken(u64::MAX);
                let header = RecordHeader::of_ledger(kind, LedgerId(300), creator, level);
                let mut out = BytesMut::new();
                assert_eq!(header.encode(&mut out), header.length());
                assert_eq!(RecordHeader::decode(&out, level), Some(header));
                assert_eq!(RecordHeader::decode_any(&out), Some(header));
            }
        }
        assert_eq!(RecordHeader::decode_any(&[0; RECORD_HEADER_BYTES_MAX]), None);
    }

    /// Byte by byte as the versions before level 2 wrote it, whose files are still there.
    #[test]
    fn level_1_is_what_former_versions_wrote() {
        let entry = entry(7, 3, 2, 30);
        let mut out = BytesMut::new();
        RecordHeader::of_entry(&entry, FormatLevel::One).encode(&mut out);
        let numbers = [7_u64, 3, 2, 30].map(u64::to_le_bytes).concat();
        let (length, digest) = (3_u32.to_le_bytes(), entry.digest.to_le_bytes());
        let rest = [&length[..], &[1, 0, 0, 0], &digest, &numbers].concat();
        let checksum = crc32c::crc32c(&rest).to_le_bytes();
        assert_eq!(out[..], [&length[..], &checksum, &rest[4..]].concat());
    }

    #[test]
    fn a_number_written_longer_than_needed_is_not_a_header() {
        let (kind, level) = (RecordKind::Bind, FormatLevel::Two);
        let header = RecordHeader::of_ledger(kind, LedgerId(5), CreatorToken(1), level);
        let mut out = BytesMut::new();
        header.encode(&mut out);
        // Payload length 0 as two bytes, with a checksum that fits.
        let mut longer = out.to_vec();
        longer.splice(5..6, [0x80, 0x00]);
        let checksum = crc32c::crc32c(&longer[4..]);
        longer[..4].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(RecordHeader::decode_any(&longer), None);
    }
}
