//! From log files to the records in them. Stops at a torn tail, refuses anything a crash cannot explain.

use std::path::Path;

use bytes::Bytes;

use super::MetadataStartError;
use super::log_file::{FILE_HEADER_BYTES, LogFile, log_first, log_name};
use super::log_scan::{Tail, judge_tail, read_group, read_header};
use crate::reached;
use crate::runtime::{CreateMode, Disk, DiskErrorKind, DiskResult, OpenMode, Runtime};

/// The logs of a folder.
pub(in crate::metadata) struct LogRecovery {
    firsts: Vec<u64>,
    old: Vec<String>,
}

/// Where the newest log ends.
struct End {
    salt: u64,
    offset: usize,
}

impl LogRecovery {
    /// Finds the logs of a folder, made if it is missing. `next` is the record behind the snapshot: logs
    /// that end before it are superfluous.
    pub(in crate::metadata) async fn find(
        disk: &Disk,
        directory: &Path,
        next: u64,
    ) -> Result<Self, MetadataStartError> {
        let mut firsts = Self::firsts(disk, directory).await?;
        // Superfluous once the next log begins no later than the snapshot ends.
        let needed = firsts.iter().rposition(|first| *first <= next).unwrap_or(0);
        let old = firsts.drain(..needed).map(log_name).collect();
        Ok(Self { firsts, old })
    }

    /// First records of the logs in a folder, in order.
    pub(in crate::metadata) async fn firsts(disk: &Disk, directory: &Path) -> DiskResult<Vec<u64>> {
        let entries = disk.list(directory).await?;
        let mut firsts: Vec<u64> =
            entries.iter().filter_map(|entry| log_first(&entry.name)).collect();
        firsts.sort_unstable();
        Ok(firsts)
    }

    /// One log, whatever others there are.
    pub(in crate::metadata) fn of_one(first: u64) -> Self {
        Self { firsts: vec![first], old: Vec::new() }
    }

    /// Makes the folder, and its name and its parent's durable: a crash that keeps the page cache may have
    /// been followed by a start that found them, so they are synced whether or not they were just made.
    pub(in crate::metadata) async fn prepare(disk: &Disk, directory: &Path) -> DiskResult<()> {
        disk.create_directory(directory).await?;
        for parent in directory.ancestors().skip(1).take(2) {
            if !parent.as_os_str().is_empty() {
                disk.sync_directory(parent).await?;
            }
        }
        Ok(())
    }

    /// True if there is no log.
    pub(in crate::metadata) fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Names of logs that a snapshot has made superfluous.
    pub(in crate::metadata) fn old_logs(&self) -> Vec<String> {
        self.old.clone()
    }

    /// Hands every group to `take`, which answers how many records it holds, and resumes the newest log or
    /// begins one. `next` is the record that must not be missing: the one behind the snapshot.
    pub(in crate::metadata) async fn replay(
        self,
        runtime: &Runtime,
        directory: &Path,
        next: u64,
        mut take: impl FnMut(u64, Bytes) -> Result<u64, String> + Send,
    ) -> Result<(LogFile, u64), MetadataStartError> {
        let disk = &runtime.disk;
        let mut resumed = None;
        let mut reached_number = next;
        for (position, first) in self.firsts.iter().enumerate() {
            let is_newest = position + 1 == self.firsts.len();
            let path = directory.join(log_name(*first));
            let file = disk.open(&path, CreateMode::Existing, OpenMode::Shared).await?;
            let length = usize::try_from(file.length().await?).unwrap_or(usize::MAX);
            let bytes = file.read_at(0, length).await?;
            let end = replay_file(*first, &bytes, is_newest, &mut reached_number, &mut take)?;
            resumed = end.map(|end| (*first, end.salt, bytes.slice(..end.offset)));
        }
        let log = match resumed {
            Some((first, salt, good)) => {
                LogFile::resume(disk, directory, first, salt, good).await?
            }
            None => {
                let salt = runtime.random.fork("metadata log salt").next();
                LogFile::create(disk, directory, salt, reached_number).await?
            }
        };
        Ok((log, reached_number))
    }
}

/// Reads one log. `next` is the record that comes next. `None` if the file's creation was cut short.
fn replay_file(
    name_first: u64,
    bytes: &Bytes,
    is_newest: bool,
    next: &mut u64,
    take: &mut (impl FnMut(u64, Bytes) -> Result<u64, String> + Send),
) -> Result<Option<End>, MetadataStartError> {
    let name = log_name(name_first);
    let corrupt = |detail: String| MetadataStartError::corrupt(&name, detail);
    let Some(header) = read_header(bytes) else {
        // Nothing is written behind a header before the header is durable.
        if is_newest && bytes.len() <= FILE_HEADER_BYTES && name_first == *next {
            reached!("metadata: a log's creation was cut short");
            return Ok(None);
        }
        return Err(corrupt("its header is damaged".to_owned()));
    };
    if header.first != name_first {
        return Err(corrupt(format!("its header says it begins at {}", header.first)));
    }
    if name_first > *next {
        return Err(corrupt(format!(
            "commands {next} to {} are missing before it",
            name_first - 1
        )));
    }
    let mut number = name_first;
    let mut offset = FILE_HEADER_BYTES;
    while let Some(group) = read_group(bytes, offset, header.salt) {
        if group.first != number {
            return Err(corrupt(format!(
                "a group of index {} where {number} belongs",
                group.first
            )));
        }
        number += take(group.first, group.payload).map_err(corrupt)?;
        offset = group.end;
    }
    match judge_tail(bytes, offset, header.salt) {
        Tail::Clean => {}
        Tail::Torn if is_newest => reached!("metadata: a torn tail was cut off"),
        Tail::Torn => return Err(corrupt(format!("a bad group at {offset}, a newer log exists"))),
        Tail::Damaged(detail) => return Err(corrupt(detail)),
    }
    if number < *next && is_newest {
        return Err(corrupt(format!(
            "it ends before command {number}, the snapshot is at {}",
            *next - 1
        )));
    }
    *next = number.max(*next);
    Ok(Some(End { salt: header.salt, offset }))
}

/// Removes logs that a snapshot has made superfluous.
pub(in crate::metadata) async fn remove_logs(
    disk: &Disk,
    directory: &Path,
    names: Vec<String>,
) -> DiskResult<()> {
    if names.is_empty() {
        return Ok(());
    }
    for name in names {
        match disk.remove(&directory.join(name)).await {
            Err(error) if error.kind != DiskErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    disk.sync_directory(directory).await
}
