//! One run in the simulated world: a storm with clients at work, then everything healed and the cluster given
//! time to come back, then the checks.

use std::sync::Arc;
use std::time::Duration;

use super::awaited::{NOTHING_LEFT, REPLICATION};
use super::checkers::{
    Finding, Holder, final_chain, full_replication, holder, nothing_left_behind, replicas_agree,
};
use super::clients::{Clients, Machine, Outcome, SETUP_LIMIT, Stage, TICK};
use super::cluster::Cluster;
use super::history::{HistoryClock, SharedHistory};
use super::nemesis::Nemesis;
use super::noted::{COME_BACK, Noted};
use super::plan::{FaultKind, Plan, Topology};
use super::versions::Operator;
use super::workloads::property;
use crate::bookie::Bookie;
use crate::node::Node;
use crate::runtime::Runtime;
use crate::runtime::sim::{Note, SimNode, World};

/// Longest wait for an operator's change of members to end.
const OPERATOR_LIMIT: Duration = Duration::from_secs(120);

/// The simulated world as the place of a run.
struct SimStage {
    world: World,
    cluster: Cluster,
    producer_machine: SimNode,
    consumer_machine: SimNode,
}

/// The bookies of these nodes, for checkers.
fn holders(nodes: &[Arc<Node>]) -> Vec<Holder> {
    nodes.iter().filter_map(|node| node.bookie().map(holder)).collect()
}

impl SimStage {
    /// The nodes that serve now.
    fn serving(&self) -> Vec<Arc<Node>> {
        self.cluster.nodes.iter().filter_map(|node| node.serving()).collect()
    }

    fn machine(&self, machine: Machine) -> &SimNode {
        match machine {
            Machine::Producers => &self.producer_machine,
            Machine::Consumers => &self.consumer_machine,
        }
    }
}

impl Stage for SimStage {
    fn now(&self) -> Duration {
        self.world.now()
    }

    async fn sleep(&self, duration: Duration) {
        self.world.sleep(duration).await;
    }

    fn look_after(&mut self) {
        self.cluster.supervise();
    }

    fn all_serve(&mut self) -> bool {
        self.cluster.all_serve()
    }

    fn brokers(&self) -> String {
        self.cluster.broker_address()
    }

    fn metadata_nodes(&self) -> Vec<String> {
        self.cluster.metadata_addresses()
    }

    fn runtime(&self, machine: Machine) -> Runtime {
        self.machine(machine).runtime()
    }

    fn clock(&self) -> HistoryClock {
        let world = self.world.clone();
        HistoryClock::new(move || world.now())
    }
}

struct Run {
    clients: Clients<SimStage>,
    /// Changes versions in the storm.
    operator: Option<Operator>,
}

pub(super) async fn run(world: World, plan: Arc<Plan>, history: SharedHistory) -> Outcome {
    let mut cluster = Cluster::create(&world, &plan, &history);
    let operator = Operator::take_over(&world, &plan, &mut cluster);
    let stage = SimStage {
        cluster,
        producer_machine: world.create_node("client-0", "client-0"),
        consumer_machine: world.create_node("client-1", "client-1"),
        world,
    };
    let mut run = Run { clients: Clients::new(stage, plan, history), operator };
    let mut outcome = Outcome::default();
    run.phase("set-up");
    if let Err(detail) = run.clients.set_up().await {
        outcome.fail("P6", "set_up", detail);
        return outcome;
    }
    run.clients.start_workloads();
    run.clients.start_register_clients();
    run.phase("storm");
    run.storm(&mut outcome).await;
    run.phase(COME_BACK);
    if let Err(detail) = run.clients.come_back(&mut outcome).await {
        outcome.fail("P6", "liveness", detail);
    } else {
        run.phase("full replication");
        run.await_replication(&mut outcome).await;
    }
    run.phase("checks");
    run.check(&mut outcome).await;
    outcome.gave_up = run.clients.stage.cluster.gave_up;
    outcome
}

impl Run {
    /// Notes, in a recording, what begins.
    fn phase(&self, name: &str) {
        self.clients.stage.world.recorder().note(|| Note::from(Noted::Phase).text(name));
    }

    fn serving(&self) -> Vec<Arc<Node>> {
        self.clients.stage.serving()
    }

    async fn storm(&mut self, outcome: &mut Outcome) {
        let Clients { stage, plan, .. } = &mut self.clients;
        let machines = vec![stage.producer_machine.clone(), stage.consumer_machine.clone()];
        let mut nemesis = Nemesis::new(&stage.world, plan, machines);
        if plan.timing > 0 {
            // Faults and clients meet at other moments, too.
            let part = stage.world.random("phase", plan.timing) % TICK.as_nanos() as u64;
            stage.world.sleep(Duration::from_nanos(part)).await;
        }
        let until = stage.world.now() + plan.safety_phase;
        while stage.world.now() < until {
            stage.cluster.supervise();
            nemesis.tick(&mut stage.cluster);
            if let Some(operator) = &mut self.operator {
                operator.tick(&mut stage.cluster);
            }
            tokio::select! {
                biased;
                () = stage.world.sprung() => {}
                () = stage.world.sleep(TICK) => {}
            }
        }
        outcome.strikes = nemesis.struck().to_vec();
        nemesis.heal_everything(&mut stage.cluster);
        // An operator does not leave a change of members half done.
        let until = stage.world.now() + OPERATOR_LIMIT;
        while nemesis.is_operating() && stage.world.now() < until {
            stage.cluster.supervise();
            nemesis.operate(&mut stage.cluster);
            stage.world.sleep(TICK).await;
        }
    }

    async fn check(&mut self, outcome: &mut Outcome) {
        self.clients.stop_all();
        if self.clients.plan.topology != Topology::Standalone {
            let finding = self.check_replicas().await;
            outcome.findings.push(("replicas_agree".to_owned(), finding));
        }
        self.look_at_properties().await;
        if outcome.recovered_after.is_some() {
            self.clients.look_at_the_rest(outcome).await;
            self.await_nothing_left(outcome).await;
        }
        self.read_chains().await;
        self.clients.judge(outcome);
    }

    /// Asks the brokers what their subscriptions have kept.
    async fn look_at_properties(&mut self) {
        let serving = self.serving();
        let topics: Vec<_> = serving
            .iter()
            .filter_map(|node| node.broker())
            .flat_map(|broker| broker.loaded_topics())
            .collect();
        let history = self.clients.history.clone();
        let work = async move {
            for topic in topics {
                for subscription in topic.stats().await.subscriptions {
                    if !subscription.is_durable {
                        continue;
                    }
                    let mut history = history.lock();
                    history.properties_seen += 1;
                    if subscription.properties != [property()] {
                        let name = format!("{}/{}", topic.name(), subscription.name);
                        history.properties_lost.push(name);
                    }
                }
            }
        };
        // Without an answer nothing was compared.
        let _ = self.clients.while_supervised("ask for statistics", work, SETUP_LIMIT).await;
    }

    /// Writes down what metadata says of each topic's ledgers.
    async fn read_chains(&mut self) {
        let serving = self.serving();
        let Some(metadata) = serving.first().map(|node| node.metadata()) else { return };
        let (topics, history) = (self.clients.topics.clone(), self.clients.history.clone());
        let work = async move {
            for topic in topics {
                if let Some(chain) = final_chain(&metadata, &topic).await {
                    history.lock().final_chains.insert(topic, chain);
                }
            }
        };
        // Without an answer nothing is compared, which the campaign sees.
        let _ = self.clients.while_supervised("read chains", work, Duration::from_secs(60)).await;
    }

    /// Everything works again; now every copy must come to be where it must be, by itself.
    async fn await_replication(&mut self, outcome: &mut Outcome) {
        if self.clients.plan.topology == Topology::Standalone {
            return;
        }
        let began = self.clients.stage.now();
        let look = |stage: &SimStage| {
            let nodes = stage.serving();
            let metadata = nodes.first()?.metadata();
            let bookies = holders(&nodes);
            Some(async move { full_replication(&metadata, &bookies).await })
        };
        let finding = self.clients.await_finding(&REPLICATION, look).await;
        if finding.violations.is_empty() {
            // It runs beside what clients wait for: what that took may count for both.
            let before = outcome.recovered_after.unwrap_or_default();
            outcome.replicated_after = Some(before + (self.clients.stage.now() - began));
        }
        outcome.findings.push((REPLICATION.checker.to_owned(), finding));
    }

    /// All clients are gone now, and so must be what brokers had of them.
    async fn await_nothing_left(&mut self, outcome: &mut Outcome) {
        let look = |stage: &SimStage| {
            let nodes = stage.serving();
            Some(async move { nothing_left_behind(&nodes).await })
        };
        let finding = self.clients.await_finding(&NOTHING_LEFT, look).await;
        outcome.findings.push((NOTHING_LEFT.checker.to_owned(), finding));
    }

    async fn check_replicas(&mut self) -> Finding {
        let serving = self.serving();
        let bookies = holders(&serving);
        let metadata = serving.first().map(|node| node.metadata());
        let expected = self.clients.plan.shape.bookies;
        let Some(metadata) = metadata.filter(|_| bookies.len() == expected) else {
            let mut finding = Finding::default();
            let detail = format!("{} of {expected} bookies serve after the heal", bookies.len());
            finding.broken("P6", "replicas_agree", detail);
            return finding;
        };
        let rots = self.clients.plan.faults.contains(&FaultKind::BitRot);
        let victim = self.clients.plan.rot_victim(&self.clients.stage.world).filter(|_| rots);
        let may_rot = victim
            .and_then(|number| self.clients.stage.cluster.bookie(number)?.serving())
            .and_then(|node| node.bookie().map(Bookie::id));
        let work = async move { replicas_agree(&metadata, &bookies, may_rot).await };
        match self
            .clients
            .while_supervised("compare replicas", work, Duration::from_secs(300))
            .await
        {
            Some(finding) => finding,
            None => {
                let mut finding = Finding::default();
                finding.broken("P6", "replicas_agree", "comparing replicas hangs".to_owned());
                finding
            }
        }
    }
}
