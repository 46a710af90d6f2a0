//! One run: a storm with clients at work, then everything healed and the cluster given time to come back,
//! then the checks.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::checkers::{
    CONSENSUS_CHECKERS, Finding, HISTORY_CHECKERS, METADATA_CHECKERS, Violation, final_chain,
    full_replication, replicas_agree,
};
use super::cluster::Cluster;
use super::history::SharedHistory;
use super::nemesis::Nemesis;
use super::plan::{FaultKind, Plan, Topology};
use super::workloads::{
    ConsumerRole, EXCLUSIVE, SHARED, WorkloadContext, consume, damage, look_at_the_rest, property,
    prove_writable, publish, read_registers, read_whole_log, rewind, setup_topic, use_registers,
    watch_registers,
};
use crate::bookie::Bookie;
use crate::broker::SubscriptionType;
use crate::runtime::sim::{SimNode, World};
use crate::runtime::{Shutdown, Task};

/// Step of the storm.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for the first start of all nodes and topics, without any fault.
const SETUP_LIMIT: Duration = Duration::from_secs(120);
/// Longest wait for an operator's change of members to end.
const OPERATOR_LIMIT: Duration = Duration::from_secs(120);
/// Longest wait for publishers to end: above the deadline of a send.
const PUBLISHERS_LIMIT: Duration = Duration::from_secs(20);
/// Longest wait after that until every copy is where it must be.
const REPAIR_LIMIT: Duration = Duration::from_secs(240);
/// Pause before a client tries its work again.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);
/// Between two looks at that.
const REPAIR_LOOK: Duration = Duration::from_secs(3);
/// Wait for what ended publishers have left in links and queues to reach the broker.
const SETTLE: Duration = Duration::from_secs(2);

/// What the main future of a run found.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) findings: Vec<(String, Finding)>,
    /// From the heal until every topic took a message.
    pub(super) writable_after: Option<Duration>,
    /// From the heal until everything was delivered, without the wait for publishers to end.
    pub(super) recovered_after: Option<Duration>,
    pub(super) gave_up: u64,
}

impl Outcome {
    fn fail(&mut self, promise: &str, checker: &str, detail: String) {
        let mut finding = Finding { compared: 1, violations: Vec::new() };
        finding.violations.push(Violation {
            promise: promise.to_owned(),
            checker: checker.to_owned(),
            detail,
        });
        self.findings.push((checker.to_owned(), finding));
    }
}

struct Run {
    world: World,
    plan: Arc<Plan>,
    cluster: Cluster,
    history: SharedHistory,
    topics: Vec<String>,
    producer_machine: SimNode,
    consumer_machine: SimNode,
    stop_publishing: Shutdown,
    stop_consuming: Shutdown,
    tasks: Vec<Task<()>>,
    publishing: Arc<AtomicUsize>,
}

pub(super) async fn run(world: World, plan: Arc<Plan>, history: SharedHistory) -> Outcome {
    let cluster = Cluster::create(&world, &plan, &history);
    let producer_machine = world.create_node("client-0", "client-0");
    let consumer_machine = world.create_node("client-1", "client-1");
    let topics = (0..plan.topics).map(|number| format!("persistent://public/default/t{number}"));
    let mut run = Run {
        topics: topics.collect(),
        cluster,
        history,
        producer_machine,
        consumer_machine,
        stop_publishing: Shutdown::new(),
        stop_consuming: Shutdown::new(),
        tasks: Vec::new(),
        publishing: Arc::default(),
        plan,
        world,
    };
    let mut outcome = Outcome::default();
    if let Err(detail) = run.set_up().await {
        outcome.fail("P6", "set_up", detail);
        return outcome;
    }
    if run.plan.trims {
        run.history.lock().trimmed = run.topics.iter().cloned().collect();
    }
    run.start_workloads();
    run.start_register_clients();
    run.storm().await;
    if let Err(detail) = run.come_back(&mut outcome).await {
        outcome.fail("P6", "liveness", detail);
    } else {
        run.await_replication(&mut outcome).await;
    }
    run.check(&mut outcome).await;
    outcome.gave_up = run.cluster.gave_up;
    outcome
}

impl Run {
    fn context(&self, machine: &SimNode, stop: &Shutdown) -> WorkloadContext {
        WorkloadContext {
            runtime: machine.runtime(),
            broker: self.cluster.broker_address(),
            metadata_addresses: self.cluster.metadata_addresses(),
            history: self.history.clone(),
            plan: Arc::clone(&self.plan),
            world: self.world.clone(),
            stop: stop.signal(),
        }
    }

    /// Supervises for a while.
    async fn supervise(&mut self, duration: Duration) {
        let until = self.world.now() + duration;
        while self.world.now() < until {
            self.cluster.supervise();
            self.world.sleep(TICK).await;
        }
    }

    /// Runs work of a client inside its machine while the cluster is supervised; `None` at the limit.
    async fn while_supervised<T: Send + 'static>(
        &mut self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
        limit: Duration,
    ) -> Option<T> {
        let until = self.world.now() + limit;
        let mut task = self.consumer_machine.spawn(name, work);
        loop {
            self.cluster.supervise();
            let step = self.world.sleep(TICK);
            tokio::select! {
                biased;
                output = &mut task => return output.ok(),
                () = step => {}
            }
            if self.world.now() >= until {
                task.abort();
                return None;
            }
        }
    }

    async fn set_up(&mut self) -> Result<(), String> {
        let until = self.world.now() + SETUP_LIMIT;
        while !self.cluster.all_serve() {
            if self.world.now() > until {
                return Err("the nodes did not all start, without any fault".to_owned());
            }
            self.supervise(TICK).await;
        }
        for topic in self.topics.clone() {
            loop {
                let context = self.context(&self.consumer_machine, &self.stop_consuming);
                let name = topic.clone();
                let work =
                    async move { setup_topic(&context, &name).await.map_err(|e| e.to_string()) };
                match self.while_supervised("set up", work, SETUP_LIMIT).await {
                    Some(Ok(())) => break,
                    Some(Err(error)) if self.world.now() > until => {
                        return Err(format!(
                            "no subscriptions on {topic}, without any fault: {error}"
                        ));
                    }
                    Some(Err(_)) => self.supervise(Duration::from_millis(200)).await,
                    None => return Err(format!("setting up {topic} hangs, without any fault")),
                }
            }
        }
        Ok(())
    }

    fn start_workloads(&mut self) {
        let mut number = 0;
        for topic in self.topics.clone() {
            for _ in 0..self.plan.producers {
                number += 1;
                let context = self.context(&self.producer_machine, &self.stop_publishing);
                self.publishing.fetch_add(1, Ordering::Relaxed);
                let publishing = Arc::clone(&self.publishing);
                let topic = topic.clone();
                let work = async move {
                    publish(context, topic, number).await;
                    publishing.fetch_sub(1, Ordering::Relaxed);
                };
                self.tasks.push(self.producer_machine.spawn("publish", work));
            }
            let shared =
                (0..self.plan.shared_consumers).map(|_| (SHARED, SubscriptionType::Shared));
            for (subscription, subscription_type) in
                [(EXCLUSIVE, SubscriptionType::Exclusive)].into_iter().chain(shared)
            {
                number += 1;
                let context = self.context(&self.consumer_machine, &self.stop_consuming);
                let role =
                    ConsumerRole { topic: topic.clone(), subscription, subscription_type, number };
                self.tasks.push(self.consumer_machine.spawn("consume", consume(context, role)));
            }
            number += 1;
            let context = self.context(&self.consumer_machine, &self.stop_consuming);
            let work = rewind(context, topic.clone(), number);
            self.tasks.push(self.consumer_machine.spawn("rewind", work));
            let context = self.context(&self.producer_machine, &self.stop_publishing);
            self.publishing.fetch_add(1, Ordering::Relaxed);
            let publishing = Arc::clone(&self.publishing);
            let work = async move {
                damage(context, topic, number).await;
                publishing.fetch_sub(1, Ordering::Relaxed);
            };
            self.tasks.push(self.producer_machine.spawn("damage", work));
        }
    }

    fn start_register_clients(&mut self) {
        for number in 0..u64::from(self.plan.register_clients) {
            let machine = match number % 2 {
                0 => self.producer_machine.clone(),
                _ => self.consumer_machine.clone(),
            };
            let context = self.context(&machine, &self.stop_publishing);
            self.tasks.push(machine.spawn("registers", use_registers(context, number)));
            if number < 2 {
                let context = self.context(&machine, &self.stop_publishing);
                self.tasks.push(machine.spawn("watch registers", watch_registers(context)));
            }
        }
    }

    async fn storm(&mut self) {
        let clients = vec![self.producer_machine.clone(), self.consumer_machine.clone()];
        let mut nemesis = Nemesis::new(&self.world, &self.plan, clients);
        let until = self.world.now() + self.plan.safety_phase;
        while self.world.now() < until {
            self.cluster.supervise();
            nemesis.tick(&mut self.cluster);
            tokio::select! {
                biased;
                () = self.world.sprung() => {}
                () = self.world.sleep(TICK) => {}
            }
        }
        nemesis.heal_everything(&mut self.cluster);
        // An operator does not leave a change of members half done.
        let until = self.world.now() + OPERATOR_LIMIT;
        while nemesis.is_operating() && self.world.now() < until {
            self.cluster.supervise();
            nemesis.operate(&mut self.cluster);
            self.world.sleep(TICK).await;
        }
    }

    /// Everything is healed: publishing works on every topic, the whole log can be read, and every
    /// subscription gets all of it.
    async fn come_back(&mut self, outcome: &mut Outcome) -> Result<(), String> {
        let healed = self.world.now();
        let until = healed + self.plan.liveness_limit;
        self.stop_publishing.trigger();
        self.prove_all_writable(until).await?;
        let writable = self.world.now();
        outcome.writable_after = Some(writable - healed);
        self.read_registers(until).await?;
        self.settle_publishers(until).await?;
        let settled = self.world.now() - writable;
        self.read_all(until).await?;
        self.await_delivery(until).await?;
        outcome.recovered_after = Some(self.world.now() - healed - settled);
        Ok(())
    }

    /// Lets a client do its work, again and again until it succeeds. At `until`: what was wrong the last time,
    /// `None` if it hangs.
    async fn until_done<T: Send + 'static, W>(
        &mut self,
        name: &'static str,
        until: Duration,
        attempt: impl Fn(WorkloadContext) -> W,
    ) -> Result<T, Option<String>>
    where
        W: Future<Output = Result<T, String>> + Send + 'static,
    {
        loop {
            let context = self.context(&self.consumer_machine, &self.stop_consuming);
            let limit = until.saturating_sub(self.world.now());
            match self.while_supervised(name, attempt(context), limit).await {
                Some(Ok(output)) => return Ok(output),
                Some(Err(_)) if self.world.now() < until => self.supervise(ATTEMPT_PAUSE).await,
                Some(Err(error)) => return Err(Some(error)),
                None => return Err(None),
            }
        }
    }

    async fn prove_all_writable(&mut self, until: Duration) -> Result<(), String> {
        for topic in self.topics.clone() {
            let attempt = |context| {
                let name = topic.clone();
                async move {
                    let is_writable = prove_writable(&context, &name).await;
                    if is_writable { Ok(()) } else { Err("it takes no message".to_owned()) }
                }
            };
            self.until_done("prove writable", until, attempt)
                .await
                .map_err(|_| format!("{topic} takes no message after the heal"))?;
        }
        Ok(())
    }

    async fn read_registers(&mut self, until: Duration) -> Result<(), String> {
        if self.plan.register_clients == 0 {
            return Ok(());
        }
        let attempt = |context: WorkloadContext| async move { read_registers(&context).await };
        let read = self.until_done("read registers", until, attempt).await;
        read.map_err(|error| error.unwrap_or_else(|| "reading registers hangs".to_owned()))
    }

    async fn read_all(&mut self, until: Duration) -> Result<(), String> {
        for topic in self.topics.clone() {
            let attempt = |context: WorkloadContext| {
                let name = topic.clone();
                async move {
                    // Where everything consumed is deleted, there has to be something to read.
                    if context.plan.trims && !prove_writable(&context, &name).await {
                        return Err("it takes no message".to_owned());
                    }
                    read_whole_log(&context, &name).await.map_err(|error| error.to_string())
                }
            };
            let log =
                self.until_done("read the log", until, attempt).await.map_err(
                    |error| match error {
                        Some(error) => format!("{topic} cannot be read: {error}"),
                        None => format!("reading {topic} hangs"),
                    },
                )?;
            self.history.lock().final_log.insert(topic, log);
        }
        Ok(())
    }

    async fn await_delivery(&mut self, until: Duration) -> Result<(), String> {
        while self.world.now() < until {
            if self.history.lock().undelivered().is_none() {
                return Ok(());
            }
            self.supervise(Duration::from_millis(100)).await;
        }
        let missing = self.history.lock().undelivered();
        Err(missing.unwrap_or_default())
    }

    /// Publishers end by themselves; what is in flight then may still be stored before the log is read. A
    /// topic stores in the order things came, so once it takes one more message, nothing older is to come.
    async fn settle_publishers(&mut self, until: Duration) -> Result<(), String> {
        let limit = self.world.now() + PUBLISHERS_LIMIT;
        while self.publishing.load(Ordering::Relaxed) > 0 && self.world.now() < limit {
            self.supervise(TICK).await;
        }
        self.supervise(SETTLE).await;
        self.prove_all_writable(until).await
    }

    async fn check(&mut self, outcome: &mut Outcome) {
        self.stop_consuming.trigger();
        for task in &self.tasks {
            task.abort();
        }
        if self.plan.topology != Topology::Standalone {
            let finding = self.check_replicas().await;
            outcome.findings.push(("replicas_agree".to_owned(), finding));
        }
        self.look_at_properties().await;
        if outcome.recovered_after.is_some() {
            self.look_at_the_rest(outcome).await;
        }
        self.read_chains().await;
        let history = self.history.lock();
        let metadata = METADATA_CHECKERS.iter().filter(|_| self.plan.register_clients > 0);
        let consensus = CONSENSUS_CHECKERS.iter().filter(|_| self.plan.shape.metadata > 1);
        for (name, check) in metadata.chain(consensus) {
            outcome.findings.push(((*name).to_owned(), check(&history)));
        }
        let complete = history.final_log.len() == self.topics.len();
        for (name, check) in HISTORY_CHECKERS {
            // Without the log there is nothing to hold it against; the run has failed already.
            if complete {
                outcome.findings.push(((*name).to_owned(), check(&history)));
            }
        }
    }

    /// Looks at what every drained subscription still wants to be acknowledged.
    async fn look_at_the_rest(&mut self, outcome: &mut Outcome) {
        // What the consumers before had is theirs until the broker has noticed that they are gone.
        self.supervise(SETTLE).await;
        let until = self.world.now() + SETUP_LIMIT;
        for topic in self.topics.clone() {
            for (subscription, subscription_type) in
                [(EXCLUSIVE, SubscriptionType::Exclusive), (SHARED, SubscriptionType::Shared)]
            {
                let role = ConsumerRole {
                    topic: topic.clone(),
                    subscription,
                    subscription_type,
                    number: 0,
                };
                let attempt = |context| {
                    let role = role.clone();
                    async move {
                        look_at_the_rest(&context, &role).await.map_err(|error| error.to_string())
                    }
                };
                if self.until_done("look at the rest", until, attempt).await.is_err() {
                    let detail = format!("{topic}/{subscription} takes no last consumer");
                    outcome.fail("P6", "liveness", detail);
                    return;
                }
            }
        }
    }

    /// Asks the brokers what their subscriptions have kept.
    async fn look_at_properties(&mut self) {
        let serving: Vec<_> = self.cluster.nodes.iter().filter_map(|node| node.serving()).collect();
        let topics: Vec<_> = serving
            .iter()
            .filter_map(|node| node.broker())
            .flat_map(|broker| broker.loaded_topics())
            .collect();
        let history = self.history.clone();
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
        let _ = self.while_supervised("ask for statistics", work, SETUP_LIMIT).await;
    }

    /// Writes down what metadata says of each topic's ledgers.
    async fn read_chains(&mut self) {
        let serving: Vec<_> = self.cluster.nodes.iter().filter_map(|node| node.serving()).collect();
        let Some(metadata) = serving.first().map(|node| node.metadata()) else { return };
        let (topics, history) = (self.topics.clone(), self.history.clone());
        let work = async move {
            for topic in topics {
                if let Some(chain) = final_chain(&metadata, &topic).await {
                    history.lock().final_chains.insert(topic, chain);
                }
            }
        };
        // Without an answer nothing is compared, which the campaign sees.
        let _ = self.while_supervised("read chains", work, Duration::from_secs(60)).await;
    }

    /// Everything works again; now every copy must come to be where it must be, by itself.
    async fn await_replication(&mut self, outcome: &mut Outcome) {
        if self.plan.topology == Topology::Standalone {
            return;
        }
        let until = self.world.now() + REPAIR_LIMIT;
        let mut finding = Finding::default();
        loop {
            let serving: Vec<_> = self.cluster.nodes.iter().map(|node| node.serving()).collect();
            let bookies: Vec<Bookie> =
                serving.iter().flatten().filter_map(|node| node.bookie().cloned()).collect();
            let metadata = serving.iter().flatten().next().map(|node| node.metadata());
            let looked = match metadata {
                Some(metadata) => {
                    let work = async move { full_replication(&metadata, &bookies).await };
                    self.while_supervised("compare all copies", work, REPAIR_LIMIT).await
                }
                None => None,
            };
            match looked.unwrap_or(Err("nobody answers".to_owned())) {
                Ok(compared) => {
                    finding.compared += compared;
                    break;
                }
                Err(missing) if self.world.now() >= until => {
                    let detail = format!("{REPAIR_LIMIT:?} after all worked again: {missing}");
                    finding.broken("P1", "full_replication", detail);
                    break;
                }
                Err(_) => self.supervise(REPAIR_LOOK).await,
            }
        }
        outcome.findings.push(("full_replication".to_owned(), finding));
    }

    async fn check_replicas(&mut self) -> Finding {
        let serving: Vec<_> = self.cluster.nodes.iter().map(|node| node.serving()).collect();
        let bookies: Vec<Bookie> =
            serving.iter().flatten().filter_map(|node| node.bookie().cloned()).collect();
        let metadata = serving.iter().flatten().next().map(|node| node.metadata());
        let expected = self.plan.shape.bookies;
        let Some(metadata) = metadata.filter(|_| bookies.len() == expected) else {
            let mut finding = Finding::default();
            let detail = format!("{} of {expected} bookies serve after the heal", bookies.len());
            finding.broken("P6", "replicas_agree", detail);
            return finding;
        };
        let rots = self.plan.faults.contains(&FaultKind::BitRot);
        let victim = self.plan.rot_victim(&self.world).filter(|_| rots);
        let may_rot = victim
            .and_then(|number| self.cluster.bookie(number)?.serving())
            .and_then(|node| node.bookie().map(Bookie::id));
        let work = async move { replicas_agree(&metadata, &bookies, may_rot).await };
        match self.while_supervised("compare replicas", work, Duration::from_secs(300)).await {
            Some(finding) => finding,
            None => {
                let mut finding = Finding::default();
                finding.broken("P6", "replicas_agree", "comparing replicas hangs".to_owned());
                finding
            }
        }
    }
}
