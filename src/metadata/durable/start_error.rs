//! Why the store must not start.

use crate::runtime::DiskError;

/// The store must not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataStartError {
    /// Snapshot or log is damaged in a way a crash cannot explain, or a part of the log is missing.
    #[error("corrupt metadata in {file}: {detail}")]
    Corrupt {
        /// The file's name.
        file: String,
        /// What does not fit.
        detail: String,
    },
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl MetadataStartError {
    pub(in crate::metadata) fn corrupt(file: &str, detail: impl std::fmt::Display) -> Self {
        Self::Corrupt { file: file.to_owned(), detail: detail.to_string() }
    }
}
