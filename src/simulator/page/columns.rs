//! Numbers as bytes: one stream a column, so that a column of small or alike numbers is small, all streams one behind
//! the other with their lengths before them, compressed (zlib), as text (base64).
//!
//! A number is zigzag-coded (0, -1, 1, -2, …) and then written seven bits a byte, the lowest first; every byte but the
//! last has its highest bit set.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

/// One stream of numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
    last: i64,
}

impl Column {
    /// Adds a number.
    pub(super) fn push(&mut self, value: i64) {
        let mut left = ((value << 1) ^ (value >> 63)) as u64;
        while left >= 0x80 {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
    }

    /// Adds a number as its distance to the one before, 0 before the first.
    pub(super) fn push_distance(&mut self, value: i64) {
        self.push(value.wrapping_sub(self.last));
        self.last = value;
    }

    /// These bytes as they are.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes, last: 0 }
    }
}

/// All columns as one text: of each its length in bytes (four, the lowest first), then its bytes.
pub(super) fn pack(columns: &[Column]) -> std::io::Result<String> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    for column in columns {
        let length = u32::try_from(column.bytes.len()).map_err(std::io::Error::other)?;
        packer.write_all(&length.to_le_bytes())?;
        packer.write_all(&column.bytes)?;
    }
    Ok(STANDARD.encode(packer.finish()?))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;
    use proptest::prelude::*;

    use super::*;

    /// The columns of a packed text, as bytes.
    pub(in crate::simulator::page) fn unpack(text: &str) -> Vec<Vec<u8>> {
        let packed = STANDARD.decode(text).unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        let mut columns = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (length, more) = rest.split_at(4);
            let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
            let (column, more) = more.split_at(length);
            columns.push(column.to_vec());
            rest = more;
        }
        columns
    }

    /// The numbers of a column.
    pub(in crate::simulator::page) fn numbers(bytes: &[u8]) -> Vec<i64> {
        let mut numbers = Vec::new();
        let (mut value, mut shift) = (0_u64, 0);
        for byte in bytes {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                numbers.push((value >> 1) as i64 ^ -((value & 1) as i64));
                (value, shift) = (0, 0);
            }
        }
        numbers
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out(lists in prop::collection::vec(prop::collection::vec(any::<i64>(), 0..50), 0..8)) {
            let columns = lists.iter().map(|list| {
                let mut column = Column::default();
                list.iter().for_each(|value| column.push(*value));
                column
            });
            let text = pack(&columns.collect::<Vec<_>>()).unwrap();
            let unpacked: Vec<Vec<i64>> = unpack(&text).iter().map(|bytes| numbers(bytes)).collect();
            prop_assert_eq!(unpacked, lists);
        }

        #[test]
        fn distances_add_up(list in prop::collection::vec(any::<i64>(), 0..50)) {
            let mut column = Column::default();
            list.iter().for_each(|value| column.push_distance(*value));
            let mut at = 0_i64;
            let mut values = Vec::new();
            for distance in numbers(&column.bytes) {
                at = at.wrapping_add(distance);
                values.push(at);
            }
            prop_assert_eq!(values, list);
        }
    }
}
