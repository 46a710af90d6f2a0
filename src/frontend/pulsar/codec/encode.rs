//! Frames out. Receipts and message heads are written by hand: they go out hundreds of thousands of times
//! a second, and their generated messages hold vectors and boxes.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};

use super::command::Command;
use super::proto;
use crate::domain::Position;

const MAGIC_CHECKSUM: u16 = 0x0e01;
const SEND_RECEIPT: u64 = 7;
const MESSAGE: u64 = 9;

/// Appends a simple command's frame.
pub fn encode_command(command: &Command, buffer: &mut BytesMut) {
    let size = command.encoded_length();
    buffer.reserve(8 + size);
    buffer.put_u32(size as u32 + 4);
    buffer.put_u32(size as u32);
    command.encode(buffer);
}

/// Appends a frame of a command and an entry (as [`encode_entry`] makes it).
pub fn encode_payload_command(command: &Command, entry: &[u8], buffer: &mut BytesMut) {
    let size = command.encoded_length();
    buffer.reserve(8 + size + entry.len());
    buffer.put_u32((size + 4 + entry.len()) as u32);
    buffer.put_u32(size as u32);
    command.encode(buffer);
    buffer.put_slice(entry);
}

/// An entry with its checksum.
pub fn encode_entry(metadata: &proto::MessageMetadata, payload: &[u8]) -> Bytes {
    let size = metadata.encoded_len();
    let mut buffer = BytesMut::with_capacity(10 + size + payload.len());
    buffer.put_u16(MAGIC_CHECKSUM);
    buffer.put_u32(0);
    buffer.put_u32(size as u32);
    metadata.encode_raw(&mut buffer);
    buffer.put_slice(payload);
    let checksum = crc32c::crc32c(&buffer[6..]);
    buffer[2..6].copy_from_slice(&checksum.to_be_bytes());
    buffer.freeze()
}

fn number_length(value: u64) -> usize {
    1 + encoded_len_varint(value)
}

/// Appends field `field` (below 16) with a varint value.
fn put_number(field: u8, value: u64, buffer: &mut BytesMut) {
    buffer.put_u8(field << 3);
    encode_varint(value, buffer);
}

fn message_id_length(position: Position, partition: Option<u32>) -> usize {
    number_length(position.ledger.0)
        + number_length(position.entry.0 as u64)
        + partition.map_or(0, |partition| number_length(u64::from(partition)))
}

fn put_message_id(position: Position, partition: Option<u32>, buffer: &mut BytesMut) {
    put_number(1, position.ledger.0, buffer);
    put_number(2, position.entry.0 as u64, buffer);
    if let Some(partition) = partition {
        put_number(3, u64::from(partition), buffer);
    }
}

/// The envelope of a command of number below 16 with a body of `body` bytes and `payload` bytes after it.
fn put_envelope(number: u64, body: usize, payload: usize, buffer: &mut BytesMut) {
    let size = 3 + encoded_len_varint(body as u64) + body;
    buffer.reserve(8 + size + payload);
    buffer.put_u32((4 + size + payload) as u32);
    buffer.put_u32(size as u32);
    buffer.put_u8(1 << 3);
    buffer.put_u8(number as u8);
    buffer.put_u8((number << 3 | 2) as u8);
    encode_varint(body as u64, buffer);
}

/// Appends a SEND_RECEIPT. The partition is left out: clients fill it in.
pub fn encode_send_receipt(
    producer_id: u64,
    sequence_id: u64,
    highest_sequence_id: Option<u64>,
    position: Position,
    buffer: &mut BytesMut,
) {
    let id = message_id_length(position, None);
    let body = number_length(producer_id)
        + number_length(sequence_id)
        + number_length(id as u64)
        + id
        + highest_sequence_id.map_or(0, number_length);
    put_envelope(SEND_RECEIPT, body, 0, buffer);
    put_number(1, producer_id, buffer);
    put_number(2, sequence_id, buffer);
    buffer.put_u8(3 << 3 | 2);
    encode_varint(id as u64, buffer);
    put_message_id(position, None, buffer);
    if let Some(highest) = highest_sequence_id {
        put_number(4, highest, buffer);
    }
}

/// What a MESSAGE says of the entry that follows it.
#[derive(Clone, Copy, Debug)]
pub struct MessageHead<'a> {
    /// The consumer on this connection.
    pub consumer_id: u64,
    /// Where the entry is.
    pub position: Position,
    /// The partition, if the topic is one.
    pub partition: Option<u32>,
    /// Times it was asked for again.
    pub redelivery_count: u32,
    /// Bit set = not yet acknowledged.
    pub ack_set: &'a [u64],
    /// The consumer's epoch, if it has one.
    pub consumer_epoch: Option<u64>,
}

/// Appends a MESSAGE frame up to the entry, which the caller puts right behind it.
pub fn encode_message_head(head: &MessageHead<'_>, entry_length: usize, buffer: &mut BytesMut) {
    let id = message_id_length(head.position, head.partition);
    let body = number_length(head.consumer_id)
        + number_length(id as u64)
        + id
        + if head.redelivery_count > 0 {
            number_length(u64::from(head.redelivery_count))
        } else {
            0
        }
        + head.ack_set.iter().map(|word| number_length(*word)).sum::<usize>()
        + head.consumer_epoch.map_or(0, number_length);
    put_envelope(MESSAGE, body, entry_length, buffer);
    put_number(1, head.consumer_id, buffer);
    buffer.put_u8(2 << 3 | 2);
    encode_varint(id as u64, buffer);
    put_message_id(head.position, head.partition, buffer);
    if head.redelivery_count > 0 {
        put_number(3, u64::from(head.redelivery_count), buffer);
    }
    for word in head.ack_set {
        put_number(4, *word, buffer);
    }
    if let Some(epoch) = head.consumer_epoch {
        put_number(5, epoch, buffer);
    }
}
