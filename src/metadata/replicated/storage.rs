//! A member's log and snapshot on disk: what the consensus machine persists, found again after a crash.
//!
//! The log files are numbered by write, one `LogWrite` in each synced group. Each file stands alone: it begins
//! with term, vote and the entries still kept, the last of those writes saying that they are complete; one
//! in which none says so was being begun when a crash came, and the file before it counts. Entries written
//! replace what stood at their index and behind it. Of the entries found those behind the snapshot count, if
//! the one at its index is the snapshot's; a snapshot is replaced before the log it shortens.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message as _;

use super::codec::{mark_from_wire, mark_to_wire, write_from_wire, write_to_wire};
use crate::metadata::MetadataStartError;
use crate::metadata::consensus::{Entry, HardState, Restored, SnapshotMark, Write};
use crate::metadata::durable::{
    GROUP_BYTES, LogFile, LogRecovery, SNAPSHOT_NAME, log_first, log_name, read_snapshot,
    read_snapshot_part, remove_logs, write_snapshot,
};
use crate::metadata::store::Store;
use crate::rpc::generated::consensus as wire;
use crate::runtime::{DiskResult, Runtime};
use crate::{mutant, reached};

/// The files of one member.
pub(super) struct Storage {
    runtime: Runtime,
    directory: PathBuf,
    log: LogFile,
    /// Number of the next write.
    next: u64,
    snapshot: SnapshotMark,
    snapshot_bytes: u64,
}

/// What was found, or founded.
pub(super) struct Opened {
    pub(super) storage: Storage,
    pub(super) restored: Restored,
    pub(super) store: Store,
}

/// A snapshot's bytes, as in the file and as sent.
fn encode_snapshot(mark: &SnapshotMark, store: &Store) -> Vec<u8> {
    wire::SnapshotFile { mark: Some(mark_to_wire(mark)), state: store.to_snapshot() }
        .encode_to_vec()
}

/// What a snapshot's bytes stand for.
pub(super) fn decode_snapshot(payload: Bytes) -> Result<(SnapshotMark, Store), String> {
    let file = wire::SnapshotFile::decode(payload).map_err(|error| error.to_string())?;
    let mark = mark_from_wire(file.mark).map_err(|error| error.to_string())?;
    let store = Store::from_snapshot(file.state).map_err(|error| error.to_string())?;
    Ok((mark, store))
}

impl Storage {
    /// Reads what is there. An empty folder becomes a founding member's, if the founders name any.
    pub(super) async fn open(
        runtime: &Runtime,
        directory: &Path,
        founding: Restored,
    ) -> Result<Opened, MetadataStartError> {
        let disk = &runtime.disk;
        LogRecovery::prepare(disk, directory).await?;
        let snapshot = match read_snapshot(disk, directory).await? {
            Some(payload) => {
                let length = payload.len() as u64;
                let (mark, store) = decode_snapshot(payload)
                    .map_err(|detail| MetadataStartError::corrupt(SNAPSHOT_NAME, detail))?;
                Some((mark, store, length))
            }
            None => None,
        };
        let found = find_log(runtime, directory).await?;
        if found.is_none() && snapshot.is_some() {
            // A member's log is durable before its first snapshot is.
            return Err(MetadataStartError::corrupt(SNAPSHOT_NAME, "there is no log beside it"));
        }
        let is_founding = snapshot.is_none();
        let (mark, store, snapshot_bytes) =
            snapshot.unwrap_or_else(|| (founding.snapshot.clone(), Store::new(), 0));
        let found = match found {
            Some(found) => found,
            None => FoundLog::begin(runtime, directory).await?,
        };
        let FoundLog { log, next, mut hard_state, entries } = found;
        if is_founding && !entries.is_empty() {
            return Err(MetadataStartError::corrupt(SNAPSHOT_NAME, "it is missing"));
        }
        let mut storage = Self {
            runtime: runtime.clone(),
            directory: directory.to_owned(),
            log,
            next,
            snapshot: mark.clone(),
            snapshot_bytes,
        };
        let goes_on =
            entries.iter().any(|entry| (entry.index, entry.term) == (mark.index, mark.term))
                || entries.first().is_none_or(|first| first.index == mark.index + 1);
        let entries = entries_behind(entries, &mark)
            .map_err(|detail| MetadataStartError::corrupt("the log", detail))?;
        if is_founding && founding.snapshot.index > 0 {
            hard_state.term = hard_state.term.max(founding.hard_state.term);
            // The term first: a snapshot without it would be of a term nobody has begun.
            storage.write(&Write { hard_state: Some(hard_state), entries: Vec::new() }).await?;
            storage.replace_snapshot(mark.clone(), &store).await?;
        } else if !goes_on {
            reached!("metadata: a crash came between an installed snapshot and its log");
            storage.begin_log(hard_state, entries.clone()).await?;
        }
        let restored = Restored { hard_state, snapshot: mark, entries };
        Ok(Opened { storage, restored, store })
    }

    /// Writes and syncs. After an error nothing may be written any more.
    pub(super) async fn write(&mut self, write: &Write) -> DiskResult<()> {
        self.append(write, false).await
    }

    async fn append(&mut self, write: &Write, complete: bool) -> DiskResult<()> {
        let payload = Bytes::from(write_to_wire(write, complete).encode_to_vec());
        self.log.append(self.next, payload).await?;
        self.next += 1;
        Ok(())
    }

    /// Bytes in the log file being written.
    pub(super) fn log_bytes(&self) -> u64 {
        self.log.length()
    }

    /// The newest snapshot.
    pub(super) fn snapshot(&self) -> &SnapshotMark {
        &self.snapshot
    }

    /// Bytes of the newest snapshot.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes
    }

    /// A piece of the newest snapshot, and whether it is the last.
    pub(super) async fn snapshot_part(
        &self,
        offset: u64,
        length: usize,
    ) -> DiskResult<(Bytes, bool)> {
        let left = self.snapshot_bytes.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(length);
        let part = read_snapshot_part(&self.runtime.disk, &self.directory, offset, length).await?;
        Ok((part, length as u64 == left))
    }

    async fn replace_snapshot(&mut self, mark: SnapshotMark, store: &Store) -> DiskResult<()> {
        let payload = encode_snapshot(&mark, store);
        write_snapshot(&self.runtime.disk, &self.directory, &payload).await?;
        self.snapshot = mark;
        self.snapshot_bytes = payload.len() as u64;
        Ok(())
    }

    /// Replaces the snapshot, begins a log with `entries`, removes the older logs: in this order.
    pub(super) async fn begin_anew(
        &mut self,
        mark: SnapshotMark,
        store: &Store,
        hard_state: HardState,
        entries: Vec<Entry>,
    ) -> DiskResult<()> {
        if mutant!("M25") {
            self.begin_log(hard_state, entries).await?;
            return self.replace_snapshot(mark, store).await;
        }
        self.replace_snapshot(mark, store).await?;
        self.begin_log(hard_state, entries).await
    }

    async fn begin_log(&mut self, hard_state: HardState, entries: Vec<Entry>) -> DiskResult<()> {
        let first = self.next;
        let random = self.runtime.random.fork_numbered("metadata log salt", first);
        let disk = self.runtime.disk.clone();
        self.log = LogFile::create(&disk, &self.directory, random.next(), first).await?;
        let mut write = Write { hard_state: Some(hard_state), entries: Vec::new() };
        let mut bytes = 0;
        for entry in entries {
            if bytes >= GROUP_BYTES {
                self.append(&write, false).await?;
                (write, bytes) = (Write::default(), 0);
            }
            bytes += entry.cost();
            write.entries.push(entry);
        }
        self.append(&write, true).await?;
        let names = disk.list(&self.directory).await?.into_iter().map(|entry| entry.name);
        let old = names.filter(|name| log_first(name).is_some_and(|other| other < first)).collect();
        remove_logs(&disk, &self.directory, old).await
    }
}

/// A log read back.
struct FoundLog {
    log: LogFile,
    next: u64,
    hard_state: HardState,
    entries: Vec<Entry>,
}

impl FoundLog {
    /// The first log of a folder.
    async fn begin(runtime: &Runtime, directory: &Path) -> Result<Self, MetadataStartError> {
        let salt = runtime.random.fork("metadata log salt").next();
        let mut log = LogFile::create(&runtime.disk, directory, salt, 1).await?;
        let write = write_to_wire(&Write::default(), true);
        log.append(1, Bytes::from(write.encode_to_vec())).await?;
        Ok(Self { log, next: 2, hard_state: HardState::default(), entries: Vec::new() })
    }
}

/// The newest log whose beginning is whole; removes all others.
async fn find_log(
    runtime: &Runtime,
    directory: &Path,
) -> Result<Option<FoundLog>, MetadataStartError> {
    let firsts = LogRecovery::firsts(&runtime.disk, directory).await?;
    let mut others: Vec<String> = firsts.iter().copied().map(log_name).collect();
    for first in firsts.into_iter().rev() {
        let (mut hard_state, mut entries, mut complete) = (HardState::default(), Vec::new(), false);
        let take = |_: u64, payload: Bytes| {
            let write = wire::LogWrite::decode(payload).map_err(|error| error.to_string())?;
            let (write, says_complete) =
                write_from_wire(write).map_err(|error| error.to_string())?;
            complete |= says_complete;
            hard_state = write.hard_state.unwrap_or(hard_state);
            put_entries(&mut entries, write.entries)?;
            Ok(1)
        };
        let logs = LogRecovery::of_one(first);
        let (log, next) = logs.replay(runtime, directory, first, take).await?;
        if complete {
            others.retain(|name| *name != log_name(first));
            remove_logs(&runtime.disk, directory, others).await?;
            return Ok(Some(FoundLog { log, next, hard_state, entries }));
        }
        reached!("metadata: the beginning of a member's log was cut short");
    }
    Ok(None)
}

/// Entries behind those found before, or in place of some.
fn put_entries(entries: &mut Vec<Entry>, new: Vec<Entry>) -> Result<(), String> {
    let (Some(first), Some(at)) = (entries.first(), new.first()) else {
        entries.extend(new);
        return Ok(());
    };
    match at.index.checked_sub(first.index).map(usize::try_from) {
        Some(Ok(place)) if place <= entries.len() => entries.truncate(place),
        _ => return Err(format!("entries are missing before {}", at.index)),
    }
    entries.extend(new);
    Ok(())
}

/// The entries that follow the snapshot.
fn entries_behind(mut entries: Vec<Entry>, mark: &SnapshotMark) -> Result<Vec<Entry>, String> {
    let other = entries.iter().any(|entry| entry.index == mark.index && entry.term != mark.term);
    if other {
        return Ok(Vec::new());
    }
    entries.retain(|entry| entry.index > mark.index);
    match entries.first() {
        Some(first) if first.index != mark.index + 1 => {
            Err(format!("entries {} to {} are missing", mark.index + 1, first.index - 1))
        }
        _ => Ok(entries),
    }
}
