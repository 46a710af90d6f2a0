//! The journal: everything acknowledged is here first, synced, until the entry log has it too.

mod files;
mod group;
mod position;
mod replay;
mod writer;

pub(super) use files::{JournalFiles, journal_file_id, journal_file_name};
pub(super) use group::{
    GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GroupDamage, GroupHeader, ParsedGroup, group_again,
    parse_group,
};
pub(super) use position::JournalPosition;
pub(super) use replay::{ReplayError, ReplayRecord, ReplayTarget, Replayed, Window, replay};
pub(super) use writer::{AddItem, JournalItem, JournalWriter, LedgerItem, batch_bytes};
