//! Where entries rest: entry logs hold them, the location index finds them, the facts log knows their ledgers,
//! the checkpoint file says how much of each counts.

mod checkpoint_file;
mod entry_log;
mod facts_log;
mod location_index;
mod pace;
mod rebuild;
mod run;

pub(super) use checkpoint_file::CheckpointFile;
pub(super) use entry_log::{
    EntryLogWriter, EntryLogs, LOG_HEADER_BYTES, Placement, entry_log_id, entry_log_name, log_level,
};
pub(super) use facts_log::{FactsError, FactsLogWriter, FactsPlace, read_facts};
pub(super) use location_index::{LocationIndex, LogUse};
pub(super) use pace::Pace;
pub(super) use rebuild::rebuild;
pub(super) use run::{Run, RunBuilder};
