//! Reading the journal back from the mark, and telling a torn end from corruption.
//!
//! Groups carry consecutive numbers and one is written only after the one before was synced. So a group that
//! does not check out is the torn end exactly if no group with a higher number exists anywhere; the next
//! life of the bookie goes on with the torn group's number in a new file. A higher number after a bad group
//! proves that the bad one was once synced, maybe acknowledged: corruption, and the bookie must not start.
//!
//! The last group needs care. The sync it waited for may have failed, and then it can be read for as long as
//! the system has it in memory although it is not on the disk and no later sync puts it there. From replay
//! on it counts, so it is written again, under its own number, as the first group of the next file. The
//! groups before it are safe: the next one was begun only after their sync had succeeded.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::{
    GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GroupDamage, GroupHeader, JournalFiles, JournalPosition,
    parse_group,
};
use crate::bookie::record::RecordHeader;
use crate::runtime::{DiskError, DiskResult, File};
use crate::{mutant, reached};

const WINDOW_BYTES: usize = 1024 * 1024;

/// One record read back.
pub(in crate::bookie) type ReplayRecord = (RecordHeader, Bytes);

/// Replay must not go on.
#[derive(Debug, thiserror::Error)]
pub(in crate::bookie) enum ReplayError {
    /// Damage that a crash cannot explain.
    #[error("{0}")]
    Corrupt(String),
    /// The index took nothing in.
    #[error("{0}")]
    Index(String),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// What replay found.
pub(in crate::bookie) struct Replayed {
    /// The number of the next group.
    pub next_sequence: u64,
    /// The highest file id in the folder.
    pub last_file: u64,
    /// The records of the last group read, to be written again before anything else.
    pub last_group: Option<Vec<ReplayRecord>>,
}

/// Who takes what is read back.
#[async_trait]
pub(in crate::bookie) trait ReplayTarget: Send {
    /// Takes the records of one group.
    async fn apply(&mut self, records: Vec<ReplayRecord>) -> Result<(), ReplayError>;
}

/// Reads all groups at or after `mark` and gives the records of each to `target`, in order.
pub(in crate::bookie) async fn replay(
    files: &JournalFiles,
    mark: JournalPosition,
    target: &mut dyn ReplayTarget,
) -> Result<Replayed, ReplayError> {
    let listed = files.list().await?;
    if !listed.iter().any(|(id, _)| *id == mark.file) {
        return Err(ReplayError::Corrupt(format!("journal file {:016x} is missing", mark.file)));
    }
    let mut expected = mark.sequence;
    let mut last_group = None;
    let is_behind = |id: u64| id < mark.file || mutant!("S23") && id == mark.file;
    for (id, _) in listed.iter().filter(|(id, _)| !is_behind(*id)) {
        let mut offset = if *id == mark.file { mark.offset } else { 0 };
        let file = files.open(*id).await?;
        let mut window = Window::new(&file);
        loop {
            match window.group(*id, offset).await? {
                Ok(group) if group.header.sequence == expected => {
                    offset += group.header.padded_length();
                    expected += 1;
                    last_group = Some(group.records.clone());
                    target.apply(group.records).await?;
                }
                Ok(group) if offset == 0 && group.header.sequence + 1 == expected => {
                    reached!("bookie: the last group of a former life met again");
                    offset += group.header.padded_length();
                }
                _ => break,
            }
        }
        let later = window.highest_sequence(*id, offset).await?;
        if let Some(later) = later.filter(|later| *later >= expected) {
            if later > expected && !mutant!("S17") || mutant!("S34") {
                return Err(ReplayError::Corrupt(format!(
                    "journal group {expected} is damaged or missing, group {later} after it in file \
                     {id:016x} is there"
                )));
            }
            reached!("bookie: torn journal group at the end");
        }
    }
    let last_file = listed.last().map_or(mark.file, |(id, _)| *id);
    Ok(Replayed { next_sequence: expected, last_file, last_group })
}

/// Reads a file forward through a window.
pub(in crate::bookie) struct Window<'a> {
    file: &'a File,
    start: u64,
    bytes: Bytes,
}

impl<'a> Window<'a> {
    /// Nothing read yet.
    pub fn new(file: &'a File) -> Self {
        Self { file, start: 0, bytes: Bytes::new() }
    }

    /// `length` bytes at `offset`, fewer at the end of the file.
    pub async fn bytes(&mut self, offset: u64, length: usize) -> DiskResult<Bytes> {
        let end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + length as u64 > end {
            self.bytes = self.file.read_at(offset, length.max(WINDOW_BYTES)).await?;
            self.start = offset;
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.bytes.len());
        let to = from.saturating_add(length).min(self.bytes.len());
        Ok(self.bytes.slice(from..to))
    }

    /// The group at `offset`, if there is a whole one.
    pub async fn group(
        &mut self,
        id: u64,
        offset: u64,
    ) -> DiskResult<Result<super::ParsedGroup, GroupDamage>> {
        let header = self.bytes(offset, GROUP_HEADER_BYTES).await?;
        let Some(header) = GroupHeader::decode(&header, id, offset) else {
            return Ok(Err(GroupDamage::NoHeader));
        };
        let length = usize::try_from(header.padded_length()).unwrap_or(usize::MAX);
        let bytes = self.bytes(offset, length).await?;
        // Payloads live on in the cache: they must not keep a whole window alive.
        let own = BytesMut::from(&bytes[..]).freeze();
        Ok(parse_group(&own, id, offset))
    }

    /// The highest number of any group header of this life at or after `offset`.
    pub async fn highest_sequence(&mut self, id: u64, offset: u64) -> DiskResult<Option<u64>> {
        let mut highest = None;
        let mut at = offset.next_multiple_of(GROUP_ALIGNMENT as u64);
        loop {
            let bytes = self.bytes(at, GROUP_HEADER_BYTES).await?;
            if bytes.len() < GROUP_HEADER_BYTES {
                return Ok(highest);
            }
            if let Some(header) = GroupHeader::decode(&bytes, id, at) {
                highest = highest.max(Some(header.sequence));
            }
            at += GROUP_ALIGNMENT as u64;
        }
    }
}
