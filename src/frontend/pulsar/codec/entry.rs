//! What follows a SEND or MESSAGE command, and what the broker must know of it.
//!
//! ```text
//! [u16 0x0e02, u32 size, BrokerEntryMetadata]   only broker to client, we never send it
//! u16 0x0e01
//! u32 CRC-32C of all that follows
//! u32 size of the metadata
//! MessageMetadata
//! payload to the end
//! ```
//! The bytes from `0x0e01` on are what is stored and delivered, untouched.

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::{mutant, reached};

const MAGIC_CHECKSUM: u16 = 0x0e01;
const MAGIC_BROKER_ENTRY: u16 = 0x0e02;
/// Bytes from the magic up to what the checksum covers.
const CHECKED_FROM: usize = 6;
/// Bytes from the magic up to the metadata.
const METADATA_FROM: usize = 10;
/// Most messages one entry may claim to hold; a compressed batch cannot be counted, so the claim is bounded.
pub const ENTRY_MESSAGES_MAX: u32 = 1 << 20;

const PUBLISH_TIME: u32 = 3;
const MESSAGES_IN_BATCH: u32 = 11;
const MARKER_TYPE: u32 = 20;

/// An entry that cannot be stored or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Too short for what it says of itself.
    #[error("an entry of {length} bytes is cut off")]
    Short {
        /// Bytes given.
        length: usize,
    },
    /// Damaged on the way.
    #[error("checksum is {found:#010x}, computed {computed:#010x}")]
    Checksum {
        /// Carried.
        found: u32,
        /// Computed.
        computed: u32,
    },
    /// The metadata is not protobuf, or breaks a rule.
    #[error("bad message metadata: {0}")]
    Metadata(&'static str),
}

/// What the broker must know of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFacts {
    /// Stored form: begins with the magic and a checksum even if the client sent none.
    pub stored: Bytes,
    /// Messages in it, at least 1.
    pub message_count: u32,
    /// It is a batch, even of one.
    pub is_batch: bool,
    /// The client's publish time, ms since 1970.
    pub publish_time: u64,
}

/// An entry taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryParts {
    /// The encoded `MessageMetadata`.
    pub metadata: Bytes,
    /// The payload, compressed as the metadata says.
    pub payload: Bytes,
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..offset + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..offset + 4)
        .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// Checks an entry sent by a client and tells what the broker must know of it. Allocates only when the
/// client left the checksum out (old clients may): then one is put in front, since some consumers
/// refuse entries without.
pub fn inspect_entry(sent: &Bytes) -> Result<EntryFacts, EntryError> {
    let short = EntryError::Short { length: sent.len() };
    let stored = if u16_at(sent, 0) == Some(MAGIC_CHECKSUM) {
        sent.clone()
    } else {
        reached!("pulsar codec: entry without a checksum");
        with_checksum(sent)
    };
    let found = u32_at(&stored, 2).ok_or(short)?;
    let checked = stored.get(CHECKED_FROM..).ok_or(short)?;
    let computed = crc32c::crc32c(checked);
    if found != computed && !mutant!("F-crc") {
        return Err(EntryError::Checksum { found, computed });
    }
    let size = u32_at(&stored, CHECKED_FROM).ok_or(short)? as usize;
    let end = METADATA_FROM.checked_add(size).ok_or(short)?;
    let metadata = stored.get(METADATA_FROM..end).ok_or(short)?;
    let mut facts = scan_metadata(metadata)?;
    facts.stored = stored;
    Ok(facts)
}

fn with_checksum(bare: &[u8]) -> Bytes {
    let mut buffer = BytesMut::with_capacity(CHECKED_FROM + bare.len());
    buffer.put_u16(MAGIC_CHECKSUM);
    buffer.put_u32(crc32c::crc32c(bare));
    buffer.put_slice(bare);
    buffer.freeze()
}

fn scan_metadata(metadata: &[u8]) -> Result<EntryFacts, EntryError> {
    let malformed = |_| EntryError::Metadata("not protobuf");
    let mut facts =
        EntryFacts { stored: Bytes::new(), message_count: 1, is_batch: false, publish_time: 0 };
    let mut rest = metadata;
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(&mut rest).map_err(malformed)?;
        if wire_type != WireType::Varint {
            skip_field(wire_type, tag, &mut rest, DecodeContext::default()).map_err(malformed)?;
            continue;
        }
        let value = decode_varint(&mut rest).map_err(malformed)?;
        match tag {
            PUBLISH_TIME => facts.publish_time = value,
            MESSAGES_IN_BATCH => {
                facts.is_batch = true;
                // A negative int32 comes as a 64-bit number far above the bound.
                facts.message_count = u32::try_from(value)
                    .ok()
                    .filter(|count| *count <= ENTRY_MESSAGES_MAX)
                    .ok_or(EntryError::Metadata("impossible number of messages in a batch"))?
                    .max(1);
            }
            MARKER_TYPE => return Err(EntryError::Metadata("a client may not write markers")),
            _ => {}
        }
    }
    Ok(facts)
}

/// Takes a delivered entry apart, checking its checksum if it has one.
pub fn split_entry(delivered: &Bytes) -> Result<EntryParts, EntryError> {
    let short = EntryError::Short { length: delivered.len() };
    let mut rest = delivered.clone();
    if u16_at(&rest, 0) == Some(MAGIC_BROKER_ENTRY) {
        let size = u32_at(&rest, 2).ok_or(short)? as usize;
        let end = size.checked_add(6).filter(|end| *end <= rest.len()).ok_or(short)?;
        rest = rest.slice(end..);
    }
    if u16_at(&rest, 0) == Some(MAGIC_CHECKSUM) {
        let found = u32_at(&rest, 2).ok_or(short)?;
        rest = rest.slice(CHECKED_FROM..);
        let computed = crc32c::crc32c(&rest);
        if found != computed {
            return Err(EntryError::Checksum { found, computed });
        }
    }
    let size = u32_at(&rest, 0).ok_or(short)? as usize;
    let end = size.checked_add(4).filter(|end| *end <= rest.len()).ok_or(short)?;
    Ok(EntryParts { metadata: rest.slice(4..end), payload: rest.slice(end..) })
}
