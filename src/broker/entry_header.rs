//! What the broker stores in front of a client's bytes in each entry. The level (`src/domain/format_level.rs`) says which
//! format is written; each is read.
//!
//! ```text
//! format 2                                      format 1: fixed widths, little-endian
//! u8      format                                 0  u8   format
//! u8      flags: bit 0 = the client's bytes      1  u8   flags, the same
//!         are a batch; the others are 0          2  u16  length of this header, 40; what a reader does not
//!                                                        know at its end is skipped
//! varint  number of messages in the entry        4  u32  number of messages in the entry
//! varint  index of the entry's first message     8  u64  index of the entry's first message
//!         in the topic, from 0
//! varint  broker's wall clock when it took      16  u64  broker's wall clock when it took the entry, ms
//!         the entry, ms
//! varint  that less the publish time told by    24  u64  publish time told by the client, ms
//!         the client, ms, zigzag                32  u64  reserved, 0
//! ```
//! A varint has seven bits a byte, low ones first. About 14 bytes: each is stored twice by every bookie of the
//! write quorum. Kafka offsets, seek by time and lag in time come from it.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint};

use crate::domain::{FormatLevel, WallTime, unzigzag, zigzag};
use crate::mutant;

const FLAG_BATCH: u8 = 1;
/// Length in format 1; in format 2 it is shorter.
const FIXED_LENGTH: usize = 40;

/// The header's facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// The client's bytes are a batch (even of one message).
    pub is_batch: bool,
    /// Messages in the entry, at least 1.
    pub message_count: u32,
    /// Index of its first message in the topic.
    pub first_index: u64,
    /// When the broker took it.
    pub broker_time: WallTime,
    /// When the client says it was published.
    pub publish_time: WallTime,
}

/// Bytes that are not a header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryHeaderError {
    /// No whole header: too short, or a number without an end.
    #[error("{length} bytes do not begin with an entry header")]
    Malformed {
        /// Bytes given.
        length: usize,
    },
    /// A format this version cannot read.
    #[error("entry header of format {found}, this version reads up to {known}")]
    Format {
        /// The header's.
        found: u8,
        /// The newest it knows.
        known: u8,
    },
}

impl EntryHeader {
    /// Upper bound of its length in bytes.
    pub const LENGTH_MAX: usize = FIXED_LENGTH;

    /// Cuts the stored form, header and client's bytes, off the end of `buffer`'s spare room. Many entries made
    /// in one buffer share its allocation.
    pub fn store_in(
        &self,
        buffer: &mut BytesMut,
        client_bytes: &[u8],
        level: FormatLevel,
    ) -> Bytes {
        buffer.reserve(Self::LENGTH_MAX + client_bytes.len());
        buffer.put_u8(level.stored().entry_header);
        buffer.put_u8(if self.is_batch { FLAG_BATCH } else { 0 });
        match level {
            FormatLevel::One => self.put_fixed(buffer),
            FormatLevel::Two => self.put_packed(buffer),
        }
        buffer.put_slice(client_bytes);
        buffer.split().freeze()
    }

    fn put_fixed(&self, buffer: &mut BytesMut) {
        buffer.put_u16_le(FIXED_LENGTH as u16);
        buffer.put_u32_le(self.message_count);
        buffer.put_u64_le(self.first_index);
        buffer.put_u64_le(self.broker_time.0);
        buffer.put_u64_le(self.publish_time.0);
        buffer.put_u64_le(0);
    }

    fn put_packed(&self, buffer: &mut BytesMut) {
        encode_varint(u64::from(self.message_count), buffer);
        encode_varint(self.first_index, buffer);
        encode_varint(self.broker_time.0, buffer);
        let delay = self.broker_time.0.wrapping_sub(self.publish_time.0) as i64;
        encode_varint(zigzag(delay), buffer);
    }

    /// Splits a stored payload into header and client's bytes; a format of a higher level than `reads_up_to` is
    /// refused.
    pub fn split(
        stored: &Bytes,
        reads_up_to: FormatLevel,
    ) -> Result<(Self, Bytes), EntryHeaderError> {
        let malformed = EntryHeaderError::Malformed { length: stored.len() };
        let mut rest = &stored[..];
        let Ok(found) = rest.try_get_u8() else { return Err(malformed) };
        let fields = match reads_up_to.known(|formats| formats.entry_header == found) {
            Some(FormatLevel::One) => Self::take_fixed(&mut rest),
            Some(FormatLevel::Two) => Self::take_packed(&mut rest),
            None => {
                let known = reads_up_to.stored().entry_header;
                return Err(EntryHeaderError::Format { found, known });
            }
        };
        let header = fields.ok_or(malformed)?;
        Ok((header, stored.slice(stored.len() - rest.len()..)))
    }

    fn take_fixed(rest: &mut &[u8]) -> Option<Self> {
        let flags = rest.try_get_u8().ok()?;
        let length = usize::from(rest.try_get_u16_le().ok()?);
        let message_count = rest.try_get_u32_le().ok()?.max(1);
        let mut number = || rest.try_get_u64_le().ok();
        let (mut first_index, mut broker_time) = (number()?, number()?);
        if mutant!("V-fields") {
            std::mem::swap(&mut first_index, &mut broker_time);
        }
        let publish_time = number()?;
        // Reserved.
        number()?;
        let unknown = length.checked_sub(FIXED_LENGTH)?;
        *rest = rest.get(unknown..)?;
        Some(Self {
            is_batch: flags & FLAG_BATCH != 0,
            message_count,
            first_index,
            broker_time: WallTime(broker_time),
            publish_time: WallTime(publish_time),
        })
    }

    fn take_packed(rest: &mut &[u8]) -> Option<Self> {
        let flags = rest.try_get_u8().ok()?;
        let mut number = || decode_varint(rest).ok();
        let message_count = u32::try_from(number()?).ok()?.max(1);
        let first_index = number()?;
        let broker_time = number()?;
        let delay = unzigzag(number()?);
        Some(Self {
            is_batch: flags & FLAG_BATCH != 0,
            message_count,
            first_index,
            broker_time: WallTime(broker_time),
            publish_time: WallTime(broker_time.wrapping_sub(delay as u64)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_at(level: FormatLevel, header: &EntryHeader, client_bytes: &[u8]) -> Bytes {
        header.store_in(&mut BytesMut::new(), client_bytes, level)
    }

    fn split(stored: &Bytes) -> Result<(EntryHeader, Bytes), EntryHeaderError> {
        EntryHeader::split(stored, FormatLevel::NEWEST)
    }

    const HEADERS: [(u32, u64, u64, u64); 4] = [
        (7, 41, 1_796_000_000_000, 1_795_999_999_990),
        (1, 0, 1, 2),
        (u32::MAX, u64::MAX, u64::MAX, 0),
        (1, 1, 0, u64::MAX),
    ];

    fn header((message_count, first_index, broker, publish): (u32, u64, u64, u64)) -> EntryHeader {
        EntryHeader {
            is_batch: message_count > 1,
            message_count,
            first_index,
            broker_time: WallTime(broker),
            publish_time: WallTime(publish),
        }
    }

    #[test]
    fn each_level_is_read_back_and_what_is_cut_is_refused() {
        for level in FormatLevel::ALL {
            for header in HEADERS.map(header) {
                let stored = stored_at(level, &header, b"client");
                assert_eq!(split(&stored), Ok((header, Bytes::from_static(b"client"))));
                let length = stored.len() - b"client".len();
                assert!(length <= EntryHeader::LENGTH_MAX);
                for cut in 0..length {
                    let malformed = EntryHeaderError::Malformed { length: cut };
                    assert_eq!(split(&stored.slice(..cut)), Err(malformed));
                }
            }
        }
        let endless = Bytes::from([&[2, 0][..], &[0xff; 64][..]].concat());
        let malformed = EntryHeaderError::Malformed { length: endless.len() };
        assert_eq!(split(&endless), Err(malformed));
    }

    /// Byte by byte as the versions before level 2 wrote it, whose entries are still there.
    #[test]
    fn level_1_is_what_former_versions_wrote_and_read() {
        let written = [
            &[1, 1, 40, 0][..],
            &[7, 0, 0, 0],
            &[41, 0, 0, 0, 0, 0, 0, 0],
            &[0x39, 0x30, 0, 0, 0, 0, 0, 0],
            &[0x31, 0xd4, 0, 0, 0, 0, 0, 0],
            &[0; 8],
            b"client",
        ]
        .concat();
        let header = header((7, 41, 12_345, 54_321));
        assert_eq!(stored_at(FormatLevel::One, &header, b"client"), written);
        let client = Bytes::from_static(b"client");
        assert_eq!(split(&Bytes::from(written.clone())), Ok((header, client.clone())));
        // A header that says it is longer: what is at its end is skipped.
        let mut longer = written;
        longer[2] = 43;
        longer.splice(40..40, [9, 9, 9]);
        assert_eq!(split(&Bytes::from(longer.clone())), Ok((header, client)));
        longer[2] = 39;
        assert!(split(&Bytes::from(longer)).is_err());
    }

    #[test]
    fn level_2_has_not_changed() {
        let stored = stored_at(FormatLevel::Two, &header((7, 41, 12_345, 12_340)), b"client");
        assert_eq!(stored, [&[2, 1, 7, 41, 0xb9, 0x60, 10][..], b"client"].concat());
    }

    #[test]
    fn a_format_that_is_not_known_is_refused_with_both_numbers() {
        let unknown = split(&Bytes::from(vec![9; 64])).unwrap_err();
        assert_eq!(unknown, EntryHeaderError::Format { found: 9, known: 2 });
        let packed = stored_at(FormatLevel::Two, &header(HEADERS[0]), b"client");
        let refused = EntryHeader::split(&packed, FormatLevel::One).unwrap_err();
        assert_eq!(refused.to_string(), "entry header of format 2, this version reads up to 1");
    }
}
