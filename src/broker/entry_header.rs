//! What the broker stores in front of a client's bytes in each entry.
//!
//! ```text
//! offset  0  u8   format, 1
//!         1  u8   flags: bit 0 = the client's bytes are a batch
//!         2  u16  length of this header in bytes, 40 (a reader skips what it does not know)
//!         4  u32  number of messages in the entry
//!         8  u64  index of the entry's first message in the topic, from 0
//!        16  u64  broker's wall clock when it took the entry, ms
//!        24  u64  publish time told by the client, ms
//!        32  u64  reserved, 0
//! ```
//! All little-endian. Kafka offsets, seek by time and lag in time come from it.

use bytes::{BufMut, Bytes, BytesMut};

use crate::domain::WallTime;

/// Format written by this version.
const FORMAT: u8 = 1;
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
    /// Shorter than a header.
    #[error("{length} bytes are shorter than an entry header")]
    Short {
        /// Bytes given.
        length: usize,
    },
    /// A format this version cannot read.
    #[error("entry header of format {0}, this version reads up to {FORMAT}")]
    Format(u8),
}

impl EntryHeader {
    /// Length in bytes.
    pub const LENGTH: usize = 40;

    /// Cuts the stored form, header and client's bytes, off the end of `buffer`'s spare room. Many entries made
    /// in one buffer share its allocation.
    pub fn store_in(&self, buffer: &mut BytesMut, client_bytes: &[u8]) -> Bytes {
        let mut header = [0_u8; Self::LENGTH];
        header[0] = FORMAT;
        header[1] = if self.is_batch { FLAG_BATCH } else { 0 };
        header[2..4].copy_from_slice(&(Self::LENGTH as u16).to_le_bytes());
        header[4..8].copy_from_slice(&self.message_count.to_le_bytes());
        header[8..16].copy_from_slice(&self.first_index.to_le_bytes());
        header[16..24].copy_from_slice(&self.broker_time.0.to_le_bytes());
        header[24..32].copy_from_slice(&self.publish_time.0.to_le_bytes());
        buffer.reserve(Self::LENGTH + client_bytes.len());
        buffer.put_slice(&header);
        buffer.put_slice(client_bytes);
        buffer.split().freeze()
    }

    /// The stored form in memory of its own.
    pub fn prepend_to(&self, client_bytes: &[u8]) -> Bytes {
        self.store_in(&mut BytesMut::new(), client_bytes)
    }

    /// Splits a stored payload into header and client's bytes.
    pub fn split(stored: &Bytes) -> Result<(Self, Bytes), EntryHeaderError> {
        use bytes::Buf;
        let short = EntryHeaderError::Short { length: stored.len() };
        if stored.len() < Self::LENGTH {
            return Err(short);
        }
        let mut reader = &stored[..];
        let format = reader.get_u8();
        if format != FORMAT {
            return Err(EntryHeaderError::Format(format));
        }
        let flags = reader.get_u8();
        let length = usize::from(reader.get_u16_le());
        if length < Self::LENGTH || stored.len() < length {
            return Err(short);
        }
        let header = Self {
            is_batch: flags & FLAG_BATCH != 0,
            message_count: reader.get_u32_le().max(1),
            first_index: reader.get_u64_le(),
            broker_time: WallTime(reader.get_u64_le()),
            publish_time: WallTime(reader.get_u64_le()),
        };
        Ok((header, stored.slice(length..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusal() {
        let header = EntryHeader {
            is_batch: true,
            message_count: 7,
            first_index: 41,
            broker_time: WallTime(1),
            publish_time: WallTime(2),
        };
        let stored = header.prepend_to(b"client");
        assert_eq!(EntryHeader::split(&stored), Ok((header, Bytes::from_static(b"client"))));
        assert!(EntryHeader::split(&stored.slice(..39)).is_err());
        assert_eq!(EntryHeader::split(&Bytes::from(vec![9; 64])), Err(EntryHeaderError::Format(9)));
    }
}
