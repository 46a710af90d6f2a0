//! From files to state. Stops at a torn tail, refuses anything a crash cannot explain.

use std::path::Path;

use bytes::Bytes;

use super::log_file::{FILE_HEADER_BYTES, LogFile, log_first, log_name};
use super::log_scan::{Tail, judge_tail, read_group, read_header};
use super::{MetadataStartError, snapshot_file};
use crate::metadata::store::{Store, decode_group};
use crate::reached;
use crate::runtime::{CreateMode, OpenMode, Runtime};

/// The state, and the log to go on with.
pub(super) struct Recovered {
    pub(super) store: Store,
    pub(super) log: LogFile,
    /// Names of logs the snapshot has made superfluous.
    pub(super) old_logs: Vec<String>,
}

/// Where the newest log ends.
struct End {
    salt: u64,
    offset: usize,
}

/// Reads snapshot and logs of a folder; creates them in an empty one.
pub(super) async fn recover(
    runtime: &Runtime,
    directory: &Path,
) -> Result<Recovered, MetadataStartError> {
    let disk = &runtime.disk;
    disk.create_directory(directory).await?;
    // Its own name and the data folder's: a crash that keeps the page cache may have been followed by a
    // start that found them, so they are synced whether or not they were just made.
    for parent in directory.ancestors().skip(1).take(2) {
        if !parent.as_os_str().is_empty() {
            disk.sync_directory(parent).await?;
        }
    }
    let mut store = snapshot_file::read(disk, directory).await?;
    let mut firsts: Vec<u64> =
        disk.list(directory).await?.iter().filter_map(|entry| log_first(&entry.name)).collect();
    firsts.sort_unstable();
    if firsts.is_empty() && store.applied() > 0 {
        // The log that goes on from a snapshot is durable before the snapshot is.
        return Err(MetadataStartError::corrupt(
            &log_name(store.applied() + 1),
            "there is a snapshot but no log",
        ));
    }
    // Superfluous once the next log begins no later than the snapshot ends.
    let needed = firsts.iter().rposition(|first| *first <= store.applied() + 1).unwrap_or(0);
    let old_logs = firsts.drain(..needed).map(log_name).collect();
    let mut resumed = None;
    for (position, first) in firsts.iter().enumerate() {
        let is_newest = position + 1 == firsts.len();
        let path = directory.join(log_name(*first));
        let file = disk.open(&path, CreateMode::Existing, OpenMode::Shared).await?;
        let length = usize::try_from(file.length().await?).unwrap_or(usize::MAX);
        let bytes = file.read_at(0, length).await?;
        let end = replay(&mut store, *first, &bytes, is_newest)?;
        resumed = end.map(|end| (*first, end.salt, bytes.slice(..end.offset)));
    }
    let log = match resumed {
        Some((first, salt, good)) => LogFile::resume(disk, directory, first, salt, good).await?,
        None => {
            let salt = runtime.random.fork("metadata log salt").next();
            LogFile::create(disk, directory, salt, store.applied() + 1).await?
        }
    };
    Ok(Recovered { store, log, old_logs })
}

/// Applies a log's commands that the state lacks. `None` if the file's creation was cut short.
fn replay(
    store: &mut Store,
    name_first: u64,
    bytes: &Bytes,
    is_newest: bool,
) -> Result<Option<End>, MetadataStartError> {
    let name = log_name(name_first);
    let corrupt = |detail: String| MetadataStartError::corrupt(&name, detail);
    let Some(header) = read_header(bytes) else {
        // Nothing is written behind a header before the header is durable.
        if is_newest && bytes.len() <= FILE_HEADER_BYTES && name_first == store.applied() + 1 {
            reached!("metadata: a log's creation was cut short");
            return Ok(None);
        }
        return Err(corrupt("its header is damaged".to_owned()));
    };
    if header.first != name_first {
        return Err(corrupt(format!("its header says it begins at {}", header.first)));
    }
    if name_first > store.applied() + 1 {
        return Err(corrupt(format!(
            "commands {} to {} are missing before it",
            store.applied() + 1,
            name_first - 1
        )));
    }
    let mut next = name_first;
    let mut offset = FILE_HEADER_BYTES;
    while let Some(group) = read_group(bytes, offset, header.salt) {
        if group.first != next {
            return Err(corrupt(format!("a group of index {} where {next} belongs", group.first)));
        }
        let commands = decode_group(group.payload).map_err(|damage| corrupt(damage.to_string()))?;
        for command in &commands {
            if next == store.applied() + 1 {
                // The answers were given, or lost, before the crash.
                let _ = store.apply(command);
            }
            next += 1;
        }
        offset = group.end;
    }
    match judge_tail(bytes, offset, header.salt) {
        Tail::Clean => {}
        Tail::Torn if is_newest => reached!("metadata: a torn tail was cut off"),
        Tail::Torn => return Err(corrupt(format!("a bad group at {offset}, a newer log exists"))),
        Tail::Damaged(detail) => return Err(corrupt(detail)),
    }
    if next <= store.applied() && is_newest {
        return Err(corrupt(format!(
            "it ends before command {next}, the snapshot is at {}",
            store.applied()
        )));
    }
    Ok(Some(End { salt: header.salt, offset }))
}
