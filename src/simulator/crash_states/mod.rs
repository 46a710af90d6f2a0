//! Every state that a power loss may leave, instead of one drawn at random: a subject does its work once, on a
//! disk that is watched, and then starts from each state of each moment at which the power may go, within a
//! bound. After each start what was promised up to that moment has to be there, and nothing that was never asked
//! for.
//!
//! Moments: the beginning and the end of each sync of a file, folder or index, and each promise given. From the
//! first states of a moment the start itself is watched in the same way, so that the power goes a second time.

mod bookie;
mod explore;
mod file_kind;
mod group;
mod member;
mod record;
mod single_node;
/// What exploring found.
pub mod tally;

use crate::runtime::sim::CrashBound;

pub use explore::StateName;
use tally::Tally;

/// How far to go.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// The states of one moment.
    pub bound: CrashBound,
    /// The first so many states of a moment are started from with the start watched.
    pub again: u64,
    /// The states of one moment of such a start.
    pub again_bound: CrashBound,
    /// Only this state.
    pub only: Option<StateName>,
}

impl Default for CrashOptions {
    fn default() -> Self {
        Self {
            bound: CrashBound { deviations: 3, states: 2_000 },
            again: 3,
            again_bound: CrashBound { deviations: 1, states: 24 },
            only: None,
        }
    }
}

impl CrashOptions {
    /// What fits into every test run.
    pub fn quick() -> Self {
        Self {
            bound: CrashBound { deviations: 3, states: 150 },
            again: 2,
            again_bound: CrashBound { deviations: 1, states: 8 },
            only: None,
        }
    }
}

/// What can be explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectName {
    /// A bookie: journal, entry logs, index, facts log, checkpoint file, cookies.
    Bookie,
    /// A bookie with several journals.
    Journals,
    /// The metadata of a single node: log and snapshot.
    SingleNode,
    /// The members of a metadata group: log with term and vote, snapshot, identity.
    Group,
}

impl SubjectName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bookie, Self::Journals, Self::SingleNode, Self::Group];

    /// The word on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bookie => "bookie",
            Self::Journals => "journals",
            Self::SingleNode => "single-node",
            Self::Group => "group",
        }
    }
}

/// Explores one subject; takes as many threads as there are cores.
pub fn explore(subject: SubjectName, options: &CrashOptions) -> Tally {
    match subject {
        SubjectName::Bookie => explore::explore(&bookie::BookieSubject::OneJournal, options),
        SubjectName::Journals => explore::explore(&bookie::BookieSubject::Journals, options),
        SubjectName::SingleNode => explore::explore(&single_node::SingleNodeSubject, options),
        SubjectName::Group => explore::explore(&group::GroupSubject, options),
    }
}
