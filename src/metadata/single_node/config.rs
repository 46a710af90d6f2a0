//! Folder and sizes of a single-node store.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder and sizes of a single-node store.
#[derive(Clone, Debug)]
pub struct SingleNodeConfig {
    /// Folder of log and snapshot; created if missing.
    pub directory: PathBuf,
    /// After this many bytes of log a snapshot is written and the log begins anew.
    pub log_bytes: u64,
    /// How often logical time is looked at. One step of logical time is at most twice this, so that a
    /// pause of this node does not end everybody's sessions at once.
    pub tick: Duration,
    /// Changes waiting for the writer; callers wait beyond it.
    pub queue_length: usize,
    /// Bytes of changes waiting for the writer; callers wait beyond it.
    pub queue_bytes: usize,
}

impl SingleNodeConfig {
    /// Defaults below one data folder.
    pub fn below(data: &Path) -> Self {
        Self {
            directory: data.join("metadata"),
            log_bytes: 16 * 1024 * 1024,
            tick: Duration::from_millis(500),
            queue_length: 4096,
            queue_bytes: 16 * 1024 * 1024,
        }
    }
}
