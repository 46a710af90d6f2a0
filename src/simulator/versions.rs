//! Nodes of different versions in one run, and the operator who changes one after the other while the storm goes on.
//!
//! The rule (docs/operating/upgrade.md): a former version and a node that writes the newest level never meet, and what
//! was written at the newest level is never given to a former version. So a run is either before the first node was raised,
//! with former versions and new ones at their level, or after it, with new versions at both levels.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cluster::Cluster;
use super::plan::Plan;
use crate::domain::{FormatLevel, Formats};
use crate::runtime::sim::World;
use crate::{invariant, reached};

/// The version before the newest level: writes the one before, and reads no other.
pub const FORMER: Formats = Formats::of_version_with(FormatLevel::One);
/// This version, as it is right after an upgrade.
pub const UPGRADED: Formats = Formats::writing(FormatLevel::One);
/// This version at the newest level.
pub const RAISED: Formats = Formats::writing(FormatLevel::Two);

/// Which versions the nodes of a run have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Versions {
    /// This one at the newest level, always.
    #[default]
    Newest,
    /// Drawn for each node, and changed by restarts while the run goes on.
    Mixed,
}

impl Versions {
    /// The word on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Mixed => "mixed",
        }
    }

    /// True if nothing is mixed.
    pub const fn are_newest(&self) -> bool {
        matches!(self, Self::Newest)
    }
}

/// Draws of one change, at most: far more than any needs, and than there are nodes.
const CHANGE_DRAWS_MAX: u64 = 1 << 8;
/// Mean time between two changes, milliseconds: a cluster is through within a storm.
const PAUSE_MS: u64 = 700;
/// What an operator's restart is called on the decision tape.
const RESTART: u64 = 100;

/// Changes the nodes of a cluster, one at a time. What it does next is a function of the seed, its number, and what the
/// nodes are.
pub(super) struct Operator {
    world: World,
    /// When the next change is due.
    next: Duration,
    /// Changes so far.
    number: u64,
    drawn: u64,
    /// A node has been at the newest level: there is no way back to a former version.
    raised: bool,
}

impl Operator {
    /// Takes over a cluster that was not started yet, and says what each node is at first. None if nothing is to change.
    pub fn take_over(world: &World, plan: &Plan, cluster: &mut Cluster) -> Option<Self> {
        if plan.versions == Versions::Newest {
            return None;
        }
        let mut operator =
            Self { world: world.clone(), next: Duration::ZERO, number: 0, drawn: 0, raised: false };
        operator.raised = operator.below(3) == 0;
        let choices = if operator.raised { [UPGRADED, RAISED] } else { [FORMER, UPGRADED] };
        for node in &mut cluster.nodes {
            node.set_formats(choices[operator.below(2) as usize]);
        }
        Some(operator)
    }

    /// Changes a node if it is time.
    pub fn tick(&mut self, cluster: &mut Cluster) {
        let now = self.world.now();
        // One at a time: the one before is what it was to become.
        if now < self.next || cluster.nodes.iter().any(|node| !node.is_what_it_was_set_to()) {
            return;
        }
        self.number += 1;
        self.drawn = 0;
        self.next = now + Duration::from_millis(1 + self.below(2 * PAUSE_MS));
        let index = self.below(cluster.nodes.len() as u64) as usize;
        let goes_on = self.below(3) > 0;
        let all_upgraded = cluster.nodes.iter().all(|node| node.formats() != FORMER);
        let node = &mut cluster.nodes[index];
        let becomes = match (node.formats(), goes_on) {
            (FORMER, _) => UPGRADED,
            (UPGRADED, true) if all_upgraded => RAISED,
            (UPGRADED, false) if !self.raised => FORMER,
            (RAISED, false) => UPGRADED,
            _ => return,
        };
        match becomes {
            FORMER => reached!("operator: back to the former version"),
            RAISED => reached!("operator: the format level was raised"),
            _ => {}
        }
        self.raised |= becomes == RAISED;
        node.set_formats(becomes);
        let in_order = self.below(3) > 0;
        if in_order && node.serving().is_some() && node.machine.admit_operation(RESTART) {
            node.stop_in_order();
        } else {
            node.machine.crash();
        }
        let met = |formats: Formats| cluster.nodes.iter().any(|node| node.may_be(formats));
        invariant!(!(met(FORMER) && met(RAISED)), "the operator lets versions meet that must not");
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        let index = self.number * CHANGE_DRAWS_MAX + self.drawn;
        self.world.random("operator", index) % bound.max(1)
    }
}
