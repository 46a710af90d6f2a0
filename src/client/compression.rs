//! Compression of payloads. Decompression never makes more bytes than it is told to expect, and is told
//! at most the client's limit.

use std::io::{Read, Write};

use bytes::Bytes;

use super::error::ClientError;
use crate::frontend::pulsar::codec::proto::CompressionType;

/// How payloads are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4, one raw block.
    Lz4,
    /// zlib.
    Zlib,
    /// Zstandard at level 3.
    Zstd,
    /// Snappy, one raw block.
    Snappy,
}

const ZSTD_LEVEL: i32 = 3;

impl Compression {
    pub(super) const fn to_wire(self) -> Option<CompressionType> {
        match self {
            Self::None => None,
            Self::Lz4 => Some(CompressionType::Lz4),
            Self::Zlib => Some(CompressionType::Zlib),
            Self::Zstd => Some(CompressionType::Zstd),
            Self::Snappy => Some(CompressionType::Snappy),
        }
    }

    /// Compresses a payload.
    pub(super) fn compress(self, payload: Bytes) -> Result<Bytes, ClientError> {
        let failed = |error: String| ClientError::Invalid(format!("cannot compress: {error}"));
        let compressed = match self {
            Self::None => return Ok(payload),
            Self::Lz4 => lz4_flex::block::compress(&payload),
            Self::Zlib => {
                let level = flate2::Compression::default();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(&payload).map_err(|error| failed(error.to_string()))?;
                encoder.finish().map_err(|error| failed(error.to_string()))?
            }
            Self::Zstd => zstd::bulk::compress(&payload, ZSTD_LEVEL)
                .map_err(|error| failed(error.to_string()))?,
            Self::Snappy => snap::raw::Encoder::new()
                .compress_vec(&payload)
                .map_err(|error| failed(error.to_string()))?,
        };
        Ok(compressed.into())
    }
}

/// Decompresses a payload that says it has `size` bytes, at most `limit`.
pub(super) fn decompress(
    compression: CompressionType,
    payload: Bytes,
    size: usize,
    limit: usize,
) -> Result<Bytes, ClientError> {
    let failed = |error: String| ClientError::Unreadable(format!("cannot decompress: {error}"));
    if compression == CompressionType::None {
        return Ok(payload);
    }
    if size > limit {
        return Err(failed(format!("{size} bytes are over the limit of {limit}")));
    }
    let plain = match compression {
        CompressionType::None => return Ok(payload),
        CompressionType::Lz4 => lz4_flex::block::decompress(&payload, size)
            .map_err(|error| failed(error.to_string()))?,
        CompressionType::Zlib => {
            let mut plain = Vec::new();
            flate2::read::ZlibDecoder::new(&payload[..])
                .take(size as u64 + 1)
                .read_to_end(&mut plain)
                .map_err(|error| failed(error.to_string()))?;
            plain
        }
        CompressionType::Zstd => {
            zstd::bulk::decompress(&payload, size).map_err(|error| failed(error.to_string()))?
        }
        CompressionType::Snappy => {
            let announced =
                snap::raw::decompress_len(&payload).map_err(|error| failed(error.to_string()))?;
            if announced != size {
                return Err(failed(format!("{announced} bytes where {size} were told")));
            }
            snap::raw::Decoder::new()
                .decompress_vec(&payload)
                .map_err(|error| failed(error.to_string()))?
        }
    };
    if plain.len() == size {
        Ok(plain.into())
    } else {
        Err(failed(format!("{} bytes where {size} were told", plain.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compression_is_undone_and_bounded() {
        let payload = Bytes::from(vec![7_u8; 100_000]);
        for compression in
            [Compression::Lz4, Compression::Zlib, Compression::Zstd, Compression::Snappy]
        {
            let small = compression.compress(payload.clone()).unwrap();
            assert!(small.len() < payload.len());
            let wire = compression.to_wire().unwrap();
            let plain = decompress(wire, small.clone(), payload.len(), 1 << 20).unwrap();
            assert_eq!(plain, payload, "{compression:?}");
            assert!(decompress(wire, small.clone(), payload.len(), 1000).is_err());
            assert!(decompress(wire, small, 1000, 1 << 20).is_err(), "{compression:?}");
            assert!(decompress(wire, Bytes::from_static(b"\xff\xff\xff"), 10, 1000).is_err());
        }
    }
}
