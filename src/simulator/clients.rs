//! The clients of a run and what is asked of the cluster through them: at work while it is hurt, then, once
//! everything is healed, publishing, reading and delivery must come back. The same in the simulated world and
//! on real processes: what differs is behind [`Stage`].

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::checkers::{
    CONSENSUS_CHECKERS, Finding, HISTORY_CHECKERS, METADATA_CHECKERS, Violation,
};
use super::history::{HistoryClock, SharedHistory};
use super::nemesis::Strike;
use super::plan::Plan;
use super::workloads::{
    ConsumerRole, EXCLUSIVE, SHARED, Workload, WorkloadContext, consume, damage, look_at_the_rest,
    prove_writable, publish, read_registers, read_whole_log, rewind, setup_topic, use_registers,
    watch_registers,
};
use crate::broker::SubscriptionType;
use crate::runtime::{Runtime, Shutdown, Task};

/// Step of everything that waits.
pub const TICK: Duration = Duration::from_millis(50);
/// Longest wait for the first start of all nodes and topics, without any fault.
pub const SETUP_LIMIT: Duration = Duration::from_secs(120);
/// Longest wait for publishers to end: above the deadline of a send.
const PUBLISHERS_LIMIT: Duration = Duration::from_secs(20);
/// Pause before a client tries its work again.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);
/// Wait for what ended publishers have left in links and queues to reach the broker.
const SETTLE: Duration = Duration::from_secs(2);

/// Producers and consumers are on machines of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Where producers run.
    Producers,
    /// Where consumers and everything else runs.
    Consumers,
}

/// Where a run takes place: a simulated world, or this machine.
pub trait Stage {
    /// Time since the run began, by no node's clock.
    fn now(&self) -> Duration;
    /// Lets time pass.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()>;
    /// Starts again what died, as an operator's supervisor would.
    fn look_after(&mut self);
    /// Every node serves.
    fn all_serve(&mut self) -> bool;
    /// The brokers' addresses, as a service URL.
    fn brokers(&self) -> String;
    /// Node-to-node addresses of the nodes with metadata.
    fn metadata_nodes(&self) -> Vec<String>;
    /// What clients of a machine run on.
    fn runtime(&self, machine: Machine) -> Runtime;
    /// The same time as [`Stage::now`], for the history.
    fn clock(&self) -> HistoryClock;
}

/// What a run found.
#[derive(Default)]
pub struct Outcome {
    /// By checker.
    pub findings: Vec<(String, Finding)>,
    /// From the heal until every topic took a message.
    pub writable_after: Option<Duration>,
    /// From the heal until every copy was where it must be; none on a topology with single copies.
    pub replicated_after: Option<Duration>,
    /// From the heal until everything was delivered, without the wait for publishers to end.
    pub recovered_after: Option<Duration>,
    /// How often a node gave up by itself.
    pub gave_up: u64,
    /// When the nemesis of a simulated world struck.
    pub strikes: Vec<Strike>,
}

impl Outcome {
    /// A promise was broken without a checker's help.
    pub fn fail(&mut self, promise: &str, checker: &str, detail: String) {
        let mut finding = Finding { compared: 1, violations: Vec::new() };
        finding.violations.push(Violation {
            promise: promise.to_owned(),
            checker: checker.to_owned(),
            detail,
        });
        self.findings.push((checker.to_owned(), finding));
    }
}

/// The clients of one run.
pub struct Clients<S> {
    /// Where they are.
    pub stage: S,
    /// What they do.
    pub plan: Arc<Plan>,
    /// What they did and were told.
    pub history: SharedHistory,
    /// Where they do it.
    pub topics: Vec<String>,
    stop_publishing: Shutdown,
    stop_consuming: Shutdown,
    tasks: Vec<Task<()>>,
    /// Consumers that begin when everything is healed.
    late: Vec<ConsumerRole>,
    publishing: Arc<AtomicUsize>,
}

impl<S: Stage> Clients<S> {
    /// Nothing is done yet.
    pub fn new(stage: S, plan: Arc<Plan>, history: SharedHistory) -> Self {
        let topics =
            (0..plan.topics).map(|number| format!("persistent://public/default/t{number}"));
        Self {
            topics: topics.collect(),
            stage,
            plan,
            history,
            stop_publishing: Shutdown::new(),
            stop_consuming: Shutdown::new(),
            tasks: Vec::new(),
            late: Vec::new(),
            publishing: Arc::default(),
        }
    }

    fn context(&self, machine: Machine, stop: &Shutdown) -> WorkloadContext {
        WorkloadContext {
            runtime: self.stage.runtime(machine),
            broker: self.stage.brokers(),
            metadata_addresses: self.stage.metadata_nodes(),
            history: self.history.clone(),
            plan: Arc::clone(&self.plan),
            clock: self.stage.clock(),
            stop: stop.signal(),
        }
    }

    fn spawn<T: Send + 'static>(
        &self,
        machine: Machine,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        self.stage.runtime(machine).tasks.spawn(name, work)
    }

    /// Lets time pass while nodes are looked after.
    pub async fn supervise(&mut self, duration: Duration) {
        let until = self.stage.now() + duration;
        while self.stage.now() < until {
            self.stage.look_after();
            self.stage.sleep(TICK).await;
        }
    }

    /// Runs work of a client on its machine while the cluster is looked after; `None` at the limit.
    pub async fn while_supervised<T: Send + 'static>(
        &mut self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
        limit: Duration,
    ) -> Option<T> {
        let until = self.stage.now() + limit;
        let mut task = self.spawn(Machine::Consumers, name, work);
        loop {
            self.stage.look_after();
            let is_over = {
                let step = self.stage.sleep(TICK);
                tokio::pin!(step);
                tokio::select! {
                    biased;
                    output = &mut task => return output.ok(),
                    () = step => self.stage.now() >= until,
                }
            };
            if is_over {
                task.abort();
                return None;
            }
        }
    }

    /// Waits for all nodes and makes every topic with its subscriptions; there are no faults yet.
    pub async fn set_up(&mut self) -> Result<(), String> {
        let until = self.stage.now() + SETUP_LIMIT;
        while !self.stage.all_serve() {
            if self.stage.now() > until {
                return Err("the nodes did not all start, without any fault".to_owned());
            }
            self.supervise(TICK).await;
        }
        for topic in self.topics.clone() {
            loop {
                let context = self.context(Machine::Consumers, &self.stop_consuming);
                let name = topic.clone();
                let work =
                    async move { setup_topic(&context, &name).await.map_err(|e| e.to_string()) };
                match self.while_supervised("set up", work, SETUP_LIMIT).await {
                    Some(Ok(())) => break,
                    Some(Err(error)) if self.stage.now() > until => {
                        return Err(format!(
                            "no subscriptions on {topic}, without any fault: {error}"
                        ));
                    }
                    Some(Err(_)) => self.supervise(ATTEMPT_PAUSE).await,
                    None => return Err(format!("setting up {topic} hangs, without any fault")),
                }
            }
        }
        if self.plan.trims {
            self.history.lock().trimmed = self.topics.iter().cloned().collect();
        }
        Ok(())
    }

    /// Lets every client begin.
    pub fn start_workloads(&mut self) {
        let mut number = 0;
        for topic in self.topics.clone() {
            for _ in 0..self.plan.producers {
                number += 1;
                let context = self.context(Machine::Producers, &self.stop_publishing);
                self.publishing.fetch_add(1, Ordering::Relaxed);
                let publishing = Arc::clone(&self.publishing);
                let topic = topic.clone();
                let work = async move {
                    publish(context, topic, number).await;
                    publishing.fetch_sub(1, Ordering::Relaxed);
                };
                self.tasks.push(self.spawn(Machine::Producers, "publish", work));
            }
            let shared =
                (0..self.plan.shared_consumers).map(|_| (SHARED, SubscriptionType::Shared));
            for (subscription, subscription_type) in
                [(EXCLUSIVE, SubscriptionType::Exclusive)].into_iter().chain(shared)
            {
                number += 1;
                let role =
                    ConsumerRole { topic: topic.clone(), subscription, subscription_type, number };
                match self.plan.consumes_late {
                    true => self.late.push(role),
                    false => self.start_consumer(role),
                }
            }
            number += 1;
            if self.plan.workloads.contains(&Workload::Rewind) {
                let context = self.context(Machine::Consumers, &self.stop_consuming);
                let work = rewind(context, topic.clone(), number);
                self.tasks.push(self.spawn(Machine::Consumers, "rewind", work));
            }
            if self.plan.workloads.contains(&Workload::Damage) {
                let context = self.context(Machine::Producers, &self.stop_publishing);
                self.publishing.fetch_add(1, Ordering::Relaxed);
                let publishing = Arc::clone(&self.publishing);
                let work = async move {
                    damage(context, topic, number).await;
                    publishing.fetch_sub(1, Ordering::Relaxed);
                };
                self.tasks.push(self.spawn(Machine::Producers, "damage", work));
            }
        }
    }

    fn start_consumer(&mut self, role: ConsumerRole) {
        let context = self.context(Machine::Consumers, &self.stop_consuming);
        self.tasks.push(self.spawn(Machine::Consumers, "consume", consume(context, role)));
    }

    /// Lets every client of metadata itself begin.
    pub fn start_register_clients(&mut self) {
        for number in 0..u64::from(self.plan.register_clients) {
            let machine = match number % 2 {
                0 => Machine::Producers,
                _ => Machine::Consumers,
            };
            let context = self.context(machine, &self.stop_publishing);
            self.tasks.push(self.spawn(machine, "registers", use_registers(context, number)));
            if number < 2 {
                let context = self.context(machine, &self.stop_publishing);
                self.tasks.push(self.spawn(machine, "watch registers", watch_registers(context)));
            }
        }
    }

    /// Everything is healed: publishing works on every topic, the whole log can be read, and every
    /// subscription gets all of it.
    pub async fn come_back(&mut self, outcome: &mut Outcome) -> Result<(), String> {
        let healed = self.stage.now();
        let until = healed + self.plan.liveness_limit;
        self.stop_publishing.trigger();
        for role in std::mem::take(&mut self.late) {
            self.start_consumer(role);
        }
        self.prove_all_writable(until).await?;
        let writable = self.stage.now();
        outcome.writable_after = Some(writable - healed);
        self.read_registers(until).await?;
        self.settle_publishers(until).await?;
        let settled = self.stage.now() - writable;
        self.read_all(until).await?;
        self.await_delivery(until).await?;
        outcome.recovered_after = Some(self.stage.now() - healed - settled);
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
            let context = self.context(Machine::Consumers, &self.stop_consuming);
            let limit = until.saturating_sub(self.stage.now());
            match self.while_supervised(name, attempt(context), limit).await {
                Some(Ok(output)) => return Ok(output),
                Some(Err(_)) if self.stage.now() < until => self.supervise(ATTEMPT_PAUSE).await,
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
        while self.stage.now() < until {
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
        let limit = self.stage.now() + PUBLISHERS_LIMIT;
        while self.publishing.load(Ordering::Relaxed) > 0 && self.stage.now() < limit {
            self.supervise(TICK).await;
        }
        self.supervise(SETTLE).await;
        self.prove_all_writable(until).await
    }

    /// Ends every client.
    pub fn stop_all(&mut self) {
        self.stop_publishing.trigger();
        self.stop_consuming.trigger();
        for task in &self.tasks {
            task.abort();
        }
    }

    /// Looks at what every drained subscription still wants to be acknowledged.
    pub async fn look_at_the_rest(&mut self, outcome: &mut Outcome) {
        // What the consumers before had is theirs until the broker has noticed that they are gone.
        self.supervise(SETTLE).await;
        let until = self.stage.now() + SETUP_LIMIT;
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
                if let Err(why) = self.until_done("look at the rest", until, attempt).await {
                    let why = why.unwrap_or_else(|| "it hangs".to_owned());
                    let detail = format!("{topic}/{subscription} takes no last consumer: {why}");
                    outcome.fail("P6", "liveness", detail);
                    return;
                }
            }
        }
    }

    /// Holds the history against the promises.
    pub fn judge(&self, outcome: &mut Outcome) {
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
}
