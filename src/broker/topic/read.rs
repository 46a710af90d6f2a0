//! Reads for dispatch: new entries from a position on, or certain entries again.

use crate::broker::dispatch::after;
use crate::broker::managed_ledger::{ManagedLedger, ManagedLedgerError, StoredEntry};
use crate::domain::Position;

/// Bytes of one read; a consumer's connection may be over its budget by this much.
pub(super) const READ_BYTES_MAX: usize = 1024 * 1024;
/// Separate stretches of the log in one replay read.
const STRETCHES_MAX: usize = 32;

/// What a read found.
#[derive(Debug, Default)]
pub(super) struct ReadAnswer {
    /// Entries, in order.
    pub(super) entries: Vec<StoredEntry>,
    /// Positions asked for that the log has no more.
    pub(super) gone: Vec<Position>,
}

/// Entries at or after `from`.
pub(super) async fn read_new(
    ledger: ManagedLedger,
    from: Position,
    entries_max: u64,
) -> Result<ReadAnswer, ManagedLedgerError> {
    let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX);
    let entries = ledger.read(from, entries_max, READ_BYTES_MAX).await?;
    Ok(ReadAnswer { entries, gone: Vec::new() })
}

/// These entries, or as many of them, from the first on, as one read may hold.
pub(super) async fn read_replay(
    ledger: ManagedLedger,
    positions: Vec<Position>,
) -> Result<ReadAnswer, ManagedLedgerError> {
    let mut answer = ReadAnswer::default();
    let mut bytes = 0;
    let mut rest = positions.as_slice();
    for _ in 0..STRETCHES_MAX {
        let Some(first) = rest.first() else { break };
        if bytes >= READ_BYTES_MAX {
            break;
        }
        let length = 1 + rest.windows(2).take_while(|pair| after(pair[0]) == pair[1]).count();
        let (stretch, later) = rest.split_at(length);
        let found = ledger.read(*first, length, READ_BYTES_MAX - bytes).await?;
        // The log gives the first entry at or after the one asked for: what it passed over is gone. What
        // lies behind its last entry was not reached for lack of room, unless it gave nothing at all.
        let reached = found.last().map(|entry| entry.position);
        for position in stretch {
            let there = found.binary_search_by_key(position, |entry| entry.position).is_ok();
            if !there && reached.is_none_or(|reached| reached > *position) {
                answer.gone.push(*position);
            }
        }
        let cut_short = reached.is_some_and(|reached| stretch.last() > Some(&reached));
        for entry in found {
            if stretch.binary_search(&entry.position).is_ok() {
                bytes += entry.client_bytes.len();
                answer.entries.push(entry);
            }
        }
        if cut_short {
            break;
        }
        rest = later;
    }
    Ok(answer)
}
