//! An open file: positioned reads and writes, `fdatasync`.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Buf, Bytes};

use super::blocking::{DedicatedThread, run_blocking};
use super::disk::disk_error;
use crate::runtime::{DiskOperation, DiskResult, FileDriver};

/// Buffers in one `pwritev`; the kernel allows 1,024.
const VECTORS_MAX: usize = 512;
/// Memory, offset and length must be multiples of this to be written past the page cache.
const DIRECT_ALIGNMENT: usize = 4096;

pub(super) struct OpenFile {
    shared: Arc<Shared>,
    thread: Option<DedicatedThread>,
}

struct Shared {
    file: File,
    /// The same file, for writes past the page cache: what is synced at once and not read again soon need not
    /// be copied into it first. None where the file system refuses.
    direct: Option<File>,
    path: PathBuf,
}

impl OpenFile {
    pub(super) fn new(
        file: File,
        direct: Option<File>,
        path: PathBuf,
        thread: Option<DedicatedThread>,
    ) -> Self {
        Self { shared: Arc::new(Shared { file, direct, path }), thread }
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Shared) -> DiskResult<T> + Send + 'static,
    ) -> DiskResult<T> {
        let shared = Arc::clone(&self.shared);
        let work = move || operation(&shared);
        match &self.thread {
            Some(thread) => thread.run(&self.shared.path, work).await,
            None => run_blocking(&self.shared.path, work).await,
        }
    }
}

impl Shared {
    fn read(&self, offset: u64, length: usize) -> DiskResult<Bytes> {
        let fail = |error| disk_error(DiskOperation::Read, &self.path, error);
        // Clamped to the file, so that a caller's generous length does not allocate it.
        let file_length = self.file.metadata().map_err(fail)?.len();
        let available = usize::try_from(file_length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut buffer = vec![0_u8; length.min(available)];
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fail(error)),
            }
        }
        buffer.truncate(filled);
        Ok(buffer.into())
    }

    fn write(&self, mut offset: u64, mut buffers: Vec<Bytes>) -> DiskResult<()> {
        let fail = |error| disk_error(DiskOperation::Write, &self.path, error);
        let mut first = 0;
        loop {
            while first < buffers.len() && buffers[first].is_empty() {
                first += 1;
            }
            if first == buffers.len() {
                return Ok(());
            }
            let last = buffers.len().min(first + VECTORS_MAX);
            let slices: Vec<IoSlice<'_>> =
                buffers[first..last].iter().map(|buffer| IoSlice::new(buffer)).collect();
            let mut written = match rustix::io::pwritev(&self.file, &slices, offset) {
                Ok(0) => return Err(fail(std::io::ErrorKind::WriteZero.into())),
                Ok(written) => written,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(fail(error.into())),
            };
            offset += written as u64;
            while written > 0 {
                let step = written.min(buffers[first].len());
                buffers[first].advance(step);
                written -= step;
                if buffers[first].is_empty() {
                    first += 1;
                }
            }
        }
    }

    /// Writes as much of the start of `buffer` past the page cache as is aligned and the kernel takes so.
    /// Answers how much; the rest is for [`Shared::write`].
    fn write_direct(&self, offset: u64, buffer: &Bytes) -> DiskResult<usize> {
        let Some(direct) = &self.direct else { return Ok(0) };
        let aligned = |number: usize| number.is_multiple_of(DIRECT_ALIGNMENT);
        let mut done = 0;
        while done < buffer.len() {
            let rest = &buffer[done..];
            let at = offset + done as u64;
            let fits = aligned(rest.as_ptr().addr())
                && aligned(rest.len())
                && at.is_multiple_of(DIRECT_ALIGNMENT as u64);
            if !fits {
                break;
            }
            match direct.write_at(rest, at) {
                Ok(0) => break,
                Ok(written) => done += written,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // Stricter than 4096, or no direct writes at all.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => break,
                Err(error) => return Err(disk_error(DiskOperation::Write, &self.path, error)),
            }
        }
        Ok(done)
    }

    fn sync(&self) -> DiskResult<()> {
        self.file.sync_data().map_err(|error| disk_error(DiskOperation::Sync, &self.path, error))
    }
}

#[async_trait]
impl FileDriver for OpenFile {
    async fn read_at(&self, offset: u64, length: usize) -> DiskResult<Bytes> {
        self.run(move |shared| shared.read(offset, length)).await
    }

    async fn write_at(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        self.run(move |shared| shared.write(offset, buffers)).await
    }

    async fn sync(&self) -> DiskResult<()> {
        self.run(Shared::sync).await
    }

    async fn write_and_sync(&self, offset: u64, buffers: Vec<Bytes>) -> DiskResult<()> {
        self.run(move |shared| {
            let (mut offset, mut buffers) = (offset, buffers);
            if let [one] = &mut buffers[..] {
                let written = shared.write_direct(offset, one)?;
                offset += written as u64;
                one.advance(written);
            }
            shared.write(offset, buffers)?;
            shared.sync()
        })
        .await
    }

    async fn length(&self) -> DiskResult<u64> {
        self.run(|shared| {
            let metadata = shared.file.metadata();
            let metadata = metadata
                .map_err(|error| disk_error(DiskOperation::Directory, &shared.path, error))?;
            Ok(metadata.len())
        })
        .await
    }

    async fn set_length(&self, length: u64) -> DiskResult<()> {
        self.run(move |shared| {
            shared
                .file
                .set_len(length)
                .map_err(|error| disk_error(DiskOperation::SetLength, &shared.path, error))
        })
        .await
    }
}
