//! The floor's protocol and file format, as little as one can have: a record is its length (4 bytes, of what
//! follows), the CRC-32C of the payload (4), its number (8) and the payload; an acknowledgement is the number.

use bytes::{Buf, BufMut, BytesMut};

use super::wire::{self, MessageShape};

/// First byte of a publishing connection.
pub(super) const PUBLISHER: u8 = b'P';
/// First byte of a consuming connection; answered with one byte once it is heard.
pub(super) const SUBSCRIBER: u8 = b'S';

/// Bytes before the payload, length included.
const HEADER: usize = 16;
/// Longest payload the server takes.
const PAYLOAD_MAX: usize = 8 * 1024 * 1024;

/// Makes records.
pub(super) struct Encoder {
    payload: Vec<u8>,
    checksum: u32,
}

impl Encoder {
    /// For messages of this size.
    pub(super) fn new(shape: MessageShape) -> Self {
        let payload = wire::payload(shape.size).to_vec();
        let checksum = crc32c::crc32c(&payload);
        Self { payload, checksum }
    }

    /// Appends a record.
    pub(super) fn frame(&mut self, number: u64, stamp: Option<u64>, out: &mut BytesMut) {
        if let Some(stamp) = stamp
            && let Some(start) = self.payload.first_chunk_mut::<8>()
        {
            *start = stamp.to_be_bytes();
            self.checksum = crc32c::crc32c(&self.payload);
        }
        out.reserve(HEADER + self.payload.len());
        out.put_u32((HEADER - 4 + self.payload.len()) as u32);
        out.put_u32(self.checksum);
        out.put_u64(number);
        out.put_slice(&self.payload);
    }
}

/// Takes whole acknowledgements.
pub(super) fn read_acks(input: &mut BytesMut, acknowledged: &mut dyn FnMut(u64)) {
    while input.len() >= 8 {
        acknowledged(input.get_u64());
    }
}

/// Takes whole records on the consuming side.
pub(super) fn read_records(input: &mut BytesMut, received: &mut dyn FnMut(u64)) {
    while let Some(length) = whole_record(input) {
        received(input.get(HEADER..length).map_or(0, wire::stamp_of));
        input.advance(length);
    }
}

fn whole_record(input: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*input.first_chunk::<4>()?) as usize + 4;
    (input.len() >= length).then_some(length)
}

/// What the server got from one read.
pub(super) struct Received {
    /// Bytes of whole records, as they go to the file.
    pub(super) length: usize,
    /// Their numbers, as ranges: first, count.
    pub(super) numbers: Vec<(u64, u64)>,
}

/// Checks every whole record on the server's side; `None` for a damaged one.
pub(super) fn receive(input: &[u8]) -> Option<Received> {
    let mut end = 0;
    let mut numbers: Vec<(u64, u64)> = Vec::new();
    while let Some(rest) = input.get(end..)
        && let Some(mut header) = rest.first_chunk::<HEADER>().map(|bytes| bytes.as_slice())
    {
        let length = header.get_u32() as usize;
        let (checksum, number) = (header.get_u32(), header.get_u64());
        if !(HEADER - 4..=PAYLOAD_MAX).contains(&length) {
            return None;
        }
        let Some(payload) = rest.get(HEADER..length + 4) else { break };
        if crc32c::crc32c(payload) != checksum {
            return None;
        }
        match numbers.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => numbers.push((number, 1)),
        }
        end += length + 4;
    }
    Some(Received { length: end, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_round_trip_and_damage_is_seen() {
        let mut encoder = Encoder::new(MessageShape { size: 100, batch: 1 });
        let mut bytes = BytesMut::new();
        encoder.frame(7, Some(42), &mut bytes);
        encoder.frame(8, Some(43), &mut bytes);
        let whole = bytes.clone();
        bytes.truncate(whole.len() - 1);
        let received = receive(&bytes).unwrap();
        assert_eq!(received.numbers, [(7, 1)], "the second is not whole yet");
        let mut stamps = Vec::new();
        read_records(&mut whole.clone(), &mut |stamp| stamps.push(stamp));
        assert_eq!(stamps, [42, 43]);
        let mut damaged = whole;
        damaged[20] ^= 1;
        assert!(receive(&damaged).is_none());
    }
}
