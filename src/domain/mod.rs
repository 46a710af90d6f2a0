//! Shared nouns: admitted only when three modules need them. No I/O, no async, no clock.

mod bookie_id;
mod bookie_messages;
mod entry;
mod format_level;
mod ledger_id;
mod position;
mod rack;
mod size;
mod time;
mod topic_name;
mod zigzag;

pub use bookie_id::{BookieId, CreatorToken};
pub use bookie_messages::{
    AddAnswer, AddBatch, AddError, AddSink, LastAddConfirmed, ReadError, ReadRequest,
};
pub use entry::{Entry, EntryDamage};
pub use format_level::{FormatLevel, Formats, StoredFormats};
pub use ledger_id::{EntryId, LedgerId};
pub use position::Position;
pub use rack::{Rack, RackError};
pub use size::{KIBIBYTE, MEBIBYTE};
pub use time::{Instant, WallTime};
pub use topic_name::{Domain, NamespaceName, TopicName, TopicNameError};
pub use zigzag::{unzigzag, zigzag};
