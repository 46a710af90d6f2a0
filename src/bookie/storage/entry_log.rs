//! Entry logs: large files shared by ledgers, each stretch of one flush sorted by (ledger, entry).
//!
//! A 64-byte header (`SWE2` or `SWE1`, zero, u64 id, zeros, CRC-32C of the 60 bytes before), then records of the level
//! that its first four bytes say (`src/domain/format_level.rs`). A log is only
//! appended to in the life of the bookie that began it; ids are never used twice. How much of a log counts is
//! written in the checkpoint file; what is after it is cut off at start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{BufMut, BytesMut};

use super::{Pace, Run, RunBuilder};
use crate::bookie::record::{RecordHeader, u32_at, u64_at};
use crate::bookie::write_cache::Half;
use crate::domain::{Entry, FormatLevel, LedgerId};
use crate::mutant;
use crate::runtime::{CreateMode, Disk, DiskResult, File, OpenMode};

/// Bytes of a log's header.
pub(in crate::bookie) const LOG_HEADER_BYTES: usize = 64;
/// One write; large enough for the disk, small enough to leave the journal room between two.
const WRITE_BYTES: usize = 1024 * 1024;
/// Room for the last record of a write.
const BUFFER_SLACK: usize = WRITE_BYTES / 8;
/// Dirty bytes between two syncs: a single sync of a whole half would hold the journal's syncs up.
const SYNC_BYTES: u64 = 8 * 1024 * 1024;
/// The same while a flush is paced.
const PACED_SYNC_BYTES: u64 = 1024 * 1024;
const HANDLES_MAX: usize = 128;

/// The name of an entry log.
pub(in crate::bookie) fn entry_log_name(id: u64) -> String {
    format!("{id:016x}.entries")
}

/// The id in an entry log's name.
pub(in crate::bookie) fn entry_log_id(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".entries")?;
    let radix = if mutant!("S14") { 10 } else { 16 };
    (id.len() == 16).then(|| u64::from_str_radix(id, radix).ok()).flatten()
}

/// The level of the records of log `id`, if these bytes begin with its header.
pub(in crate::bookie) fn log_level(bytes: &[u8], id: u64) -> Option<FormatLevel> {
    let header = bytes.get(..LOG_HEADER_BYTES)?;
    let level = FormatLevel::NEWEST.known(|formats| header[..4] == formats.entry_log)?;
    let good = u64_at(header, 8) == id && u32_at(header, 60) == crc32c::crc32c(&header[..60]);
    good.then_some(level)
}

fn log_header(id: u64, level: FormatLevel) -> [u8; LOG_HEADER_BYTES] {
    let mut header = [0_u8; LOG_HEADER_BYTES];
    header[0..4].copy_from_slice(&level.stored().entry_log);
    header[8..16].copy_from_slice(&id.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..60]);
    header[60..64].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Where entries of a ledger go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bookie) struct Placement {
    /// The ledger directory, counted from 0.
    pub directory: usize,
    /// The ledger's former entries are in another one.
    pub moved: bool,
}

/// The folders of entry logs, with open files. Ids are of all folders together.
pub(in crate::bookie) struct EntryLogs {
    disk: Disk,
    directories: Vec<PathBuf>,
    /// Which folder a log is in.
    places: Mutex<BTreeMap<u64, usize>>,
    handles: Mutex<BTreeMap<u64, File>>,
}

impl EntryLogs {
    /// The logs of these folders, at least one; [`Self::list`] finds them.
    pub fn new(disk: Disk, directories: Vec<PathBuf>) -> Self {
        Self { disk, directories, places: Mutex::default(), handles: Mutex::default() }
    }

    /// Where a log is; in the first folder if it was never seen.
    pub fn path(&self, id: u64) -> PathBuf {
        let place = self.places().get(&id).copied().unwrap_or(0);
        self.directories[place].join(entry_log_name(id))
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, usize>> {
        self.places.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn handles(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, File>> {
        self.handles.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Ids and lengths of all logs, in id order.
    pub async fn list(&self) -> DiskResult<BTreeMap<u64, u64>> {
        let mut logs = BTreeMap::new();
        for (place, directory) in self.directories.iter().enumerate() {
            for entry in self.disk.list(directory).await? {
                let Some(id) = entry_log_id(&entry.name) else { continue };
                logs.insert(id, entry.length);
                self.places().insert(id, place);
            }
        }
        Ok(logs)
    }

    /// An open log.
    pub async fn open(&self, id: u64) -> DiskResult<File> {
        let known = self.handles().get(&id).cloned();
        if let Some(file) = known {
            return Ok(file);
        }
        let file = self.disk.open(&self.path(id), CreateMode::Existing, OpenMode::Shared).await?;
        let mut handles = self.handles();
        let closed = if handles.len() >= HANDLES_MAX { handles.pop_first() } else { None };
        handles.insert(id, Arc::clone(&file));
        drop(handles);
        drop(closed);
        Ok(file)
    }

    async fn create(&self, id: u64, directory: usize, level: FormatLevel) -> DiskResult<File> {
        self.places().insert(id, directory);
        let file = self.disk.open(&self.path(id), CreateMode::CreateNew, OpenMode::Shared).await?;
        file.write_at(0, vec![bytes::Bytes::copy_from_slice(&log_header(id, level))]).await?;
        if !mutant!("S-log-name") {
            self.disk.sync_directory(&self.directories[directory]).await?;
        }
        self.handles().insert(id, Arc::clone(&file));
        Ok(file)
    }

    /// Removes a log nothing refers to.
    pub async fn remove(&self, id: u64) -> DiskResult<()> {
        let closed = self.handles().remove(&id);
        drop(closed);
        self.disk.remove(&self.path(id)).await?;
        self.places().remove(&id);
        Ok(())
    }
}

struct OpenLog {
    id: u64,
    file: File,
    written: u64,
    synced: u64,
}

/// Appends to the newest log of each folder. One per bookie.
///
/// The logs a ledger's entries go to have rising ids, so that of two copies the one in the later log is the
/// newer one: a ledger that comes from another folder begins a new log.
pub(in crate::bookie) struct EntryLogWriter {
    logs: Arc<EntryLogs>,
    log_bytes_max: u64,
    next_id: u64,
    /// The one that is appended to in each folder.
    open: Vec<Option<OpenLog>>,
    /// Lengths up to which logs are synced.
    extents: BTreeMap<u64, u64>,
    bytes_written: Arc<AtomicU64>,
    /// Of the logs it begins.
    level: FormatLevel,
}

impl EntryLogWriter {
    /// A writer that begins a new log with its first flush.
    pub fn new(
        logs: Arc<EntryLogs>,
        log_bytes_max: u64,
        next_id: u64,
        extents: BTreeMap<u64, u64>,
        bytes_written: Arc<AtomicU64>,
        level: FormatLevel,
    ) -> Self {
        let open = logs.directories.iter().map(|_| None).collect();
        Self { logs, log_bytes_max, next_id, open, extents, bytes_written, level }
    }

    /// Lengths up to which logs count.
    pub const fn extents(&self) -> &BTreeMap<u64, u64> {
        &self.extents
    }

    /// The id the next log will have.
    pub const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// True for a log that is being appended to.
    pub fn is_current(&self, id: u64) -> bool {
        self.open.iter().flatten().any(|open| open.id == id)
    }

    /// A log is to be removed.
    pub fn forget(&mut self, id: u64) {
        self.extents.remove(&id);
    }

    /// Writes and syncs all entries of a half, each ledger's where `place` says; those it says nothing of are
    /// left out. After an error the logs are abandoned as they are and the next call begins others.
    pub async fn write_half<P>(
        &mut self,
        half: &Half,
        place: P,
        pace: Option<&Pace<'_>>,
    ) -> DiskResult<Vec<Run>>
    where
        P: Fn(LedgerId) -> Option<Placement>,
    {
        let mut directories: Vec<Vec<_>> = self.open.iter().map(|_| Vec::new()).collect();
        for (ledger, entries) in &half.ledgers {
            let Some(Placement { directory, moved }) = place(*ledger) else { continue };
            if moved && !mutant!("S-moved") {
                self.open[directory] = None;
            }
            directories[directory].push((*ledger, entries));
        }
        let result = self.write_entries(half, &directories, pace).await;
        if result.is_err() {
            self.open.fill_with(|| None);
        }
        result
    }

    async fn write_entries(
        &mut self,
        half: &Half,
        directories: &[Vec<(LedgerId, &Vec<Entry>)>],
        pace: Option<&Pace<'_>>,
    ) -> DiskResult<Vec<Run>> {
        let whole = half.bytes().max(1) as f64;
        let mut handled = 0;
        let mut began = pace.map(|pace| pace.clock.now());
        let mut runs = RunBuilder::default();
        // Frequent small flushes need no buffer of a whole write.
        let mut buffer = BytesMut::with_capacity(half.bytes().min(WRITE_BYTES) + BUFFER_SLACK);
        for (directory, ledgers) in directories.iter().enumerate() {
            for (ledger, entries) in ledgers {
                for entry in *entries {
                    let (id, end) = self.begin_record(directory, &mut buffer).await?;
                    let header = RecordHeader::of_entry(entry, self.level);
                    let length = u32::try_from(header.total_length()).unwrap_or(u32::MAX);
                    runs.record(*ledger, entry.entry, id, end, length);
                    header.encode(&mut buffer);
                    buffer.put_slice(&entry.payload);
                    if buffer.len() >= WRITE_BYTES {
                        handled += buffer.len();
                        self.write(directory, &mut buffer).await?;
                        buffer.reserve(WRITE_BYTES + BUFFER_SLACK);
                        if let (Some(pace), Some(since)) = (pace, began) {
                            self.sync_beyond(directory, PACED_SYNC_BYTES).await?;
                            let worked = pace.clock.now().since(since);
                            pace.rest(worked, handled as f64 / whole).await;
                            began = Some(pace.clock.now());
                        }
                    }
                }
            }
            handled += buffer.len();
            self.write(directory, &mut buffer).await?;
            // Planted bug: the mark moves when the first directory has its part.
            if directory == 0 || !mutant!("S5") {
                self.sync(directory).await?;
            }
        }
        Ok(runs.finish())
    }

    /// The log and offset of the next record, after beginning another log if this one is full.
    async fn begin_record(
        &mut self,
        directory: usize,
        buffer: &mut BytesMut,
    ) -> DiskResult<(u64, u64)> {
        let full =
            |open: &OpenLog, buffered: usize| open.written + buffered as u64 >= self.log_bytes_max;
        if self.open[directory].as_ref().is_some_and(|open| full(open, buffer.len())) {
            self.write(directory, buffer).await?;
            self.sync(directory).await?;
            self.open[directory] = None;
        }
        let open = match self.open[directory].take() {
            Some(open) => open,
            None => {
                let id = self.next_id;
                // Counted up even if creating fails: the name may be there all the same.
                self.next_id += 1;
                let file = self.logs.create(id, directory, self.level).await?;
                OpenLog { id, file, written: LOG_HEADER_BYTES as u64, synced: 0 }
            }
        };
        let place = (open.id, open.written + buffer.len() as u64);
        self.open[directory] = Some(open);
        Ok(place)
    }

    async fn write(&mut self, directory: usize, buffer: &mut BytesMut) -> DiskResult<()> {
        let Some(open) = &mut self.open[directory] else { return Ok(()) };
        let bytes = buffer.split().freeze();
        let length = bytes.len() as u64;
        if length > 0 {
            open.file.write_at(open.written, vec![bytes]).await?;
        }
        open.written += length;
        self.bytes_written.fetch_add(length, Ordering::Relaxed);
        self.sync_beyond(directory, SYNC_BYTES).await
    }

    /// Syncs if at least so many bytes are not.
    async fn sync_beyond(&mut self, directory: usize, bytes: u64) -> DiskResult<()> {
        let open = self.open[directory].as_ref();
        let due = open.is_some_and(|open| open.written - open.synced >= bytes);
        if due { self.sync(directory).await } else { Ok(()) }
    }

    async fn sync(&mut self, directory: usize) -> DiskResult<()> {
        let Some(open) = &mut self.open[directory] else { return Ok(()) };
        if open.written > open.synced {
            if !mutant!("S-mark") {
                open.file.sync().await?;
            }
            open.synced = open.written;
        }
        self.extents.insert(open.id, open.synced);
        Ok(())
    }
}
