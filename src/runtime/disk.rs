//! Files and directories, and what a crash may do to them.
//!
//! # What a runtime promises
//! - Bytes written become durable at the next successful [`File::sync`] of that file that **starts** after
//!   the write returned. Until then a power loss may keep, lose or tear (by 512-byte sector) each write, in
//!   any order.
//! - A created, renamed or removed name becomes durable at the next successful [`Disk::sync_directory`] of
//!   its folder. Until then a power loss may undo it.
//! - `sync` makes content and length durable (fdatasync), not the name.
//! - A failed sync says nothing about which bytes are durable, and a later success does not make up for
//!   it: the caller must treat the file as lost (poison).
//! - Reads see all writes that returned before, by any handle of the same process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::DiskResult;
use crate::mutant;

/// Whether opening may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// The file must exist.
    Existing,
    /// Create it if it is missing.
    CreateIfMissing,
    /// The file must not exist.
    CreateNew,
}

/// How a file will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Ordinary file.
    Shared,
    /// On the path of every acknowledgement: its operations run on a thread of its own, in the order
    /// they were called. A [`FileDriver::write_and_sync`] of one buffer whose place in memory, offset and length
    /// are multiples of 4096 may go past the page cache.
    Dedicated,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The last part of the path.
    pub name: String,
    /// Length in bytes; 0 for directories.
    pub length: u64,
    /// True for a directory.
    pub is_directory: bool,
}

/// What a runtime must provide for an open file. Dropping it closes it, without any sync.
#[async_trait]
pub trait FileDriver: Send + Sync {
    /// Up to `length` bytes from `offset`; fewer only at the end of the file.
    async fn read_at(&self, offset: u64, length: usize) -> DiskResult<Bytes>;
    /// Writes all buffers one after the other from `offset`; a gap before it reads as zeros.
    async fn write_at(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()>;
    /// Makes all returned writes durable.
    async fn sync(&self) -> DiskResult<()>;
    /// `write_at`, then `sync`, without a second trip to the file's thread.
    async fn write_and_sync(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()>;
    /// Length in bytes.
    async fn length(&self) -> DiskResult<u64>;
    /// Cuts or extends with zeros; durable after the next sync.
    async fn set_length(&self, length: u64) -> DiskResult<()>;
}

/// Keeps a folder for one process; released when dropped or when the process dies.
pub trait DiskLock: Send + Sync {}

/// What a runtime must provide for a node's disk.
#[async_trait]
pub trait DiskDriver: Send + Sync {
    /// Opens a file for reading and writing.
    async fn open(&self, path: &Path, create: CreateMode, mode: OpenMode) -> DiskResult<File>;
    /// Renames over whatever is there.
    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()>;
    /// Removes a file.
    async fn remove(&self, path: &Path) -> DiskResult<()>;
    /// Removes a directory and all below it; no error if it is missing.
    async fn remove_directory(&self, path: &Path) -> DiskResult<()>;
    /// Creates a directory and its parents; no error if it exists.
    async fn create_directory(&self, path: &Path) -> DiskResult<()>;
    /// What is in a directory, in name order.
    async fn list(&self, path: &Path) -> DiskResult<Vec<DirectoryEntry>>;
    /// Makes the names in a directory durable.
    async fn sync_directory(&self, path: &Path) -> DiskResult<()>;
    /// Bytes that can still be written below `path`.
    async fn free_space(&self, path: &Path) -> DiskResult<u64>;
    /// Takes the folder for this process; `Locked` if another holds it.
    async fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>>;
}

/// An open file.
pub type File = Arc<dyn FileDriver>;

/// Handle to a node's disk.
#[derive(Clone)]
pub struct Disk(Arc<dyn DiskDriver>);

impl Disk {
    /// Wraps a runtime's disk.
    pub fn new(driver: Arc<dyn DiskDriver>) -> Self {
        Self(driver)
    }

    /// True if the path names a file or directory. Any error but "not found" is an error.
    pub async fn exists(&self, path: &Path) -> DiskResult<bool> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(true) };
        match self.0.list(parent).await {
            Ok(entries) => Ok(entries.iter().any(|entry| name.to_str() == Some(&entry.name))),
            Err(error) if error.kind == super::DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads a whole small file; `None` if it does not exist.
    pub async fn read_file(&self, path: &Path) -> DiskResult<Option<Bytes>> {
        match self.0.open(path, CreateMode::Existing, OpenMode::Shared).await {
            Ok(file) => {
                let length = usize::try_from(file.length().await?).unwrap_or(usize::MAX);
                file.read_at(0, length).await.map(Some)
            }
            Err(error) if error.kind == super::DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a small file so that a crash leaves the old or the new content, whole: writes
    /// `<path>.new`, syncs it, renames it over, syncs the folder.
    pub async fn replace_file(&self, path: &Path, content: Bytes) -> DiskResult<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let file = self.0.open(&temporary, CreateMode::CreateIfMissing, OpenMode::Shared).await?;
        file.set_length(0).await?;
        if mutant!("S-replace") {
            file.write_at(0, vec![content]).await?;
        } else {
            file.write_and_sync(0, vec![content]).await?;
        }
        self.0.rename(&temporary, path).await?;
        match path.parent() {
            Some(parent) => self.0.sync_directory(parent).await,
            None => Ok(()),
        }
    }
}

impl std::ops::Deref for Disk {
    type Target = dyn DiskDriver;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
