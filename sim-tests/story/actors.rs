//! Writers, readers and recoverers of ledgers, each on a machine of its own with metadata of its own that can be made
//! slow.

use std::sync::Arc;

use seawall::domain::LedgerId;
use seawall::ledger::{ClosedLedger, LedgerClient, LedgerWriter, RecoveryError};
use seawall::metadata::Metadata;
use seawall::runtime::Task;
use seawall::runtime::sim::SimNode;

use super::Play;
use crate::support::ledgers::{Gated, Watched, ledgers, metadata_at};

/// Someone on a machine of their own.
pub struct Actor {
    pub machine: SimNode,
    pub gate: Arc<Gated>,
    pub ledgers: LedgerClient,
    /// A recovery that goes on.
    pub recovering: Option<Task<Result<ClosedLedger, RecoveryError>>>,
    /// A close that goes on.
    pub closing: Option<Task<Result<ClosedLedger, seawall::ledger::CloseError>>>,
    /// A wait for more to read that goes on.
    pub waiting: Option<Task<()>>,
}

/// A ledger and what its writer was told.
pub struct Writing {
    pub ledger: LedgerId,
    pub writer: Option<Arc<LedgerWriter>>,
    pub watched: Arc<Watched>,
    /// Entries handed to the writer.
    pub sent: u64,
    /// The machines of its first ensemble.
    pub ensemble: Vec<String>,
    /// Its end, once someone has found it.
    pub end: Option<ClosedLedger>,
}

impl Play {
    /// Who has this name; a machine is made for them when they are first named.
    pub fn actor(&mut self, name: &str) -> &mut Actor {
        let Self { stage, actors, .. } = self;
        actors.entry(name.to_owned()).or_insert_with(|| {
            let machine = stage.world.create_node(name, name);
            let runtime = machine.runtime();
            let metadata: Metadata = metadata_at(&runtime, &stage.cluster.metadata_addresses());
            let gate = Gated::opened(metadata);
            let ledgers = ledgers(&runtime, Arc::<Gated>::clone(&gate));
            Actor { machine, gate, ledgers, recovering: None, closing: None, waiting: None }
        })
    }

    /// The ledger that this writer writes.
    pub fn writing(&self, writer: &str) -> Result<&Writing, String> {
        self.writings.get(writer).ok_or_else(|| format!("{writer:?} has no ledger"))
    }

    /// The same, to be changed.
    pub fn writing_mut(&mut self, writer: &str) -> Result<&mut Writing, String> {
        self.writings.get_mut(writer).ok_or_else(|| format!("{writer:?} has no ledger"))
    }
}
