//! Every bound of the store, and the refusal at each.

use std::time::Duration;

use crate::domain::{KIBIBYTE, MEBIBYTE};
use crate::metadata::MetadataError;

/// Longest key: a topic name of the longest kind, with a cursor's name behind it, fits. Longer is refused.
pub const KEY_BYTES_MAX: usize = 2 * KIBIBYTE as usize;
/// Longest value. Longer is refused.
pub const VALUE_BYTES_MAX: usize = MEBIBYTE as usize;
/// Most pairs one listing answers. Asking for more is refused.
pub const LIST_PAGE_MAX: usize = 1000;
/// Most sessions at once. Opening one more is refused.
pub const SESSIONS_MAX: usize = 10_000;
/// Most counters. Counters are never removed, because a counter that began anew would repeat numbers.
pub const COUNTERS_MAX: usize = 10_000;
/// Most watches at once on one node. Opening one more is refused.
pub const WATCHES_MAX: usize = 10_000;
/// Events waiting for one slow watcher; at one more its watch ends.
pub const WATCH_PENDING_EVENTS_MAX: usize = 10_000;
/// Bytes of keys and values waiting for one slow watcher; beyond it its watch ends.
pub const WATCH_PENDING_BYTES_MAX: usize = 16 * MEBIBYTE as usize;
/// Keys, values and [`KEY_OVERHEAD_BYTES`] for each, together. A put that would pass it is refused.
pub const STORE_BYTES_MAX: u64 = 512 * MEBIBYTE;
/// What a key costs beside its own bytes.
pub const KEY_OVERHEAD_BYTES: u64 = 128;
/// Longest time to live of a session. Longer, and zero, are refused.
pub const TIME_TO_LIVE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

fn refused(reason: String) -> MetadataError {
    MetadataError::Refused(reason)
}

/// A key begins with `/`, holds more than that, no control characters, at most [`KEY_BYTES_MAX`] bytes.
pub fn check_key(key: &str) -> Result<(), MetadataError> {
    check_prefix(key)?;
    if key.len() < 2 {
        return Err(refused("the key is empty".to_owned()));
    }
    Ok(())
}

/// A prefix is like a key but may be `/` alone.
pub fn check_prefix(prefix: &str) -> Result<(), MetadataError> {
    if prefix.len() > KEY_BYTES_MAX {
        return Err(refused(format!("a key of {} bytes, allowed {KEY_BYTES_MAX}", prefix.len())));
    }
    if !prefix.starts_with('/') {
        return Err(refused("a key begins with /".to_owned()));
    }
    if prefix.chars().any(char::is_control) {
        return Err(refused("a key holds no control characters".to_owned()));
    }
    Ok(())
}

/// A value is at most [`VALUE_BYTES_MAX`] bytes.
pub(super) fn check_value(value: &[u8]) -> Result<(), MetadataError> {
    if value.len() > VALUE_BYTES_MAX {
        return Err(refused(format!(
            "a value of {} bytes, allowed {VALUE_BYTES_MAX}",
            value.len()
        )));
    }
    Ok(())
}

/// A time to live is more than zero and at most [`TIME_TO_LIVE_MAX`].
pub(super) fn check_time_to_live(milliseconds: u64) -> Result<(), MetadataError> {
    if milliseconds == 0 || u128::from(milliseconds) > TIME_TO_LIVE_MAX.as_millis() {
        return Err(refused(format!(
            "a time to live of {milliseconds} ms, allowed 1 ms to {TIME_TO_LIVE_MAX:?}"
        )));
    }
    Ok(())
}

/// A listing names a prefix and asks for at most [`LIST_PAGE_MAX`] pairs.
pub fn check_list(prefix: &str, limit: usize) -> Result<(), MetadataError> {
    check_prefix(prefix)?;
    if limit > LIST_PAGE_MAX {
        return Err(refused(format!("a page of {limit} keys, allowed {LIST_PAGE_MAX}")));
    }
    Ok(())
}

/// Clients that may ask again; with one more, that which has asked for nothing for the longest is forgotten.
pub const CLIENTS_MAX: usize = 1024;
/// Changes of one client that wait for their answers; one further ahead is refused.
pub const CLIENT_CHANGES_MAX: u64 = 2048;

/// Changes kept for watchers that come from another node; who needs older ones reads the state again.
pub const RECENT_EVENTS_MAX: usize = 4096;
/// Bytes of the same.
pub const RECENT_BYTES_MAX: usize = 4 * 1024 * 1024;
