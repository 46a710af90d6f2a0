//! Makes the index again from the entry logs.

use std::collections::BTreeMap;

use super::{EntryLogs, LOG_HEADER_BYTES, LocationIndex, RunBuilder, log_level};
use crate::bookie::journal::Window;
use crate::bookie::record::{RECORD_HEADER_BYTES_MAX, RecordHeader, RecordKind};
use crate::domain::LedgerId;
use crate::runtime::{DiskError, IndexError};
use crate::{in_state, reached};

const RUNS_AT_ONCE: usize = 64;

/// The index could not be made again.
#[derive(Debug, thiserror::Error)]
pub(in crate::bookie) enum RebuildError {
    /// A log could not be read.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Puts all records of all logs into the index, older logs first, and returns the number of damaged places.
/// An entry in a damaged place is not in the index afterwards: the caller must see to it that no entry
/// missing is called absent if that number is not 0.
pub(in crate::bookie) async fn rebuild<S>(
    logs: &EntryLogs,
    index: &LocationIndex,
    extents: &BTreeMap<u64, u64>,
    skip: S,
) -> Result<u64, RebuildError>
where
    S: Fn(LedgerId) -> bool,
{
    reached!("bookie: index made again");
    let _state = in_state!("bookie: the index is made again");
    let mut damaged_places = 0;
    for (id, extent) in extents {
        let file = logs.open(*id).await?;
        let mut window = Window::new(&file);
        let mut runs = RunBuilder::default();
        let mut at = LOG_HEADER_BYTES as u64;
        let level = log_level(&window.bytes(0, LOG_HEADER_BYTES).await?, *id);
        damaged_places += u64::from(level.is_none());
        let decode = |bytes: &[u8]| match level {
            Some(level) => RecordHeader::decode(bytes, level),
            None => RecordHeader::decode_any(bytes),
        };
        let mut in_damage = false;
        while at < *extent {
            let bytes = window.bytes(at, RECORD_HEADER_BYTES_MAX).await?;
            let whole =
                decode(&bytes).filter(|header| at + header.total_length() as u64 <= *extent);
            let Some(header) = whole else {
                // Step on, byte by byte, to the next header that checks out.
                damaged_places += u64::from(!in_damage);
                in_damage = true;
                at += 1;
                continue;
            };
            in_damage = false;
            let length = header.total_length();
            if header.kind == RecordKind::Entry && !skip(header.ledger) {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                runs.record(header.ledger, header.entry, *id, at, length);
            }
            at += length as u64;
            if runs.closed() >= RUNS_AT_ONCE {
                insert_each(index, &mut runs)?;
            }
        }
        insert_each(index, &mut runs)?;
    }
    Ok(damaged_places)
}

/// One by one: runs of one log may overlap, when an entry was stored again before the log was full.
fn insert_each(index: &LocationIndex, runs: &mut RunBuilder) -> Result<(), IndexError> {
    for run in runs.finish() {
        index.insert(&[run])?;
    }
    Ok(())
}
