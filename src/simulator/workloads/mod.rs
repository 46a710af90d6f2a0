//! What clients do in a run, through the real Pulsar front end and metadata's service. Workloads only talk and
//! write down; judging is the checkers' work. They run on any runtime: simulated, and in `chaos` against real
//! processes.

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
pub use session::{Received, SessionError, Told, WorkloadClient, WorkloadConsumer, property};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::history::{DRAINED_SUBSCRIPTIONS, HistoryClock, SharedHistory};
use super::plan::Plan;
use crate::runtime::{Runtime, ShutdownSignal};

/// What can be left out of a run. Producers and consumers are in every one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Producers, consumers that acknowledge, and a last look at everything: always there.
    Messages,
    /// A consumer that goes back.
    Rewind,
    /// A client that sends damaged bytes.
    Damage,
    /// Clients of metadata itself, on swarms.
    Registers,
}

impl Workload {
    /// Every workload.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Rewind, Self::Damage, Self::Registers];
}

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
    /// The one clock all events of the history are stamped with.
    pub clock: HistoryClock,
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
    /// Nanoseconds of the history's clock.
    pub fn stamp(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }
}
