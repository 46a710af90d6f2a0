//! How many nodes of which role a run has, and how ledgers are replicated on them.

use super::draw::Draw;
use super::plan::Topology;
use crate::ledger::Quorum;

/// The shape of a cluster. All counts are 0 on a standalone node, which has every role itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes with the role of metadata: one keeps it alone, several are a group.
    pub metadata: usize,
    /// Nodes with the role of bookie; never fewer than the ensemble.
    pub bookies: usize,
    /// Nodes with the role of broker.
    pub brokers: usize,
    /// Every node is a bookie, and the first ones have the other roles as well: how small clusters are run.
    pub shares_nodes: bool,
    /// Replication of every ledger.
    pub quorum: Quorum,
}

/// Ensemble, write quorum, ack quorum: the common one, wider than the write quorum, no spare copy beyond
/// the ack quorum, one copy may miss, and no replication.
const QUORUMS: [Quorum; 5] = [
    Quorum { ensemble: 3, write: 3, ack: 2 },
    Quorum { ensemble: 5, write: 3, ack: 2 },
    Quorum { ensemble: 4, write: 2, ack: 2 },
    Quorum { ensemble: 3, write: 2, ack: 1 },
    Quorum { ensemble: 1, write: 1, ack: 1 },
];

impl Shape {
    /// One node with all roles.
    const ALONE: Self =
        Self { metadata: 0, bookies: 0, brokers: 0, shares_nodes: false, quorum: Quorum::SINGLE };
    /// The plainest cluster. Its metadata is not a group: what is hunted on it is not consensus, and its runs
    /// are the quickest.
    const PLAIN: Self =
        Self { metadata: 1, bookies: 3, brokers: 1, shares_nodes: false, quorum: QUORUMS[0] };

    /// What a small production cluster looks like.
    const LOADED: Self =
        Self { metadata: 3, bookies: 5, brokers: 2, shares_nodes: false, quorum: QUORUMS[1] };

    /// The shape a seed has on a topology.
    pub(super) fn draw(draw: &Draw, topology: Topology) -> Self {
        match topology {
            Topology::Standalone => Self::ALONE,
            Topology::Cluster => Self::PLAIN,
            Topology::Loaded => Self::LOADED,
            Topology::Swarm => {
                let quorum = draw.pick("quorum", &QUORUMS);
                let least = quorum.ensemble.max(3) as u64;
                let bookies = draw.between("bookies", least, 7.min(least + 2)) as usize;
                let brokers = draw.between("brokers", 1, 3) as usize;
                let metadata = draw.pick("metadata", &[1, 3, 3, 5]);
                let shares_nodes = metadata <= bookies && draw.chance("shares nodes", 30);
                Self { metadata, bookies, brokers, shares_nodes, quorum }
            }
        }
    }

    /// Nodes of the cluster.
    pub const fn nodes(&self) -> usize {
        match (self.bookies, self.shares_nodes) {
            (0, _) => 1,
            (bookies, true) => bookies,
            (bookies, false) => self.metadata + bookies + self.brokers,
        }
    }

    /// Whether the loss of one copy is within the promises.
    pub const fn spares_a_copy(&self) -> bool {
        self.quorum.ack >= 2
    }
}
