//! One invariant a file. Checking draws no randomness and counts what it compared: a checker that
//! compared nothing proves nothing, and the run says so.

mod contiguous;
mod election_safety;
mod full_replication;
mod leader_completeness;
mod linearizable_registers;
mod log_matching;
mod no_acknowledged_loss;
mod no_ghost;
mod no_phantom;
mod nothing_left_behind;
mod order;
mod protocol;
mod replicas;
mod revisions;
mod single_writer;
mod stable_positions;
mod state_machine_safety;
mod subscription;
mod watches_miss_nothing;

pub use contiguous::contiguous;
pub use election_safety::election_safety;
pub use full_replication::full_replication;
pub use leader_completeness::leader_completeness;
pub use linearizable_registers::linearizable_registers;
pub use log_matching::log_matching;
pub use no_acknowledged_loss::no_acknowledged_loss;
pub use no_ghost::no_ghost;
pub use no_phantom::no_phantom;
pub use nothing_left_behind::nothing_left_behind;
pub use order::order;
pub use protocol::{protocol, subscription_properties};
pub use replicas::replicas_agree;
pub use revisions::revisions;
pub use single_writer::{BEHIND_ITS_END, FinalChain, ListedLedger, final_chain, single_writer};
pub use stable_positions::stable_positions;
pub use state_machine_safety::state_machine_safety;
pub use subscription::{
    subscription_misses_nothing, subscription_repeats_nothing, unacknowledged_comes_again,
};

pub use watches_miss_nothing::watches_miss_nothing;

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::history::{History, MessageNumber};
use crate::bookie::Bookie;
use crate::domain::BookieId;
use crate::ledger::BookieClient;
use crate::node::bookie_registry::LocalBookie;

/// A bookie whose copies are looked at, wherever it runs.
pub type Holder = (BookieId, Arc<dyn BookieClient>);

/// A bookie of this process.
pub fn holder(bookie: &Bookie) -> Holder {
    (bookie.id(), Arc::new(LocalBookie::new(bookie.clone())))
}

/// The client of a bookie among those that are looked at.
fn client_of(holders: &[Holder], bookie: BookieId) -> Option<&dyn BookieClient> {
    holders.iter().find(|(id, _)| *id == bookie).map(|(_, client)| client.as_ref())
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The promise, by its number in `docs/ARCHITECTURE.md`, or `liveness`, `panic`.
    pub promise: String,
    /// The checker that saw it.
    pub checker: String,
    /// What was seen.
    pub detail: String,
}

impl Display for Violation {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { promise, checker, detail } = self;
        write!(formatter, "{promise} broken ({checker}): {detail}")
    }
}

/// What one checker found.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// How many facts were compared.
    pub compared: u64,
    /// The first violations, at most [`VIOLATIONS_MAX`].
    pub violations: Vec<Violation>,
}

/// A message by its number, as a text says it.
fn told(number: Option<MessageNumber>) -> String {
    number.map_or("no message of ours".to_owned(), |number| format!("message {}", number.0))
}

/// Violations kept of one checker: the first tell the story.
const VIOLATIONS_MAX: usize = 3;

impl Finding {
    /// Notes a violation.
    pub(super) fn broken(&mut self, promise: &str, checker: &str, detail: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation {
                promise: promise.to_owned(),
                checker: checker.to_owned(),
                detail,
            });
        }
    }
}

/// A check over a finished history.
pub type HistoryChecker = fn(&History) -> Finding;

/// Every history checker with its name.
pub const HISTORY_CHECKERS: &[(&str, HistoryChecker)] = &[
    ("no_acknowledged_loss", no_acknowledged_loss),
    ("no_ghost", no_ghost),
    ("order", order),
    ("no_phantom", no_phantom),
    ("stable_positions", stable_positions),
    ("single_writer", single_writer),
    ("subscription_misses_nothing", subscription_misses_nothing),
    ("subscription_repeats_nothing", subscription_repeats_nothing),
    ("unacknowledged_comes_again", unacknowledged_comes_again),
    ("contiguous", contiguous),
    ("protocol", protocol),
    ("subscription_properties", subscription_properties),
];

/// Checkers of what clients of metadata itself were told.
pub const METADATA_CHECKERS: &[(&str, HistoryChecker)] = &[
    ("linearizable_registers", linearizable_registers),
    ("revisions", revisions),
    ("watches_miss_nothing", watches_miss_nothing),
];

/// Checkers of what the members of a metadata group did.
pub const CONSENSUS_CHECKERS: &[(&str, HistoryChecker)] = &[
    ("election_safety", election_safety),
    ("log_matching", log_matching),
    ("leader_completeness", leader_completeness),
    ("state_machine_safety", state_machine_safety),
];

#[cfg(test)]
mod tests;
