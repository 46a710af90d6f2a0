//! What clients do in a run, through the real Pulsar front end and metadata's service. Workloads only talk and write down;
//! judging is the checkers' work.

mod consume;
mod damage;
mod drain;
mod publish;
mod registers;
mod rewind;
mod session;

pub use consume::{ConsumerRole, consume, look_at_the_rest};
pub use damage::damage;
pub use drain::{read_whole_log, setup_topic};
pub use publish::{prove_writable, publish};
pub use registers::{read_registers, use_registers, watch_registers};
pub use rewind::{REWINDER, rewind};
pub use session::{SessionError, Told, WorkloadClient, property};

use std::sync::Arc;

use super::history::{DRAINED_SUBSCRIPTIONS, SharedHistory};
use super::plan::Plan;
use crate::runtime::sim::World;
use crate::runtime::{Runtime, ShutdownSignal};

/// What every workload is given.
#[derive(Clone)]
pub struct WorkloadContext {
    /// The client node's runtime.
    pub runtime: Runtime,
    /// Address of the broker's Pulsar port, `host:port`.
    pub broker: String,
    /// Node-to-node addresses of the nodes with metadata.
    pub metadata_addresses: Vec<String>,
    /// Where everything is written down.
    pub history: SharedHistory,
    /// The run's settings.
    pub plan: Arc<Plan>,
    /// For the one clock all events of the history are stamped with.
    pub world: World,
    /// Ends the workload.
    pub stop: ShutdownSignal,
}

/// The subscription that never acknowledges, so that nothing is trimmed and the whole log can be read; not
/// there on topics that are trimmed.
pub const KEEPER: &str = "keeper";
pub use super::history::EXCLUSIVE;
/// The Shared subscription.
pub const SHARED: &str = DRAINED_SUBSCRIPTIONS[1];

impl WorkloadContext {
    /// Virtual nanoseconds since the start of the run, the same for every node.
    pub fn stamp(&self) -> u64 {
        u64::try_from(self.world.now().as_nanos()).unwrap_or(u64::MAX)
    }
}
