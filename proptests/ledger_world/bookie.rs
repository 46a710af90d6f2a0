//! A bookie as plain data.

use std::collections::{BTreeMap, BTreeSet};

use seawall::domain::{Entry, EntryId, ReadError, ReadRequest};

/// What one bookie holds of the ledger.
#[derive(Default)]
pub struct Bookie {
    pub entries: BTreeMap<EntryId, Entry>,
    pub rotten: BTreeSet<EntryId>,
    pub fenced: bool,
}

/// What a bookie says when the script loses a request or its answer.
pub fn unreachable() -> ReadError {
    ReadError::Unreachable("script".to_owned())
}

/// A run of good copies, as a bookie answers it.
pub fn read(bookie: &Bookie, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
    let mut run = Vec::new();
    let mut next = request.first;
    while run.len() < request.entries_max as usize
        && let Some(entry) = bookie.entries.get(&next)
    {
        if bookie.rotten.contains(&next) {
            if run.is_empty() {
                return Err(ReadError::Corrupt("script".to_owned()));
            }
            break;
        }
        run.push(entry.clone());
        next = next.next();
    }
    if run.is_empty() { Err(ReadError::Absent) } else { Ok(run) }
}
