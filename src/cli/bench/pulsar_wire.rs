//! As much of the Pulsar protocol as a load generator needs, written for speed: a frame is a template in
//! which only the sequence id (and the stamp and checksum, if any) change.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::BenchError;
use super::wire::{self, MessageShape};

/// Command types; the field of a command has its type's number.
const CONNECT: u64 = 2;
/// The answer to CONNECT.
pub(super) const CONNECTED: u64 = 3;
const SUBSCRIBE: u64 = 4;
const PRODUCER: u64 = 5;
const SEND: u64 = 6;
const SEND_RECEIPT: u64 = 7;
const SEND_ERROR: u64 = 8;
const MESSAGE: u64 = 9;
const ACK: u64 = 10;
const FLOW: u64 = 11;
/// The answer to SUBSCRIBE.
pub(super) const SUCCESS: u64 = 13;
const ERROR: u64 = 14;
const CLOSE_PRODUCER: u64 = 15;
const CLOSE_CONSUMER: u64 = 16;
/// The answer to PRODUCER.
pub(super) const PRODUCER_SUCCESS: u64 = 17;
const PING: u64 = 18;
const PONG: u64 = 19;

/// Marks a payload with checksum.
const MAGIC: u16 = 0x0e01;
/// Protocol version told.
const PROTOCOL_VERSION: u64 = 20;
/// Messages the consumer lets come before it gives new permits.
pub(super) const QUEUE: u64 = 5_000;
/// Permits given, and messages acknowledged, at a time.
const REFILL: u64 = 1_000;
/// Sequence ids begin here, so that all have five bytes on the wire.
const FIRST_SEQUENCE: u64 = 1 << 28;
const SEQUENCE_BYTES: usize = 5;

fn put_varint(mut value: u64, out: &mut BytesMut) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn put_number(field: u64, value: u64, out: &mut BytesMut) {
    put_varint(field << 3, out);
    put_varint(value, out);
}

fn put_bytes(field: u64, value: &[u8], out: &mut BytesMut) {
    put_varint(field << 3 | 2, out);
    put_varint(value.len() as u64, out);
    out.put_slice(value);
}

/// A simple command as a frame.
fn command(kind: u64, fields: &[u8]) -> BytesMut {
    let mut base = BytesMut::new();
    put_number(1, kind, &mut base);
    put_bytes(kind, fields, &mut base);
    let mut frame = BytesMut::new();
    frame.put_u32(base.len() as u32 + 4);
    frame.put_u32(base.len() as u32);
    frame.put_slice(&base);
    frame
}

/// CONNECT.
pub(super) fn connect() -> BytesMut {
    let mut fields = BytesMut::new();
    put_bytes(1, b"seawall-bench", &mut fields);
    put_number(4, PROTOCOL_VERSION, &mut fields);
    command(CONNECT, &fields)
}

/// PRODUCER with id 0.
pub(super) fn producer(topic: &str, name: &str) -> BytesMut {
    let mut fields = BytesMut::new();
    put_bytes(1, topic.as_bytes(), &mut fields);
    put_number(2, 0, &mut fields);
    put_number(3, 1, &mut fields);
    put_bytes(4, name.as_bytes(), &mut fields);
    command(PRODUCER, &fields)
}

/// SUBSCRIBE, Exclusive, durable, with consumer id 0.
pub(super) fn subscribe(topic: &str, from_start: bool) -> BytesMut {
    let mut fields = BytesMut::new();
    put_bytes(1, topic.as_bytes(), &mut fields);
    put_bytes(2, b"bench", &mut fields);
    put_number(3, 0, &mut fields);
    put_number(4, 0, &mut fields);
    put_number(5, 1, &mut fields);
    put_number(13, u64::from(from_start), &mut fields);
    command(SUBSCRIBE, &fields)
}

/// FLOW for consumer 0.
pub(super) fn flow(permits: u64) -> BytesMut {
    let mut fields = BytesMut::new();
    put_number(1, 0, &mut fields);
    put_number(2, permits, &mut fields);
    command(FLOW, &fields)
}

/// Cumulative ACK of consumer 0, without a receipt.
fn acknowledge(message_id: &[u8]) -> BytesMut {
    let mut fields = BytesMut::new();
    put_number(1, 0, &mut fields);
    put_number(2, 1, &mut fields);
    put_bytes(3, message_id, &mut fields);
    command(ACK, &fields)
}

/// Makes SEND frames of producer 0.
pub(super) struct Encoder {
    template: Vec<u8>,
    sequence_at: usize,
    checksum_at: usize,
    payload_at: usize,
}

impl Encoder {
    /// For messages of this shape by the producer of this name.
    pub(super) fn new(shape: MessageShape, producer_name: &str) -> Self {
        let mut send = BytesMut::new();
        put_number(1, 0, &mut send);
        put_number(2, FIRST_SEQUENCE, &mut send);
        let sequence_end = send.len();
        put_number(3, u64::from(shape.batch), &mut send);
        let mut frame = command(SEND, &send);
        let sequence_at = frame.len() - send.len() + sequence_end - SEQUENCE_BYTES;
        let mut metadata = BytesMut::new();
        put_bytes(1, producer_name.as_bytes(), &mut metadata);
        put_number(2, 0, &mut metadata);
        put_number(3, 1_700_000_000_000, &mut metadata);
        let mut payload = BytesMut::new();
        if shape.batch > 1 {
            put_number(11, u64::from(shape.batch), &mut metadata);
            for _ in 0..shape.batch {
                let mut single = BytesMut::new();
                put_number(3, shape.size as u64, &mut single);
                payload.put_u32(single.len() as u32);
                payload.put_slice(&single);
                payload.put_slice(&wire::payload(shape.size));
            }
        } else {
            payload.put_slice(&wire::payload(shape.size));
        }
        frame.put_u16(MAGIC);
        let checksum_at = frame.len();
        frame.put_u32(0);
        frame.put_u32(metadata.len() as u32);
        frame.put_slice(&metadata);
        let payload_at = frame.len();
        frame.put_slice(&payload);
        let mut encoder = Self { template: frame.to_vec(), sequence_at, checksum_at, payload_at };
        let total = (encoder.template.len() - 4) as u32;
        encoder.patch(0, &total.to_be_bytes());
        encoder.seal();
        encoder
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.template.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Computes the checksum over metadata size, metadata and payload.
    fn seal(&mut self) {
        let covered = self.template.get(self.checksum_at + 4..).unwrap_or_default();
        let checksum = crc32c::crc32c(covered).to_be_bytes();
        self.patch(self.checksum_at, &checksum);
    }

    /// Appends frame `number`.
    pub(super) fn frame(&mut self, number: u64, stamp: Option<u64>, out: &mut BytesMut) {
        let mut sequence = FIRST_SEQUENCE + number;
        let mut bytes = [0_u8; SEQUENCE_BYTES];
        for byte in &mut bytes {
            *byte = sequence as u8 | 0x80;
            sequence >>= 7;
        }
        bytes[SEQUENCE_BYTES - 1] &= 0x7f;
        self.patch(self.sequence_at, &bytes);
        if let Some(stamp) = stamp {
            self.patch(self.payload_at, &stamp.to_be_bytes());
            self.seal();
        }
        out.extend_from_slice(&self.template);
    }
}

/// Takes the next whole frame, without its length.
pub(super) fn next_frame(input: &mut BytesMut) -> Option<Bytes> {
    let length = u32::from_be_bytes(*input.first_chunk::<4>()?) as usize;
    if input.len() < 4 + length {
        return None;
    }
    input.advance(4);
    Some(input.split_to(length).freeze())
}

/// The base command of a frame.
fn base(frame: &[u8]) -> &[u8] {
    let length = frame.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize);
    frame.get(4..4 + length).unwrap_or_default()
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let tag = take_varint(bytes)?;
    let field = match tag & 7 {
        0 => Field::Number(take_varint(bytes)?),
        2 => {
            let length = usize::try_from(take_varint(bytes)?).ok()?;
            Field::Bytes(bytes.split_off(..length)?)
        }
        1 => Field::Bytes(bytes.split_off(..8)?),
        5 => Field::Bytes(bytes.split_off(..4)?),
        _ => return None,
    };
    Some((tag >> 3, field))
}

fn find_number(mut message: &[u8], wanted: u64) -> Option<u64> {
    while let Some((number, field)) = take_field(&mut message) {
        if let (true, Field::Number(value)) = (number == wanted, field) {
            return Some(value);
        }
    }
    None
}

fn find_bytes(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    while let Some((number, field)) = take_field(&mut message) {
        if let (true, Field::Bytes(value)) = (number == wanted, field) {
            return Some(value);
        }
    }
    None
}

/// A frame's command type.
pub(super) fn command_type(frame: &[u8]) -> Option<u64> {
    find_number(base(frame), 1)
}

/// Turns what a server says against us into an error.
pub(super) fn refuse_errors(frame: &[u8]) -> Result<(), BenchError> {
    let command = base(frame);
    let kind = find_number(command, 1).unwrap_or_default();
    let fields = find_bytes(command, kind).unwrap_or_default();
    let text = |field| String::from_utf8_lossy(find_bytes(fields, field).unwrap_or_default());
    match kind {
        ERROR => Err(BenchError::Server(format!("ERROR: {}", text(3)))),
        SEND_ERROR => Err(BenchError::Server(format!("SEND_ERROR: {}", text(4)))),
        CLOSE_PRODUCER | CLOSE_CONSUMER => {
            Err(BenchError::Server("closed the producer or consumer".to_owned()))
        }
        _ => Ok(()),
    }
}

/// A pong for a ping, an error for an error, nothing for anything else.
fn answer(frame: &[u8], reply: &mut BytesMut) -> Result<(), BenchError> {
    if command_type(frame) == Some(PING) {
        reply.extend_from_slice(&command(PONG, &[]));
    }
    refuse_errors(frame)
}

/// Takes whole frames on a publishing connection.
pub(super) fn read_receipts(
    input: &mut BytesMut,
    reply: &mut BytesMut,
    acknowledged: &mut dyn FnMut(u64),
) -> Result<(), BenchError> {
    while let Some(frame) = next_frame(input) {
        let command = base(&frame);
        let receipt = match command {
            // The fast path: type first, receipt second.
            [0x08, 0x07, 0x3a, rest @ ..] => rest.get(1..),
            _ if find_number(command, 1) == Some(SEND_RECEIPT) => find_bytes(command, SEND_RECEIPT),
            _ => None,
        };
        match receipt.and_then(|receipt| find_number(receipt, 2)) {
            Some(sequence) => acknowledged(sequence.saturating_sub(FIRST_SEQUENCE)),
            None => answer(&frame, reply)?,
        }
    }
    Ok(())
}

/// What a consumer has received since it last gave permits.
#[derive(Default)]
pub(super) struct Permits {
    used: u64,
}

/// Takes whole frames on a consuming connection, gives permits and acknowledges as it goes.
pub(super) fn read_messages(
    input: &mut BytesMut,
    reply: &mut BytesMut,
    permits: &mut Permits,
    payload: usize,
    received: &mut dyn FnMut(u64),
) -> Result<(), BenchError> {
    while let Some(frame) = next_frame(input) {
        if command_type(&frame) != Some(MESSAGE) {
            answer(&frame, reply)?;
            continue;
        }
        let start = frame.len().saturating_sub(payload);
        received(wire::stamp_of(frame.get(start..).unwrap_or_default()));
        permits.used += 1;
        if permits.used >= REFILL {
            permits.used = 0;
            reply.extend_from_slice(&flow(REFILL));
            let message = find_bytes(base(&frame), MESSAGE).unwrap_or_default();
            if let Some(message_id) = find_bytes(message, 2) {
                reply.extend_from_slice(&acknowledge(message_id));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{EntryId, LedgerId, Position};
    use crate::frontend::pulsar::codec::{self, Command};

    /// What the front end makes of our bytes.
    fn decode(bytes: &mut BytesMut) -> (Command, Bytes) {
        let frame = codec::next_frame(bytes, 1 << 20).unwrap().unwrap();
        (Command::decode(&frame.command).unwrap(), frame.payload)
    }

    #[test]
    fn send_frames_are_what_the_front_end_expects() {
        for (batch, count) in [(1, 1), (100, 100)] {
            let mut encoder = Encoder::new(MessageShape { size: 100, batch }, "p");
            let mut bytes = BytesMut::new();
            encoder.frame(0, None, &mut bytes);
            encoder.frame(300, (batch == 1).then_some(77), &mut bytes);
            for number in [0, 300] {
                let (command, payload) = decode(&mut bytes);
                let Command::Send(send) = command else { panic!("{command:?}") };
                assert_eq!(send.sequence_id, FIRST_SEQUENCE + number);
                let facts = codec::inspect_entry(&payload).unwrap();
                assert_eq!(facts.message_count, count);
                assert_eq!(facts.is_batch, batch > 1);
            }
            assert!(bytes.is_empty());
        }
    }

    #[test]
    fn requests_are_what_the_front_end_expects() {
        assert!(matches!(decode(&mut connect()).0, Command::Connect(_)));
        assert!(matches!(decode(&mut flow(5)).0, Command::Flow(flow) if flow.message_permits == 5));
        let (command, _) = decode(&mut producer("t", "p"));
        assert!(matches!(command, Command::Producer(producer) if producer.topic == "t"));
        let (command, _) = decode(&mut subscribe("t", true));
        assert!(
            matches!(command, Command::Subscribe(subscribe) if subscribe.subscription == "bench")
        );
    }

    #[test]
    fn receipts_are_read() {
        let (mut input, mut reply) = (BytesMut::new(), BytesMut::new());
        let position = Position::new(LedgerId(3), EntryId(400));
        codec::encode_send_receipt(0, FIRST_SEQUENCE + 9, None, position, &mut input);
        codec::encode_send_receipt(0, FIRST_SEQUENCE + 10, Some(12), position, &mut input);
        let mut seen = Vec::new();
        read_receipts(&mut input, &mut reply, &mut |number| seen.push(number)).unwrap();
        assert_eq!(seen, [9, 10]);
        assert!(reply.is_empty());
    }

    #[test]
    fn messages_are_read_acknowledged_and_replaced() {
        let mut encoder = Encoder::new(MessageShape { size: 100, batch: 1 }, "p");
        let (mut input, mut reply) = (BytesMut::new(), BytesMut::new());
        for number in 0..REFILL {
            let mut sent = BytesMut::new();
            encoder.frame(number, Some(number + 5), &mut sent);
            let (_, entry) = decode(&mut sent);
            let head = codec::MessageHead {
                consumer_id: 0,
                position: Position::new(LedgerId(3), EntryId(number as i64)),
                partition: None,
                redelivery_count: 0,
                ack_set: &[],
                consumer_epoch: None,
            };
            codec::encode_message_head(&head, entry.len(), &mut input);
            input.put_slice(&entry);
        }
        let (mut permits, mut stamps) = (Permits::default(), Vec::new());
        read_messages(&mut input, &mut reply, &mut permits, 100, &mut |stamp| stamps.push(stamp))
            .unwrap();
        assert_eq!(stamps, (5..REFILL + 5).collect::<Vec<_>>());
        assert!(matches!(decode(&mut reply).0, Command::Flow(_)));
        let (command, _) = decode(&mut reply);
        let Command::Ack(ack) = command else { panic!("{command:?}") };
        assert_eq!(ack.message_id[0].entry_id, REFILL - 1);
    }

    #[test]
    fn pings_are_answered_and_errors_are_errors() {
        let (mut input, mut reply) = (command(PING, &[]), BytesMut::new());
        read_receipts(&mut input, &mut reply, &mut |_| {}).unwrap();
        assert!(matches!(decode(&mut reply).0, Command::Pong(_)));
        let mut input = command(SEND_ERROR, &[]);
        assert!(read_receipts(&mut input, &mut reply, &mut |_| {}).is_err());
    }
}
