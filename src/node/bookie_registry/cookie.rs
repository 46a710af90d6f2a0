//! A bookie's identity held against metadata before it serves.
//!
//! The disk's cookie (the bookie's own) says who this is. Metadata keeps one record per identity for
//! ever, and a marker file beside the bookie's folders says that the record was once made. So: no record
//! and no marker is a first start (or one cut short before any entry was stored); no record but a marker
//! means that metadata lost its memory, and every ledger of this bookie would look deleted; a marker of
//! another identity means that the bookie's disks were wiped or swapped.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::{BookieId, WallTime};
use crate::metadata::{Expect, Metadata, MetadataError};
use crate::reached;
use crate::runtime::{DiskError, Runtime};

/// Prefix of cookie records.
pub const COOKIES_PREFIX: &str = "/cookies/";
/// Between two attempts to reach metadata.
const PAUSE: Duration = Duration::from_millis(200);

/// One identity, made once, never removed by a bookie. JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CookieRecord {
    /// Format of this record; 1.
    pub format: u32,
    /// The identity.
    pub bookie: BookieId,
    /// Where it was when it was made, for people.
    pub address: String,
    /// When it was made, for people.
    pub created: WallTime,
}

/// The bookie must not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    /// Metadata has forgotten a bookie it knew.
    #[error("metadata holds no cookie of bookie {0}, which was registered before")]
    Missing(BookieId),
    /// The folder belongs to another identity.
    #[error("this folder belongs to bookie {expected}, the disks say {found}: wiped or swapped")]
    Swapped {
        /// Who was registered from this folder.
        expected: String,
        /// Who the disks say this is.
        found: BookieId,
    },
    /// The record cannot be understood.
    #[error("the cookie of bookie {bookie} in metadata is not readable: {detail}")]
    Unreadable {
        /// The bookie.
        bookie: BookieId,
        /// What is wrong.
        detail: String,
    },
    /// Metadata refused.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The marker cannot be read or written.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl CookieRecord {
    /// Key of a bookie's cookie.
    pub fn key(bookie: BookieId) -> String {
        format!("{COOKIES_PREFIX}{bookie}")
    }
}

/// Makes the record of a new identity, checks that of an old one. `marker` is the path of the marker
/// file. Waits for metadata as long as it is away: a bookie that cannot prove who it is must not serve.
pub async fn check_cookie(
    runtime: &Runtime,
    metadata: &Metadata,
    bookie: BookieId,
    address: &str,
    marker: &Path,
) -> Result<(), CookieError> {
    let marked = runtime.disk.read_file(marker).await?;
    if let Some(marked) = &marked
        && marked[..] != *bookie.to_string().as_bytes()
    {
        reached!("registry: the bookie's disks were swapped");
        let expected = String::from_utf8_lossy(marked).into_owned();
        return Err(CookieError::Swapped { expected, found: bookie });
    }
    while !hold_against_record(runtime, metadata, bookie, address, marked.is_some()).await? {
        runtime.clock.sleep(PAUSE).await;
    }
    if marked.is_none() {
        runtime.disk.replace_file(marker, Bytes::from(bookie.to_string())).await?;
    }
    Ok(())
}

/// True if the record is there and good; false to ask again.
async fn hold_against_record(
    runtime: &Runtime,
    metadata: &Metadata,
    bookie: BookieId,
    address: &str,
    was_registered: bool,
) -> Result<bool, CookieError> {
    let key = CookieRecord::key(bookie);
    match metadata.get(&key).await {
        Ok(Some(found)) => {
            let unreadable = |detail: String| CookieError::Unreadable { bookie, detail };
            let record: CookieRecord = serde_json::from_slice(&found.value)
                .map_err(|error| unreadable(error.to_string()))?;
            if record.format != 1 || record.bookie != bookie {
                return Err(unreadable(format!("it says {record:?}")));
            }
            return Ok(true);
        }
        Ok(None) if was_registered => {
            reached!("registry: metadata has forgotten the bookie");
            return Err(CookieError::Missing(bookie));
        }
        Ok(None) => {}
        Err(error) => return retry_or_fail(error),
    }
    let record = CookieRecord {
        format: 1,
        bookie,
        address: address.to_owned(),
        created: runtime.clock.wall(),
    };
    let value = serde_json::to_vec(&record)
        .map_err(|error| CookieError::Unreadable { bookie, detail: error.to_string() })?;
    match metadata.put(&key, Bytes::from(value), Expect::Absent, None).await {
        Ok(_) => Ok(true),
        // Made by the attempt whose answer was lost: look again.
        Err(MetadataError::VersionMismatch { .. }) => Ok(false),
        Err(error) => retry_or_fail(error),
    }
}

fn retry_or_fail(error: MetadataError) -> Result<bool, CookieError> {
    match error {
        MetadataError::Unavailable(_)
        | MetadataError::NotLeader { .. }
        | MetadataError::OutcomeUnknown(_) => {
            tracing::info!(%error, "waiting for metadata to check the bookie's cookie");
            Ok(false)
        }
        error => Err(error.into()),
    }
}
