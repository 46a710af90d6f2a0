//! What is done to the cluster and when: a pure draw of the seed, written down before anything happens, and read
//! again to do the same once more. When exactly each node notices is up to the machine: a plan repeats the
//! faults, not the run.

use serde::{Deserialize, Serialize};

use crate::runtime::mix;

/// Who a link leads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Party {
    /// The node of this number, from 1.
    Node(usize),
    /// Every client.
    Clients,
}

/// A fault. Nodes are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub(super) enum Fault {
    /// kill -9, and a start after the while.
    Kill {
        /// Whom.
        node: usize,
    },
    /// SIGTERM, and a start after the while.
    Restart {
        /// Whom.
        node: usize,
    },
    /// SIGSTOP, and SIGCONT after the while.
    Pause {
        /// Whom.
        node: usize,
    },
    /// Nothing gets from one party to a node, or back, or either; connections stay open.
    Cut {
        /// Who opens connections.
        from: Party,
        /// To whom.
        to: usize,
        /// What is sent to it is held.
        forth: bool,
        /// What it answers is held.
        back: bool,
    },
    /// Nothing gets to a node or from it.
    Isolate {
        /// Whom.
        node: usize,
    },
    /// All that goes to a node is late.
    Slow {
        /// Whom.
        node: usize,
        /// By this much.
        delay_ms: u64,
    },
    /// All connections to a node break.
    Reset {
        /// Whom.
        node: usize,
    },
    /// kill -9, bits flip in the bookie's entry logs, and a start after the while.
    Rot {
        /// Whom.
        node: usize,
        /// How many bytes.
        bytes: u64,
    },
    /// kill -9, the bookie's index is gone, and a start after the while.
    IndexLoss {
        /// Whom.
        node: usize,
    },
    /// kill -9, all the bookie stored is gone, and a start after the while: as another bookie.
    DiskLoss {
        /// Whom.
        node: usize,
    },
}

/// A fault with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedFault {
    /// Since the storm began.
    pub(super) at_ms: u64,
    /// How long it lasts.
    pub(super) lasts_ms: u64,
    /// What happens.
    #[serde(flatten)]
    pub(super) fault: Fault,
}

/// Kinds a person can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FaultKind {
    Kill,
    Restart,
    Pause,
    Cut,
    Isolate,
    Slow,
    Reset,
    Rot,
    IndexLoss,
    DiskLoss,
}

impl FaultKind {
    /// All that happen unless others are named.
    pub(super) const USUAL: &'static [Self] = &[
        Self::Kill,
        Self::Restart,
        Self::Pause,
        Self::Cut,
        Self::Isolate,
        Self::Slow,
        Self::Reset,
        Self::Rot,
        Self::IndexLoss,
    ];
}

/// Numbers from a seed.
struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.drawn += 1;
        low + mix(mix(self.seed) ^ self.drawn) % (high - low + 1)
    }

    fn node(&mut self, nodes: usize) -> usize {
        1 + self.between(0, nodes as u64 - 1) as usize
    }
}

/// The node whose copies may rot or be lost; always the same, so that an ack quorum of each entry is elsewhere,
/// repaired or not. Never the first one.
fn victim(seed: u64, nodes: usize) -> usize {
    1 + (1 + mix(seed) as usize % (nodes - 1).max(1)).min(nodes - 1)
}

/// The faults of a seed over a while. The last end before it does.
pub(super) fn draw(
    seed: u64,
    nodes: usize,
    kinds: &[FaultKind],
    duration_ms: u64,
    mean_pause_ms: u64,
) -> Vec<PlannedFault> {
    let mut draws = Draws { seed, drawn: 0 };
    let (mut at_ms, mut plan) = (500, Vec::new());
    // A copy may be lost only where others are.
    let kinds: Vec<FaultKind> = kinds
        .iter()
        .copied()
        .filter(|kind| nodes > 2 || !matches!(kind, FaultKind::Rot | FaultKind::DiskLoss))
        .collect();
    while at_ms < duration_ms && !kinds.is_empty() {
        let kind = kinds[draws.between(0, kinds.len() as u64 - 1) as usize];
        let node = draws.node(nodes);
        let (fault, low, high) = match kind {
            FaultKind::Kill => (Fault::Kill { node }, 100, 6_000),
            FaultKind::Restart => (Fault::Restart { node }, 100, 1_000),
            FaultKind::Pause => (Fault::Pause { node }, 200, 8_000),
            FaultKind::Cut => {
                let parties = nodes as u64;
                let from = match draws.between(0, parties) as usize {
                    other if other != 0 && other != node => Party::Node(other),
                    _ => Party::Clients,
                };
                let way = draws.between(0, 2);
                (Fault::Cut { from, to: node, forth: way != 1, back: way != 0 }, 500, 8_000)
            }
            FaultKind::Isolate => (Fault::Isolate { node }, 500, 8_000),
            FaultKind::Slow => {
                (Fault::Slow { node, delay_ms: draws.between(5, 200) }, 1_000, 8_000)
            }
            FaultKind::Reset => (Fault::Reset { node }, 0, 0),
            FaultKind::Rot => {
                let bytes = draws.between(1, 8);
                (Fault::Rot { node: victim(seed, nodes), bytes }, 100, 2_000)
            }
            FaultKind::IndexLoss => (Fault::IndexLoss { node }, 100, 2_000),
            FaultKind::DiskLoss => (Fault::DiskLoss { node: victim(seed, nodes) }, 100, 2_000),
        };
        let lasts_ms = draws.between(low, high);
        plan.push(PlannedFault { at_ms, lasts_ms, fault });
        at_ms += draws.between(mean_pause_ms / 4, mean_pause_ms * 7 / 4);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_function_of_its_seed_and_survives_being_written() {
        let plan = |seed| draw(seed, 3, FaultKind::USUAL, 600_000, 2_000);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
        assert!(plan(7).len() > 200, "{}", plan(7).len());
        for fault in plan(7) {
            let line = serde_json::to_string(&fault).unwrap();
            assert_eq!(serde_json::from_str::<PlannedFault>(&line).unwrap(), fault, "{line}");
        }
    }

    #[test]
    fn copies_are_hurt_on_one_node_only() {
        for seed in 0..200 {
            let plan = draw(seed, 3, &[FaultKind::Rot, FaultKind::DiskLoss], 60_000, 1_000);
            let hurt = |one: &PlannedFault| match one.fault {
                Fault::Rot { node, .. } | Fault::DiskLoss { node } => node,
                other => panic!("{other:?} was not asked for"),
            };
            let first = hurt(&plan[0]);
            assert!(first > 1 && first <= 3, "{first}");
            assert!(plan.iter().all(|one| hurt(one) == first));
            assert!(draw(seed, 2, &[FaultKind::Rot], 60_000, 1_000).is_empty());
        }
    }
}
