//! Where blocking calls run: tokio's pool for ordinary files, a thread of its own for a dedicated one.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::oneshot;

use crate::runtime::{DiskError, DiskErrorKind, DiskOperation, DiskResult};

/// Operations queued for one dedicated file; its caller waits beyond it.
const DEDICATED_QUEUE_MAX: usize = 1024;

type Work = Box<dyn FnOnce() + Send>;

/// A thread that performs the operations of one file in the order they were called.
pub(super) struct DedicatedThread {
    queue: SyncSender<Work>,
}

impl DedicatedThread {
    /// Starts the thread; it ends when this value is dropped.
    pub(super) fn start(name: &str) -> std::io::Result<Self> {
        let (queue, work) = sync_channel::<Work>(DEDICATED_QUEUE_MAX);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            for operation in work {
                operation();
            }
        })?;
        Ok(Self { queue })
    }

    /// Runs one operation on the thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        path: &Path,
        operation: impl FnOnce() -> DiskResult<T> + Send + 'static,
    ) -> DiskResult<T> {
        let (sender, result) = oneshot::channel();
        let work: Work = Box::new(move || {
            // The caller may have gone; the operation was performed all the same.
            let _ = sender.send(operation());
        });
        if self.queue.send(work).is_err() {
            return Err(gone(path));
        }
        result.await.unwrap_or_else(|_| Err(gone(path)))
    }
}

/// Runs one operation on tokio's pool of blocking threads.
pub(super) async fn run_blocking<T: Send + 'static>(
    path: &Path,
    operation: impl FnOnce() -> DiskResult<T> + Send + 'static,
) -> DiskResult<T> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(result) => result,
        Err(_) => Err(gone(path)),
    }
}

fn gone(path: &Path) -> DiskError {
    DiskError::new(
        DiskOperation::Open,
        path,
        DiskErrorKind::Failed,
        "the thread that performs this file's operations is gone",
    )
}
