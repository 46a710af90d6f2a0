//! The journal: everything acknowledged is here first, synced, until the entry log has it too.

mod begin;
mod files;
mod group;
mod item;
mod position;
mod queue;
mod replay;
mod writer;

pub(super) use begin::{found, go_on};
pub(super) use files::{JournalFiles, journal_file_id, journal_file_name};
pub(super) use group::{
    GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GroupDamage, GroupHeader, ParsedGroup, parse_group,
};
pub(super) use item::{AddItem, JournalItem, LedgerItem, batch_bytes};
pub(super) use position::{JournalPosition, JournalPositions};
pub(super) use queue::JournalQueue;
pub(super) use replay::{ReplayError, ReplayRecord, ReplayTarget, Replayed, Window, replay};
pub(super) use writer::JournalWriter;
