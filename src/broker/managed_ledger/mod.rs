//! A topic as a chain of ledgers: append, rollover, takeover by the next owner, reads across ledgers,
//! the tail cache, and trimming of what no cursor needs.

mod chain;
mod claim;
/// Compare-and-set that survives lost answers.
pub(in crate::broker) mod compare_and_set;
mod contract;
mod driver;
mod handle;
/// Decisions about appends and rollover.
pub mod machine;
mod numbered;
mod open;
mod proof;
mod read;
mod record;
mod roll;
mod stream;
mod tail_cache;
#[cfg(test)]
mod tests;
mod trim;

use std::sync::Arc;

pub use chain::{Chain, ChainLedger};
pub(in crate::broker) use claim::TopicClaim;
pub use contract::{
    AppendError, AppendOutcome, ManagedLedgerError, ManagedLedgerEvents, ManagedLedgerStats,
    NewEntry, StoredEntry,
};
pub use handle::ManagedLedger;
pub(in crate::broker) use handle::lock;
pub use numbered::{NumberedError, NumberedLog, StreamFacts};
pub use tail_cache::TailCache;

use super::BrokerConfig;
use crate::ledger::LedgerClient;
use crate::metadata::Metadata;
use crate::runtime::Runtime;

/// What a managed ledger needs from its broker.
#[derive(Clone)]
pub struct ManagedLedgerEnvironment {
    /// Effects.
    pub runtime: Runtime,
    /// Records of topics and cursors.
    pub metadata: Metadata,
    /// Ledgers.
    pub ledgers: LedgerClient,
    /// Limits.
    pub config: BrokerConfig,
    /// Recent entries of all topics.
    pub cache: Arc<TailCache>,
}
