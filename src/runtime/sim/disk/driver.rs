//! The disk as one start of a node sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::DiskState;
use super::file::SimFile;
use super::names::Named;
use crate::runtime::sim::agenda::{delay, step_back};
use crate::runtime::sim::ambush::Occasion;
use crate::runtime::sim::crash::CrashOccasion;
use crate::runtime::sim::keyed::{keyed, with_tail};
use crate::runtime::sim::lock;
use crate::runtime::sim::node::NodeState;
use crate::runtime::sim::recorder::{Happening, Note};
use crate::runtime::sim::tape::DecisionKind;
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::Shared;
use crate::runtime::{
    CreateMode, DirectoryEntry, DiskDriver, DiskError, DiskErrorKind, DiskLock, DiskOperation,
    DiskResult, File, OpenMode,
};

/// One start's door to the node's disk.
#[derive(Clone)]
pub(in crate::runtime::sim) struct SimDisk {
    pub(in crate::runtime::sim) shared: Arc<Shared>,
    pub(in crate::runtime::sim) node: Arc<NodeState>,
    pub(in crate::runtime::sim) start: u64,
}

/// How long an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    Read,
    Write,
    Sync,
}

impl SimDisk {
    /// Waits out a stall and the operation's latency; fails if the process is gone.
    pub(super) async fn pass(
        &self,
        operation: DiskOperation,
        path: &Path,
        cost: Cost,
    ) -> DiskResult<()> {
        loop {
            let released = {
                let disk = lock(&self.node.disk);
                if !disk.stalled {
                    break;
                }
                Arc::clone(&disk.released).notified_owned()
            };
            released.await;
        }
        let (nanos, value) = {
            let mut disk = lock(&self.node.disk);
            disk.operations += 1;
            let settings = &disk.settings;
            let (least, tail) = match cost {
                Cost::Read => (settings.read_latency, std::time::Duration::ZERO),
                Cost::Write => (settings.write_latency, std::time::Duration::ZERO),
                Cost::Sync => (settings.sync_latency, settings.sync_tail),
            };
            let seed = self.shared.timing_seed;
            let value = keyed(&[seed, 7, u64::from(disk.node), disk.operations]);
            let nanos = with_tail(value, least.as_nanos() as u64, tail.as_nanos() as u64);
            (nanos.saturating_mul(u64::from(settings.slowness.max(1))), value)
        };
        if nanos == 0 && value % 2 == 0 {
            // Other tasks may get in between, as they do on a real disk.
            step_back().await;
        }
        delay(&self.shared, nanos).await;
        self.check(operation, path)
    }

    /// Fails if the process is gone: what a destructor of it tries must not happen.
    pub(super) fn check(&self, operation: DiskOperation, path: &Path) -> DiskResult<()> {
        if self.node.is_start(self.start) {
            return Ok(());
        }
        Err(DiskError::new(operation, path, DiskErrorKind::Failed, "this process is gone"))
    }

    pub(super) fn occasion(&self, occasion: Occasion) {
        self.node.occasion(&self.shared, occasion);
    }

    pub(super) fn event(&self, operation: DiskOperation, what: u64, bytes: u64) {
        let code = u64::from(self.node.id) << 8 | operation as u64;
        self.shared.event(EventKind::Disk, [code, what, bytes]);
    }

    /// The same for a recording, which knows what files are called.
    pub(super) fn record(&self, operation: &str, inode: u64, facts: [i64; 3]) {
        self.shared.recorder().file_operation(self.node.id, inode, operation, facts);
    }

    /// An operation on names: checked and counted, then done in one turn.
    fn with<T>(
        &self,
        operation: DiskOperation,
        path: &Path,
        work: impl FnOnce(&mut DiskState) -> Result<T, (DiskErrorKind, &'static str)>,
    ) -> DiskResult<T> {
        self.check(operation, path)?;
        self.event(operation, 0, path.as_os_str().len() as u64);
        self.shared.recorder().note(|| {
            let text = format!("{} {}", word(operation), path.display());
            Note::from(Happening::Disk).on(self.node.id).text(text)
        });
        work(&mut lock(&self.node.disk))
            .map_err(|(kind, text)| DiskError::new(operation, path, kind, text))
    }
}

fn word(operation: DiskOperation) -> &'static str {
    match operation {
        DiskOperation::Open => "open",
        DiskOperation::Read => "read",
        DiskOperation::Write => "write",
        DiskOperation::Sync => "sync",
        DiskOperation::SetLength => "set length of",
        DiskOperation::Rename => "rename",
        DiskOperation::Remove => "remove",
        DiskOperation::Directory => "look at or make",
        DiskOperation::Lock => "lock",
    }
}

/// The path without `.` parts and trailing slashes.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

const NO_FOLDER: (DiskErrorKind, &str) = (DiskErrorKind::NotFound, "no such directory");
const NO_FILE: (DiskErrorKind, &str) = (DiskErrorKind::NotFound, "no such file");

const NOT_A_FOLDER: (DiskErrorKind, &str) = (DiskErrorKind::Failed, "it is not a directory");

/// The first folder of a path that is missing or a file decides what is said.
fn is_folder(disk: &DiskState, path: &Path) -> Result<(), (DiskErrorKind, &'static str)> {
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    for folder in all {
        match disk.names.get(folder) {
            Some(Named::Directory) => {}
            Some(Named::File(_)) => return Err(NOT_A_FOLDER),
            None => return Err(NO_FOLDER),
        }
    }
    Ok(())
}

fn folder_exists(disk: &DiskState, path: &Path) -> Result<(), (DiskErrorKind, &'static str)> {
    path.parent().map_or(Err(NO_FOLDER), |parent| is_folder(disk, parent))
}

/// Whether a name may take the place of another.
fn may_rename(
    disk: &DiskState,
    from: &Path,
    to: &Path,
) -> Result<(), (DiskErrorKind, &'static str)> {
    folder_exists(disk, from)?;
    folder_exists(disk, to)?;
    let Some(named) = disk.names.get(from) else { return Err(NO_FILE) };
    if from == to {
        return Ok(());
    }
    if to.starts_with(from) {
        return Err((DiskErrorKind::Failed, "a directory cannot be moved into itself"));
    }
    match (named, disk.names.get(to)) {
        (_, None) | (Named::File(_), Some(Named::File(_))) => Ok(()),
        (Named::File(_), Some(Named::Directory)) => {
            Err((DiskErrorKind::Failed, "a directory is in the way"))
        }
        (Named::Directory, Some(Named::File(_))) => Err(NOT_A_FOLDER),
        (Named::Directory, Some(Named::Directory)) if disk.names.children(to).is_empty() => Ok(()),
        (Named::Directory, Some(Named::Directory)) => {
            Err((DiskErrorKind::Failed, "a directory with something in it is in the way"))
        }
    }
}

#[async_trait]
impl DiskDriver for SimDisk {
    async fn open(&self, path: &Path, create: CreateMode, mode: OpenMode) -> DiskResult<File> {
        let path = tidy(path);
        self.pass(DiskOperation::Open, &path, Cost::Read).await?;
        let inode = self.with(DiskOperation::Open, &path, |disk| {
            folder_exists(disk, &path)?;
            let inode = match (disk.names.get(&path), create) {
                (Some(_), CreateMode::CreateNew) => {
                    return Err((DiskErrorKind::AlreadyExists, "it exists"));
                }
                (Some(Named::Directory), _) => {
                    return Err((DiskErrorKind::Failed, "it is a directory"));
                }
                (Some(Named::File(inode)), _) => inode,
                (None, CreateMode::Existing) => return Err(NO_FILE),
                (None, _) => {
                    let inode = disk.new_inode(path.clone());
                    disk.names.set(&path, Named::File(inode));
                    inode
                }
            };
            if let Some(found) = disk.inodes.get_mut(&inode) {
                found.handles += 1;
            }
            Ok(inode)
        })?;
        self.shared.recorder().name_file(self.node.id, inode, &path);
        let turn = (mode == OpenMode::Dedicated).then(tokio::sync::Mutex::default);
        Ok(Arc::new(SimFile { disk: self.clone(), inode, path, turn }))
    }

    async fn rename(&self, from: &Path, to: &Path) -> DiskResult<()> {
        let (from, to) = (tidy(from), tidy(to));
        self.pass(DiskOperation::Rename, &from, Cost::Write).await?;
        self.with(DiskOperation::Rename, &from, |disk| {
            may_rename(disk, &from, &to)?;
            if from != to {
                disk.names.rename(&from, &to);
                if let Some(Named::File(inode)) = disk.names.get(&to)
                    && let Some(found) = disk.inodes.get_mut(&inode)
                {
                    found.path = to.clone();
                    self.shared.recorder().name_file(self.node.id, inode, &to);
                }
            }
            Ok(())
        })
    }

    async fn remove(&self, path: &Path) -> DiskResult<()> {
        let path = tidy(path);
        self.pass(DiskOperation::Remove, &path, Cost::Write).await?;
        self.with(DiskOperation::Remove, &path, |disk| {
            folder_exists(disk, &path)?;
            match disk.names.get(&path) {
                Some(Named::File(_)) => {
                    disk.names.remove(&path);
                    Ok(())
                }
                Some(Named::Directory) => Err((DiskErrorKind::Failed, "it is a directory")),
                None => Err(NO_FILE),
            }
        })
    }

    async fn remove_directory(&self, path: &Path) -> DiskResult<()> {
        let path = tidy(path);
        self.pass(DiskOperation::Remove, &path, Cost::Write).await?;
        self.with(DiskOperation::Remove, &path, |disk| match is_folder(disk, &path) {
            Ok(()) => {
                disk.names.remove_all(&path);
                Ok(())
            }
            Err((DiskErrorKind::NotFound, _)) => Ok(()),
            Err(error) => Err(error),
        })?;
        lock(&self.node.indexes).remove_below(&path);
        Ok(())
    }

    async fn create_directory(&self, path: &Path) -> DiskResult<()> {
        let path = tidy(path);
        self.pass(DiskOperation::Directory, &path, Cost::Write).await?;
        self.with(DiskOperation::Directory, &path, |disk| {
            let mut ancestors: Vec<&Path> = path.ancestors().collect();
            ancestors.reverse();
            for ancestor in ancestors {
                match disk.names.get(ancestor) {
                    Some(Named::Directory) => {}
                    Some(Named::File(_)) if ancestor == path => {
                        return Err((DiskErrorKind::AlreadyExists, "a file is in the way"));
                    }
                    Some(Named::File(_)) => return Err(NOT_A_FOLDER),
                    None => disk.names.set(ancestor, Named::Directory),
                }
            }
            Ok(())
        })
    }

    async fn list(&self, path: &Path) -> DiskResult<Vec<DirectoryEntry>> {
        let path = tidy(path);
        self.pass(DiskOperation::Directory, &path, Cost::Read).await?;
        self.with(DiskOperation::Directory, &path, |disk| {
            is_folder(disk, &path)?;
            let entry = |(name, named): (String, Named)| {
                let length = match named {
                    Named::File(inode) => {
                        disk.inodes.get(&inode).map_or(0, |inode| inode.current.length())
                    }
                    Named::Directory => 0,
                };
                DirectoryEntry { name, length, is_directory: named == Named::Directory }
            };
            Ok(disk.names.children(&path).into_iter().map(entry).collect())
        })
    }

    async fn sync_directory(&self, path: &Path) -> DiskResult<()> {
        let path = tidy(path);
        let (upto, first) = self.with(DiskOperation::Sync, &path, |disk| {
            is_folder(disk, &path)?;
            let first = disk.names.first_unsynced(&path).unwrap_or_else(|| path.clone());
            Ok((disk.names.sequence(), first))
        })?;
        self.occasion(Occasion::SyncBegun);
        self.node.crash_point(&self.shared, CrashOccasion::SyncBegun, &first);
        self.pass(DiskOperation::Sync, &path, Cost::Sync).await?;
        self.with(DiskOperation::Sync, &path, |disk| {
            let rate = disk.settings.sync_error_rate;
            if self.shared.chance(&mut disk.site, DecisionKind::SyncError, rate).is_some() {
                let recorder = self.shared.recorder();
                recorder.also(recorder.cause(), disk.made_worse);
                return Err((DiskErrorKind::Failed, "injected: sync of a directory failed"));
            }
            disk.names.make_durable(&path, upto);
            disk.collect();
            Ok(())
        })?;
        self.occasion(Occasion::SyncDone);
        self.node.crash_point(&self.shared, CrashOccasion::SyncDone, &first);
        Ok(())
    }

    async fn free_space(&self, path: &Path) -> DiskResult<u64> {
        self.check(DiskOperation::Directory, path)?;
        let disk = lock(&self.node.disk);
        Ok(disk.settings.capacity.saturating_sub(disk.used))
    }

    async fn lock(&self, path: &Path) -> DiskResult<Box<dyn DiskLock>> {
        let path = tidy(path);
        self.with(DiskOperation::Lock, &path, |disk| {
            is_folder(disk, &path)?;
            if !disk.locks.insert(path.clone()) {
                return Err((DiskErrorKind::Locked, "another process holds it"));
            }
            Ok(())
        })?;
        Ok(Box::new(SimLock { disk: self.clone(), path }))
    }
}

struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        if self.disk.node.is_start(self.disk.start) {
            lock(&self.disk.node.disk).locks.remove(&self.path);
        }
    }
}
