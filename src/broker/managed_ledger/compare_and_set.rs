//! Compare-and-set that survives lost answers: after an unknown outcome the key is read again and
//! compared, since a change that was made must not be taken for a conflict.

use std::time::Duration;

use bytes::Bytes;

use crate::metadata::{Expect, Metadata, MetadataError, Revision};
use crate::runtime::Clock;

/// Tries before giving up, and the longest pause between them.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(100);

/// Why a value was not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::broker) enum CasError {
    /// Someone else changed it; certainly not set.
    #[error("someone else changed the record")]
    Conflict,
    /// It may or may not be set, now or later.
    #[error("{0}")]
    Unknown(String),
}

/// Sets `key` if `expect` holds. The value must differ from what any other client would write.
pub(in crate::broker) async fn compare_and_set(
    metadata: &Metadata,
    clock: &Clock,
    key: &str,
    value: Bytes,
    expect: Expect,
) -> Result<Revision, CasError> {
    let mut doubtful = false;
    let mut last = String::new();
    for attempt in 1..=TRIES {
        match metadata.put(key, value.clone(), expect, None).await {
            Ok(version) => return Ok(version),
            Err(MetadataError::VersionMismatch { .. }) if !doubtful => {
                return Err(CasError::Conflict);
            }
            Err(MetadataError::VersionMismatch { .. }) => match metadata.get(key).await {
                Ok(Some(found)) if found.value == value => {
                    crate::reached!("managed ledger: a lost compare-and-set had been made");
                    return Ok(found.version);
                }
                Ok(_) => return Err(CasError::Conflict),
                Err(error) => last = error.to_string(),
            },
            Err(error) => {
                doubtful |= matches!(error, MetadataError::OutcomeUnknown(_));
                last = error.to_string();
            }
        }
        clock.sleep(PAUSE * attempt).await;
    }
    Err(CasError::Unknown(last))
}
