//! The file `snapshot`: the whole state, replaced as a whole.
//!
//! ```text
//! magic "SWMSNP01" (8) | length of payload u64 | CRC-32C of length and payload u32 | zero u32 | payload
//! ```

use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};

use super::MetadataStartError;
use crate::runtime::{CreateMode, Disk, DiskResult, OpenMode};

/// Name of the snapshot.
pub(in crate::metadata) const SNAPSHOT_NAME: &str = "snapshot";
const MAGIC: &[u8; 8] = b"SWMSNP01";
const HEADER_BYTES: usize = 24;

fn crc(payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&(payload.len() as u64).to_le_bytes()), payload)
}

fn encode(payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + payload.len());
    bytes.put_slice(MAGIC);
    bytes.put_u64_le(payload.len() as u64);
    bytes.put_u32_le(crc(payload));
    bytes.put_u32_le(0);
    bytes.put_slice(payload);
    bytes.freeze()
}

fn decode(bytes: &Bytes) -> Result<Bytes, MetadataStartError> {
    let corrupt = |detail: &str| MetadataStartError::corrupt(SNAPSHOT_NAME, detail);
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return Err(corrupt("not a snapshot"));
    }
    let payload = bytes.slice(HEADER_BYTES..);
    let mut length = [0; 8];
    length.copy_from_slice(&bytes[8..16]);
    let mut found = [0; 4];
    found.copy_from_slice(&bytes[16..20]);
    if u64::from_le_bytes(length) != payload.len() as u64 {
        return Err(corrupt("its length is not the one written in it"));
    }
    if u32::from_le_bytes(found) != crc(&payload) {
        return Err(corrupt("its checksum does not match"));
    }
    Ok(payload)
}

/// Replaces the snapshot; after a crash the old or the new one is there, whole. Answers its length.
pub(in crate::metadata) async fn write_snapshot(
    disk: &Disk,
    directory: &Path,
    payload: &[u8],
) -> DiskResult<u64> {
    let bytes = encode(payload);
    let length = bytes.len() as u64;
    disk.replace_file(&directory.join(SNAPSHOT_NAME), bytes).await?;
    Ok(length)
}

/// The payload of the snapshot, if there is one.
pub(in crate::metadata) async fn read_snapshot(
    disk: &Disk,
    directory: &Path,
) -> Result<Option<Bytes>, MetadataStartError> {
    match disk.read_file(&directory.join(SNAPSHOT_NAME)).await? {
        Some(bytes) => decode(&bytes).map(Some),
        None => Ok(None),
    }
}

/// A piece of the snapshot's payload, read again from the disk.
pub(in crate::metadata) async fn read_snapshot_part(
    disk: &Disk,
    directory: &Path,
    offset: u64,
    length: usize,
) -> DiskResult<Bytes> {
    let path = directory.join(SNAPSHOT_NAME);
    let file = disk.open(&path, CreateMode::Existing, OpenMode::Shared).await?;
    file.read_at(HEADER_BYTES as u64 + offset, length).await
}
