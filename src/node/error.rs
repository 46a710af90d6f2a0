//! Why a node does not start.

use crate::bookie::BookieStartError;
use crate::metadata::MetadataStartError;
use crate::runtime::DiskError;

use super::bookie_registry::CookieError;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Settings that cannot work together.
    #[error("configuration: {0}")]
    Config(String),
    /// The data folder cannot be used, or another process holds it.
    #[error("data folder: {0}")]
    Disk(#[from] DiskError),
    /// Metadata does not start.
    #[error("metadata: {0}")]
    Metadata(#[from] MetadataStartError),
    /// The bookie does not start.
    #[error("bookie: {0}")]
    Bookie(#[from] BookieStartError),
    /// The bookie is not the one metadata knows.
    #[error("bookie: {0}")]
    Cookie(#[from] CookieError),
    /// The disk failed a part that had started; it serves nobody until the process starts anew.
    #[error("{0}")]
    Failed(String),
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: String,
        /// The system's answer.
        error: std::io::Error,
    },
}
