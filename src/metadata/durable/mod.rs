//! What a metadata store writes to disk, whoever orders its changes: a log of numbered records in synced
//! groups, and a snapshot that is replaced as a whole.

mod log_file;
mod log_recovery;
mod log_scan;
mod snapshot_file;
mod start_error;

#[cfg(test)]
pub(super) use log_file::FILE_HEADER_BYTES;
pub(super) use log_file::{GROUP_BYTES, LogFile, log_first, log_name};
pub(super) use log_recovery::{LogRecovery, remove_logs};
pub(super) use snapshot_file::{SNAPSHOT_NAME, read_snapshot, read_snapshot_part, write_snapshot};
pub use start_error::MetadataStartError;
