//! A group of records: what one journal write and one sync make durable.
//!
//! ```text
//!  0 u32 "SWJ2" or "SWJ1"    32 u32 body length
//!  4 u32 zero                36 u32 number of records
//!  8 u64 file id             40 u32 CRC-32C of all record headers, one after the other
//! 16 u64 offset in the file  44..60 zero
//! 24 u64 sequence            60 u32 CRC-32C of the 60 bytes before
//! 64 records, then zeros up to a multiple of 4096
//! ```
//! The first four bytes say the level that all its records have (`src/domain/format_level.rs`); groups of different
//! levels may follow each other. The file id and offset tell this life of a recycled file from its previous one. The
//! checksum over record headers (they hold the entries' digests) ties every sector of the group to it: sectors of an
//! older group with records of the same sizes cannot pass for it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::bookie::record::{RecordHeader, RecordKind, split_record, u32_at, u64_at};
use crate::domain::{CreatorToken, Entry, FormatLevel, LedgerId};
use crate::mutant;

/// Groups begin at multiples of this: a page is never written again once acknowledged.
pub(in crate::bookie) const GROUP_ALIGNMENT: usize = 4096;
/// Bytes of a group's header.
pub(in crate::bookie) const GROUP_HEADER_BYTES: usize = 64;

/// Builds groups, one at a time, in one reused buffer.
pub(super) struct GroupBuilder {
    buffer: BytesMut,
    checksum: u32,
    records: u32,
    level: FormatLevel,
}

impl GroupBuilder {
    /// Its groups and their records will be of this level.
    pub(super) fn new(level: FormatLevel) -> Self {
        Self { buffer: BytesMut::new(), checksum: 0, records: 0, level }
    }

    /// Begins a group in a buffer with room for `capacity` bytes.
    pub(super) fn begin(&mut self, capacity: usize) {
        self.buffer.clear();
        // Takes the former group's memory back when its write has let go of it. Begins at a whole page, so that it
        // can be written past the page cache.
        self.buffer.reserve(capacity + GROUP_ALIGNMENT);
        let lead = self.buffer.as_ptr().align_offset(GROUP_ALIGNMENT).min(GROUP_ALIGNMENT);
        self.buffer.put_bytes(0, lead);
        self.buffer.advance(lead);
        self.buffer.put_bytes(0, GROUP_HEADER_BYTES);
        self.checksum = 0;
        self.records = 0;
    }

    pub(super) fn push_entry(&mut self, entry: &Entry) {
        self.push(RecordHeader::of_entry(entry, self.level));
        self.buffer.put_slice(&entry.payload);
    }

    /// A record about a ledger.
    pub(super) fn push_ledger(
        &mut self,
        kind: RecordKind,
        ledger: LedgerId,
        creator: CreatorToken,
    ) {
        self.push(RecordHeader::of_ledger(kind, ledger, creator, self.level));
    }

    fn push(&mut self, record: RecordHeader) {
        let length = record.encode(&mut self.buffer);
        let header = &self.buffer[self.buffer.len() - length..];
        self.checksum = crc32c::crc32c_append(self.checksum, header);
        self.records += 1;
    }

    pub(super) fn length(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The group's bytes, padded, for this place.
    pub(super) fn finish(&mut self, file: u64, offset: u64, sequence: u64) -> Bytes {
        let body = u32::try_from(self.buffer.len() - GROUP_HEADER_BYTES).unwrap_or(u32::MAX);
        let padded = self.buffer.len().next_multiple_of(GROUP_ALIGNMENT);
        self.buffer.put_bytes(0, padded - self.buffer.len());
        let header = &mut self.buffer[..GROUP_HEADER_BYTES];
        header[0..4].copy_from_slice(&self.level.stored().journal_group);
        header[8..16].copy_from_slice(&file.to_le_bytes());
        header[16..24].copy_from_slice(&offset.to_le_bytes());
        header[24..32].copy_from_slice(&sequence.to_le_bytes());
        header[32..36].copy_from_slice(&body.to_le_bytes());
        header[36..40].copy_from_slice(&self.records.to_le_bytes());
        header[40..44].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&header[..60]);
        header[60..64].copy_from_slice(&checksum.to_le_bytes());
        self.buffer.split().freeze()
    }
}

/// The bytes of a group of records read back, for another place, at this level whatever theirs was.
pub(super) fn group_again(
    records: &[(RecordHeader, Bytes)],
    file: u64,
    offset: u64,
    sequence: u64,
    level: FormatLevel,
) -> Bytes {
    let mut builder = GroupBuilder::new(level);
    let headers = records.iter().map(|(header, _)| RecordHeader { level, ..*header });
    let body: usize = headers.clone().map(|header| header.total_length()).sum();
    builder.begin(GROUP_HEADER_BYTES + body + GROUP_ALIGNMENT);
    for (header, (_, payload)) in headers.zip(records) {
        builder.push(header);
        builder.buffer.put_slice(payload);
    }
    builder.finish(file, offset, sequence)
}

/// A decoded group header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bookie) struct GroupHeader {
    /// Its number.
    pub sequence: u64,
    /// Bytes of records.
    pub body_length: u32,
    /// Number of records.
    pub records: u32,
    /// Theirs.
    pub level: FormatLevel,
    checksum: u32,
}

impl GroupHeader {
    /// The header of a group of this life of file `file` at `offset`; `None` for anything else.
    pub fn decode(bytes: &[u8], file: u64, offset: u64) -> Option<Self> {
        let header = bytes.get(..GROUP_HEADER_BYTES)?;
        let level = FormatLevel::NEWEST.known(|formats| header[..4] == formats.journal_group)?;
        // Planted bug: a reader that knows only what it writes.
        if level < FormatLevel::NEWEST && mutant!("V-journal") {
            return None;
        }
        let mine = u64_at(header, 8) == file
            && u64_at(header, 16) == offset
            && u32_at(header, 60) == crc32c::crc32c(&header[..60]);
        mine.then(|| Self {
            sequence: u64_at(header, 24),
            body_length: u32_at(header, 32),
            records: u32_at(header, 36),
            level,
            checksum: u32_at(header, 40),
        })
    }

    /// Bytes from this group to the next.
    pub const fn padded_length(&self) -> u64 {
        ((self.body_length as usize + GROUP_HEADER_BYTES).next_multiple_of(GROUP_ALIGNMENT)) as u64
    }
}

/// Why bytes are not a whole group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookie) enum GroupDamage {
    /// No group of this file begins here.
    NoHeader,
    /// The header is good, what follows is torn or damaged.
    Body(String),
}

/// A whole group.
pub(in crate::bookie) struct ParsedGroup {
    /// Its header.
    pub header: GroupHeader,
    /// Its records, with payloads.
    pub records: Vec<(RecordHeader, Bytes)>,
}

/// Reads the group at the start of `bytes`, checking everything.
pub(in crate::bookie) fn parse_group(
    bytes: &Bytes,
    file: u64,
    offset: u64,
) -> Result<ParsedGroup, GroupDamage> {
    let header = GroupHeader::decode(bytes, file, offset).ok_or(GroupDamage::NoHeader)?;
    let end = GROUP_HEADER_BYTES + header.body_length as usize;
    if end > bytes.len() {
        return Err(GroupDamage::Body("cut short".to_owned()));
    }
    let body = bytes.slice(..end);
    let mut at = GROUP_HEADER_BYTES;
    let mut checksum = 0;
    let mut records = Vec::new();
    for number in 0..header.records {
        let Some((record, payload)) = split_record(&body, at, header.level) else {
            return Err(GroupDamage::Body(format!("record {number} is damaged")));
        };
        checksum = crc32c::crc32c_append(checksum, &body[at..at + record.length()]);
        if record.kind == RecordKind::Entry {
            let entry = record.into_entry(payload.clone());
            entry.verify_digest().map_err(|damage| GroupDamage::Body(damage.to_string()))?;
        }
        at += record.total_length();
        records.push((record, payload));
    }
    if at != end || checksum != header.checksum {
        return Err(GroupDamage::Body("records of another group".to_owned()));
    }
    Ok(ParsedGroup { header, records })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::EntryId;

    const PLACE: (u64, u64) = (3, 8192);

    /// A group of one entry with so many bytes of payload.
    fn group(payload: usize) -> Bytes {
        let mut builder = GroupBuilder::new(FormatLevel::NEWEST);
        builder.begin(2 * GROUP_ALIGNMENT);
        let payload = Bytes::from(vec![7; payload]);
        let length = payload.len() as u64;
        let entry = Entry::seal(LedgerId(1), EntryId(0), EntryId::NONE, length, payload);
        builder.push_entry(&entry);
        builder.finish(PLACE.0, PLACE.1, 9)
    }

    /// The payload with which a group ends where a page does.
    fn payload_of_a_page() -> usize {
        let fits = |payload: &usize| group(*payload).len() == GROUP_ALIGNMENT;
        (0..GROUP_ALIGNMENT).rev().find(fits).unwrap()
    }

    #[test]
    fn a_group_may_end_where_a_page_does() {
        let whole = payload_of_a_page();
        for (payload, length) in [(whole - 1, 4096), (whole, 4096), (whole + 1, 8192)] {
            let bytes = group(payload);
            assert_eq!(bytes.len(), length);
            let parsed = parse_group(&bytes, PLACE.0, PLACE.1).ok().unwrap();
            assert_eq!((parsed.header.sequence, parsed.header.records), (9, 1));
            assert_eq!(parsed.header.padded_length(), length as u64);
            assert_eq!(parsed.records[0].1.len(), payload);
        }
    }

    #[test]
    fn no_byte_of_a_group_may_be_another() {
        let bytes = group(payload_of_a_page());
        for at in 0..bytes.len() {
            let mut flipped = BytesMut::from(&bytes[..]);
            flipped[at] ^= 0x10;
            assert!(parse_group(&flipped.freeze(), PLACE.0, PLACE.1).is_err(), "byte {at}");
        }
        for cut in [0, 10, GROUP_HEADER_BYTES, GROUP_HEADER_BYTES + 1, bytes.len() - 1] {
            assert!(parse_group(&bytes.slice(..cut), PLACE.0, PLACE.1).is_err(), "{cut} bytes");
        }
        assert!(parse_group(&bytes, PLACE.0 + 1, PLACE.1).is_err(), "of another file");
        assert!(parse_group(&bytes, PLACE.0, 0).is_err(), "of another place");
    }
}
