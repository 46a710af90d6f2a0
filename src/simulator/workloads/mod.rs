//! What clients do in a run, all through the real Pulsar front end. Workloads only talk and write down;
//! judging is the checkers' work.

mod consume;
mod drain;
mod publish;
mod session;

pub use consume::{ConsumerRole, consume};
pub use drain::{read_whole_log, setup_topic};
pub use publish::{prove_writable, publish};
pub use session::{SessionError, WorkloadClient};

use crate::runtime::Runtime;
use crate::runtime::ShutdownSignal;

use super::history::SharedHistory;
use super::plan::Plan;

/// What every workload is given.
#[derive(Clone)]
pub struct WorkloadContext {
    /// The client node's runtime.
    pub runtime: Runtime,
    /// Address of the broker's Pulsar port, `host:port`.
    pub broker: String,
    /// Where everything is written down.
    pub history: SharedHistory,
    /// The run's settings.
    pub plan: std::sync::Arc<Plan>,
    /// Ends the workload.
    pub stop: ShutdownSignal,
}

/// The subscription that never acknowledges, so that nothing is trimmed and the whole log can be read.
pub const KEEPER: &str = "keeper";
/// The Exclusive subscription.
pub const EXCLUSIVE: &str = "exclusive";
/// The Shared subscription.
pub const SHARED: &str = "shared";
