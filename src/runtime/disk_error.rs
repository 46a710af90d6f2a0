//! How a disk operation fails.

use std::path::{Path, PathBuf};

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    /// Opening or creating a file.
    Open,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Making bytes or names durable.
    Sync,
    /// Changing a file's length.
    SetLength,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Listing or creating a directory, asking for facts.
    Directory,
    /// Locking against a second process.
    Lock,
}

/// What a caller may decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No such file or directory.
    NotFound,
    /// It exists and must not.
    AlreadyExists,
    /// No space left.
    Full,
    /// Held by another process.
    Locked,
    /// The medium or the file system failed; what was asked may or may not have happened.
    Failed,
}

/// A failed disk operation with its facts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation:?} of {path}: {detail}", path = path.display())]
pub struct DiskError {
    /// What was tried.
    pub operation: DiskOperation,
    /// On which path.
    pub path: PathBuf,
    /// What a caller may decide on.
    pub kind: DiskErrorKind,
    /// The operating system's words.
    pub detail: String,
}

/// Result of a disk operation.
pub type DiskResult<T> = Result<T, DiskError>;

impl DiskError {
    /// An error with its facts.
    pub fn new(
        operation: DiskOperation,
        path: &Path,
        kind: DiskErrorKind,
        detail: impl Into<String>,
    ) -> Self {
        Self { operation, path: path.to_owned(), kind, detail: detail.into() }
    }
}
