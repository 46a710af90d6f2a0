//! Protects P1 and P7 across versions: nodes of the former version, upgraded ones, and ones at the newest format level work
//! together while one after the other is changed, within the rule of docs/operating/upgrade.md; what one wrote the others read,
//! through faults, forwards and back.

use std::time::Duration;

use seawall::domain::{Formats, Position};
use seawall::simulator::history::MessageNumber;
use seawall::simulator::plan::{Plan, Topology};
use seawall::simulator::trial::Trial;
use seawall::simulator::versions::{FORMER, RAISED, UPGRADED, Versions};

use crate::support::brokers::publish_on;
use crate::support::{Stage, scenario_of_seed};

/// Published between two changes.
const MESSAGES: usize = 5;

/// Two brokers, so that one reads what the other wrote; ledgers are short, and nothing is answered from memory.
fn two_brokers_of_the_former_version(plan: &mut Plan) {
    plan.shape.brokers = 2;
    plan.formats = FORMER;
    plan.ledger_entries_max = 10;
    plan.tail_cache_bytes = 1;
}

/// A cluster being changed, and what it acknowledged.
struct Change {
    stage: Stage,
    acknowledged: Vec<(MessageNumber, Position)>,
    /// Draws so far.
    drawn: u64,
}

impl Change {
    async fn begin(mut stage: Stage) -> Self {
        stage.keep_everything().await;
        let acknowledged = publish_on(&mut stage, MESSAGES).await;
        Self { stage, acknowledged, drawn: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        (self.stage.world.random("change", self.drawn) % bound as u64) as usize
    }

    /// These nodes, by number, become this version, one after the other, each with a fault, while clients go on.
    async fn each_becomes(&mut self, formats: Formats, nodes: impl Iterator<Item = usize>) {
        for index in nodes {
            let node = &mut self.stage.cluster.nodes[index];
            node.set_formats(formats);
            let machine = node.machine.clone();
            match self.below(3) {
                0 => drop(machine.power_loss()),
                1 => drop(machine.crash()),
                _ => self.stage.cluster.nodes[index].stop_in_order(),
            }
            self.fault(index).await;
            self.acknowledged.extend(publish_on(&mut self.stage, MESSAGES).await);
            self.stage.world.heal_all();
            self.stage.wait_until_served().await;
            self.is(index, formats);
            self.stage.all_there(&self.acknowledged.clone()).await;
        }
    }

    /// Something happens to others while a node is changed.
    async fn fault(&mut self, changed: usize) {
        let nodes = self.stage.cluster.nodes.len();
        let other = (changed + 1 + self.below(nodes - 1)) % nodes;
        let other = self.stage.cluster.nodes[other].machine.clone();
        match self.below(4) {
            0 => self.everything_goes_dark(),
            1 => drop(other.power_loss()),
            2 => {
                self.stage.world.isolate(&other);
                self.stage.pass(Duration::from_secs(2)).await;
                self.stage.world.heal_all();
            }
            _ => {}
        }
    }

    fn everything_goes_dark(&self) {
        for node in &self.stage.cluster.nodes {
            node.machine.power_loss();
        }
    }

    fn is(&self, index: usize, formats: Formats) {
        let node = &self.stage.cluster.nodes[index];
        assert!(node.is_what_it_was_set_to() && node.formats() == formats);
    }

    fn nodes(&self) -> std::ops::Range<usize> {
        0..self.stage.cluster.nodes.len()
    }

    /// The site goes dark, and all is there afterwards.
    async fn survives_the_dark(&mut self) {
        self.everything_goes_dark();
        self.stage.wait_until_served().await;
        self.stage.all_there(&self.acknowledged.clone()).await;
    }
}

#[test]
fn a_cluster_is_upgraded_node_by_node_and_raised_node_by_node() {
    for seed in 1..4 {
        scenario_of_seed(
            seed,
            Topology::Cluster,
            two_brokers_of_the_former_version,
            |stage| async move {
                let mut change = Change::begin(stage).await;
                for formats in [UPGRADED, RAISED] {
                    let nodes = change.nodes();
                    change.each_becomes(formats, nodes).await;
                    change.survives_the_dark().await;
                }
            },
        );
    }
}

#[test]
fn a_rollback_half_way_loses_nothing() {
    for seed in 1..3 {
        scenario_of_seed(
            seed,
            Topology::Cluster,
            two_brokers_of_the_former_version,
            |stage| async move {
                let mut change = Change::begin(stage).await;
                let all = change.nodes();
                // From the last on, brokers first: half of each role, and back to the former version.
                change.each_becomes(UPGRADED, all.clone().rev().step_by(2)).await;
                change.each_becomes(FORMER, all.clone().rev().step_by(2)).await;
                change.survives_the_dark().await;
                // Then all of it, half of it raised, and back to the level before.
                change.each_becomes(UPGRADED, all.clone()).await;
                change.each_becomes(RAISED, all.clone().step_by(2)).await;
                change.each_becomes(UPGRADED, all.step_by(2)).await;
                change.survives_the_dark().await;
            },
        );
    }
}

#[test]
fn a_former_version_refuses_a_disk_of_the_newest_level() {
    let former = |plan: &mut Plan| plan.formats = FORMER;
    scenario_of_seed(1, Topology::Standalone, former, |mut stage| async move {
        stage.keep_everything().await;
        let mut acknowledged = publish_on(&mut stage, MESSAGES).await;
        // Raised without a checkpoint in between: what is there is in the journal, and has to be found there.
        for (formats, is_known) in [(RAISED, true), (FORMER, false), (UPGRADED, true)] {
            stage.cluster.nodes[0].set_formats(formats);
            assert!(stage.machine("node-0").power_loss());
            if is_known {
                stage.wait_until_served().await;
                stage.all_there(&acknowledged).await;
                acknowledged.extend(publish_on(&mut stage, MESSAGES).await);
                continue;
            }
            stage.pass(Duration::from_secs(3)).await;
            assert!(!stage.cluster.all_serve(), "a former version serves what it cannot read");
            let reason = stage.cluster.nodes[0].gave_up_because.clone().unwrap_or_default();
            assert!(reason.contains("format 2, this version reads up to 1"), "{reason}");
        }
        stage.all_there(&acknowledged).await;
    });
}

#[test]
fn drawn_mixtures_keep_every_promise() {
    for seed in 0..4 {
        let trial = Trial { versions: Versions::Mixed, ..Trial::new(seed, Topology::Swarm) };
        let run = std::thread::spawn(move || seawall::simulator::run(&trial, false).0);
        let report = run.join().unwrap();
        assert_eq!(report.violations, [], "seed {seed}");
    }
}
