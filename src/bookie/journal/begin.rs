//! Where a journal begins: for the first time, in an empty folder, and in each life after replay.

use super::group::group_again;
use super::{JournalFiles, JournalPosition, Replayed};
use crate::domain::FormatLevel;
use crate::mutant;
use crate::runtime::{DiskResult, File};

/// Makes a folder without groups a journal's: the files that steady use turns over and the first one. Cut short,
/// it is done again. Nothing is written in it before its mark, which this answers, is durable.
pub(in crate::bookie) async fn found(
    files: &JournalFiles,
    unflushed_bytes_max: u64,
) -> DiskResult<JournalPosition> {
    let first = files.list().await?.last().map_or(1, |(id, _)| id + 1);
    let first = files.stock(first, unflushed_bytes_max).await?;
    files.begin(first).await?;
    Ok(JournalPosition { sequence: 1, file: first, offset: 0 })
}

/// The file this life writes, beginning with the last group of the former one if its sync may have failed.
pub(in crate::bookie) async fn go_on(
    files: &JournalFiles,
    replayed: Replayed,
    level: FormatLevel,
) -> DiskResult<(File, JournalPosition)> {
    let id = replayed.last_file + 1;
    let sequence = replayed.next_sequence;
    let mut position = JournalPosition { sequence, file: id, offset: 0 };
    let file = files.begin(id).await?;
    if let Some(records) = replayed.last_group.filter(|_| !mutant!("S-fsync")) {
        let bytes = group_again(&records, id, 0, sequence - 1, level);
        position.offset = bytes.len() as u64;
        file.write_and_sync(0, vec![bytes]).await?;
        if position.offset > files.file_bytes() {
            files.outgrown(id, position.offset);
        }
    }
    Ok((file, position))
}
