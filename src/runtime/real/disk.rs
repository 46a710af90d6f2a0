//! The operating system's file system.

use std::fs::{File as SystemFile, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::blocking::{DedicatedThread, run_blocking};
use super::file::OpenFile;
use crate::runtime::{
    CreateMode, DirectoryEntry, DiskDriver, DiskError, DiskErrorKind, DiskLock, DiskOperation,
    DiskResult, File, OpenMode,
};

/// Name of the file that is locked to take a folder.
const LOCK_FILE: &str = "lock";

pub(super) struct FileSystem;

pub(super) fn disk_error(operation: DiskOperation, path: &Path, error: io::Error) -> DiskError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => DiskErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => DiskErrorKind::AlreadyExists,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskErrorKind::Full,
        _ => DiskErrorKind::Failed,
    };
    DiskError::new(operation, path, kind, error.to_string())
}

/// Runs a call of `std::fs` on the blocking pool and gives its error the facts.
async fn call<T: Send + 'static>(
    operation: DiskOperation,
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> DiskResult<T> {
    let owned = path.to_owned();
    run_blocking(path, move || work(&owned).map_err(|error| disk_error(operation, &owned, error)))
        .await
}

fn open_direct(path: &Path) -> io::Result<SystemFile> {
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

#[async_trait]
impl DiskDriver for FileSystem {
    async fn open(&self, path: &Path, create: CreateMode, mode: OpenMode) -> DiskResult<File> {
        let file = call(DiskOperation::Open, path, move |path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            match create {
                CreateMode::Existing => {}
                CreateMode::CreateIfMissing => {
                    options.create(true).truncate(false);
                }
                CreateMode::CreateNew => {
                    options.create_new(true);
                }
            }
            options.open(path)
        })
        .await?;
        let (thread, direct) = match mode {
            OpenMode::Shared => (None, None),
            OpenMode::Dedicated => {
                let thread = DedicatedThread::start("seawall-file")
                    .map_err(|error| disk_error(DiskOperation::Open, path, error))?;
                // An error means that the file system has no such writes: then there are none.
                (Some(thread), call(DiskOperation::Open, path, open_direct).await.ok())
            }
        };
        Ok(Arc::new(OpenFile::new(file, direct, path.to_owned(), thread)))
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        let to = to.to_owned();
        call(DiskOperation::Rename, from, move |from| std::fs::rename(from, to)).await
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        call(DiskOperation::Remove, path, |path| std::fs::remove_file(path)).await
    }

    async fn remove_directory(&self, path: &Path) -> DiskResult<()> {
        call(DiskOperation::Remove, path, |path| match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        })
        .await
    }

    async fn create_directory(&self, path: &Path) -> DiskResult<()> {
        call(DiskOperation::Directory, path, |path| std::fs::create_dir_all(path)).await
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<DirectoryEntry>> {
        call(DiskOperation::Directory, path, |path| {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                let metadata = match entry.metadata() {
                    // Removed since it was listed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    result => result?,
                };
                entries.push(DirectoryEntry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    length: if metadata.is_dir() { 0 } else { metadata.len() },
                    is_directory: metadata.is_dir(),
                });
            }
            entries.sort_by(|left, right| left.name.cmp(&right.name));
            Ok(entries)
        })
        .await
    }

    async fn sync_directory(&self, path: &Path) -> DiskResult<()> {
        call(DiskOperation::Sync, path, |path| {
            let flags = rustix::fs::OFlags::DIRECTORY.bits().cast_signed();
            OpenOptions::new().read(true).custom_flags(flags).open(path)?.sync_all()
        })
        .await
    }

    async fn free_space(&self, path: &Path) -> DiskResult<u64> {
        call(DiskOperation::Directory, path, |path| {
            let facts = rustix::fs::statvfs(path)?;
            Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
        })
        .await
    }

    async fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        let lock_path = path.join(LOCK_FILE);
        let file = call(DiskOperation::Lock, &lock_path, |path| {
            OpenOptions::new().create(true).truncate(false).write(true).open(path)
        })
        .await?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(FolderLock { file })),
            Err(std::fs::TryLockError::WouldBlock) => Err(DiskError::new(
                DiskOperation::Lock,
                &lock_path,
                DiskErrorKind::Locked,
                "another process holds this folder",
            )),
            Err(std::fs::TryLockError::Error(error)) => {
                Err(disk_error(DiskOperation::Lock, &lock_path, error))
            }
        }
    }
}

/// Released when dropped; by a crash, when the operating system closes the file.
struct FolderLock {
    file: SystemFile,
}

impl DiskLock for FolderLock {}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // The lock belongs to the open file, not to our descriptor of it. A process being spawned by another
        // thread has a copy until it executes, and whoever looks at /proc/<pid>/fd holds it for a moment:
        // closing alone would leave the folder locked until they let go. Failing leaves just that.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_released_folder_is_free_whoever_still_has_its_descriptor() {
        let folder = std::env::temp_dir().join(format!("seawall-lock-{}", std::process::id()));
        FileSystem.create_directory(&folder).await.unwrap();
        let path = folder.join(LOCK_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        file.try_lock().unwrap();
        // What a fork does to every descriptor.
        let copy = file.try_clone().unwrap();
        let held = FolderLock { file };
        assert!(FileSystem.lock(&folder).await.is_err());
        drop(held);
        assert!(FileSystem.lock(&folder).await.is_ok());
        drop(copy);
        FileSystem.remove_directory(&folder).await.unwrap();
    }
}
