//! An open file.

use std::path::PathBuf;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};

use super::driver::{Cost, SimDisk};
use super::{Change, DiskState, SECTOR};
use crate::mutant;
use crate::runtime::sim::ambush::Occasion;
use crate::runtime::sim::crash::CrashOccasion;
use crate::runtime::sim::keyed::below;
use crate::runtime::sim::lock;
use crate::runtime::sim::tape::DecisionKind;
use crate::runtime::{DiskError, DiskErrorKind, DiskOperation, DiskResult, FileDriver};

/// A handle of one start to one file.
pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) inode: u64,
    pub(super) path: PathBuf,
    /// Of a dedicated file: operations one after the other, in the order they were called.
    pub(super) turn: Option<tokio::sync::Mutex<()>>,
}

impl SimFile {
    async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match &self.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    fn error(&self, operation: DiskOperation, kind: DiskErrorKind, text: &str) -> DiskError {
        DiskError::new(operation, &self.path, kind, text)
    }

    /// In a recording: what was done last failed because of what made the disk worse.
    fn blame(&self, disk: &DiskState) {
        let recorder = self.disk.shared.recorder();
        recorder.also(recorder.cause(), disk.made_worse);
    }

    /// Fails the operation if its rate says so.
    fn injected(
        &self,
        disk: &mut DiskState,
        operation: DiskOperation,
        kind: DecisionKind,
        rate: f64,
    ) -> DiskResult<()> {
        match self.disk.shared.chance(&mut disk.site, kind, rate) {
            Some(_) => {
                self.blame(disk);
                Err(self.error(operation, DiskErrorKind::Failed, "injected"))
            }
            None => Ok(()),
        }
    }

    fn write(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        self.disk.check(DiskOperation::Write, &self.path)?;
        let bytes = join(buffers);
        self.disk.event(DiskOperation::Write, self.inode, bytes.len() as u64);
        self.disk.record("write", self.inode, [bytes.len() as i64, offset as i64, 0]);
        let mut disk = lock(&self.disk.node.disk);
        let rate = disk.settings.write_error_rate;
        self.injected(&mut disk, DiskOperation::Write, DecisionKind::WriteError, rate)?;
        let end = offset + bytes.len() as u64;
        let length = disk.inodes.get(&self.inode).map_or(0, |inode| inode.current.length());
        if disk.used.saturating_add(end.saturating_sub(length)) > disk.settings.capacity {
            self.blame(&disk);
            return Err(self.error(DiskOperation::Write, DiskErrorKind::Full, "no space left"));
        }
        let rate = disk.settings.misdirected_write_rate;
        let mut target = offset;
        if length >= end
            && let Some(value) =
                self.disk.shared.chance(&mut disk.site, DecisionKind::MisdirectedWrite, rate)
        {
            let sectors = (length - bytes.len() as u64) / SECTOR;
            target = below(value, sectors + 1) * SECTOR;
        }
        disk.change(self.inode, Change::Write { offset: target, bytes });
        Ok(())
    }

    async fn make_durable(&self) -> DiskResult<()> {
        self.disk.check(DiskOperation::Sync, &self.path)?;
        let upto = lock(&self.disk.node.disk).next_change;
        self.disk.occasion(Occasion::SyncBegun);
        self.disk.node.crash_point(&self.disk.shared, CrashOccasion::SyncBegun, &self.path);
        self.disk.pass(DiskOperation::Sync, &self.path, Cost::Sync).await?;
        self.disk.event(DiskOperation::Sync, self.inode, upto);
        self.disk.record("sync", self.inode, [0; 3]);
        let mut disk = lock(&self.disk.node.disk);
        let rate = disk.settings.sync_error_rate;
        let failed = self.injected(&mut disk, DiskOperation::Sync, DecisionKind::SyncError, rate);
        match failed {
            Ok(()) => disk.make_durable(self.inode, upto),
            Err(_) => disk.fail_sync(&self.disk.shared, self.inode, upto),
        }
        drop(disk);
        if failed.is_ok() {
            self.disk.occasion(Occasion::SyncDone);
            self.disk.node.crash_point(&self.disk.shared, CrashOccasion::SyncDone, &self.path);
        }
        failed
    }
}

fn join(mut buffers: Vec<Bytes>) -> Bytes {
    if buffers.len() == 1 {
        return buffers.pop().unwrap_or_default();
    }
    let mut joined = BytesMut::with_capacity(buffers.iter().map(Bytes::len).sum());
    for buffer in buffers {
        joined.extend_from_slice(&buffer);
    }
    joined.freeze()
}

#[async_trait]
impl FileDriver for SimFile {
    async fn read_at(&self, offset: u64, length: usize) -> DiskResult<Bytes> {
        let _turn = self.turn().await;
        self.disk.pass(DiskOperation::Read, &self.path, Cost::Read).await?;
        let mut disk = lock(&self.disk.node.disk);
        let rate = disk.settings.read_error_rate;
        if mutant!("X-past-end")
            && disk.inodes.get(&self.inode).is_some_and(|inode| offset > inode.current.length())
        {
            return Err(self.error(DiskOperation::Read, DiskErrorKind::Failed, "behind the end"));
        }
        self.injected(&mut disk, DiskOperation::Read, DecisionKind::ReadError, rate)?;
        let bytes = disk
            .inodes
            .get(&self.inode)
            .map(|inode| inode.current.read(offset, length))
            .unwrap_or_default();
        drop(disk);
        self.disk.event(DiskOperation::Read, self.inode, bytes.len() as u64);
        self.disk.record("read", self.inode, [bytes.len() as i64, offset as i64, 0]);
        Ok(bytes)
    }

    async fn write_at(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        let _turn = self.turn().await;
        self.disk.pass(DiskOperation::Write, &self.path, Cost::Write).await?;
        self.write(offset, buffers)
    }

    async fn sync(&self) -> DiskResult<()> {
        let _turn = self.turn().await;
        self.make_durable().await
    }

    async fn write_and_sync(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        let _turn = self.turn().await;
        self.disk.pass(DiskOperation::Write, &self.path, Cost::Write).await?;
        self.write(offset, buffers)?;
        self.make_durable().await
    }

    async fn length(&self) -> DiskResult<u64> {
        self.disk.check(DiskOperation::Read, &self.path)?;
        let disk = lock(&self.disk.node.disk);
        Ok(disk.inodes.get(&self.inode).map_or(0, |inode| inode.current.length()))
    }

    async fn set_length(&self, length: u64) -> DiskResult<()> {
        let _turn = self.turn().await;
        self.disk.pass(DiskOperation::SetLength, &self.path, Cost::Write).await?;
        self.disk.event(DiskOperation::SetLength, self.inode, length);
        self.disk.record("set length of", self.inode, [length as i64, 0, 0]);
        let mut disk = lock(&self.disk.node.disk);
        let before = disk.inodes.get(&self.inode).map_or(0, |inode| inode.current.length());
        if disk.used.saturating_add(length.saturating_sub(before)) > disk.settings.capacity {
            let (operation, kind) = (DiskOperation::SetLength, DiskErrorKind::Full);
            return Err(self.error(operation, kind, "no space left"));
        }
        disk.change(self.inode, Change::SetLength(length));
        Ok(())
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if self.disk.node.is_start(self.disk.start)
            && let Some(inode) = lock(&self.disk.node.disk).inodes.get_mut(&self.inode)
        {
            inode.handles = inode.handles.saturating_sub(1);
        }
    }
}
