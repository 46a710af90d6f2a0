//! What the broker stores in front of a client's bytes in each entry.
//!
//! ```text
//! u8      format, 2
//! u8      flags: bit 0 = the client's bytes are a batch; the others are 0
//! varint  number of messages in the entry
//! varint  index of the entry's first message in the topic, from 0
//! varint  broker's wall clock when it took the entry, ms
//! varint  that less the publish time told by the client, ms, zigzag
//! ```
//! A varint has seven bits a byte, low ones first. About 14 bytes: each is stored twice by every bookie of the
//! write quorum. Kafka offsets, seek by time and lag in time come from it.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::encoding::{decode_varint, encode_varint};

use crate::domain::{WallTime, unzigzag, zigzag};

/// Format written by this version.
const FORMAT: u8 = 2;
const FLAG_BATCH: u8 = 1;

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
    #[error("entry header of format {0}, this version reads format {FORMAT}")]
    Format(u8),
}

impl EntryHeader {
    /// Upper bound of its length in bytes.
    pub const LENGTH_MAX: usize = 2 + 5 + 3 * 10;

    /// Cuts the stored form, header and client's bytes, off the end of `buffer`'s spare room. Many entries made
    /// in one buffer share its allocation.
    pub fn store_in(&self, buffer: &mut BytesMut, client_bytes: &[u8]) -> Bytes {
        buffer.reserve(Self::LENGTH_MAX + client_bytes.len());
        buffer.put_u8(FORMAT);
        buffer.put_u8(if self.is_batch { FLAG_BATCH } else { 0 });
        encode_varint(u64::from(self.message_count), buffer);
        encode_varint(self.first_index, buffer);
        encode_varint(self.broker_time.0, buffer);
        let delay = self.broker_time.0.wrapping_sub(self.publish_time.0) as i64;
        encode_varint(zigzag(delay), buffer);
        buffer.put_slice(client_bytes);
        buffer.split().freeze()
    }

    /// The stored form in memory of its own.
    pub fn prepend_to(&self, client_bytes: &[u8]) -> Bytes {
        self.store_in(&mut BytesMut::new(), client_bytes)
    }

    /// Splits a stored payload into header and client's bytes.
    pub fn split(stored: &Bytes) -> Result<(Self, Bytes), EntryHeaderError> {
        let malformed = EntryHeaderError::Malformed { length: stored.len() };
        let mut rest = &stored[..];
        match rest.try_get_u8() {
            Ok(FORMAT) => {}
            Ok(format) => return Err(EntryHeaderError::Format(format)),
            Err(_) => return Err(malformed),
        }
        let header = Self::fields(&mut rest).ok_or(malformed)?;
        Ok((header, stored.slice(stored.len() - rest.len()..)))
    }

    fn fields(rest: &mut &[u8]) -> Option<Self> {
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

    #[test]
    fn round_trip_and_refusal() {
        for (message_count, first_index, broker, publish) in [
            (7, 41, 1_796_000_000_000, 1_795_999_999_990),
            (1, 0, 1, 2),
            (u32::MAX, u64::MAX, u64::MAX, 0),
            (1, 1, 0, u64::MAX),
        ] {
            let header = EntryHeader {
                is_batch: message_count > 1,
                message_count,
                first_index,
                broker_time: WallTime(broker),
                publish_time: WallTime(publish),
            };
            let stored = header.prepend_to(b"client");
            assert_eq!(EntryHeader::split(&stored), Ok((header, Bytes::from_static(b"client"))));
            let length = stored.len() - b"client".len();
            assert!(length <= EntryHeader::LENGTH_MAX);
            for cut in 0..length {
                let malformed = EntryHeaderError::Malformed { length: cut };
                assert_eq!(EntryHeader::split(&stored.slice(..cut)), Err(malformed));
            }
        }
        assert_eq!(EntryHeader::split(&Bytes::from(vec![9; 64])), Err(EntryHeaderError::Format(9)));
        let endless = Bytes::from([&[FORMAT, 0][..], &[0xff; 64][..]].concat());
        let malformed = EntryHeaderError::Malformed { length: endless.len() };
        assert_eq!(EntryHeader::split(&endless), Err(malformed));
    }
}
