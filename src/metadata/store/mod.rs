//! The metadata store as a pure state machine: the same commands in the same order give the same state,
//! answers and events everywhere. No clock, no disk, no tasks: who decides the order (today one node's
//! log, later consensus) is above.

mod clients;
mod command;
mod command_codec;
mod limits;
mod recent_events;
mod snapshot;
mod state;
mod watches;

#[cfg(test)]
mod tests;

pub use command::{Command, Done, RequestId};
pub use command_codec::{CommandDamage, decode_group, encode_group};
pub use limits::{
    CLIENT_CHANGES_MAX, CLIENTS_MAX, COUNTERS_MAX, KEY_BYTES_MAX, KEY_OVERHEAD_BYTES,
    LIST_PAGE_MAX, SESSIONS_MAX, STORE_BYTES_MAX, TIME_TO_LIVE_MAX, VALUE_BYTES_MAX,
    WATCH_PENDING_BYTES_MAX, WATCH_PENDING_EVENTS_MAX, WATCHES_MAX, check_key, check_list,
    check_prefix,
};
pub use snapshot::SnapshotDamage;
pub use state::{Applied, Store};
pub use watches::{WatchQueue, Watches};
