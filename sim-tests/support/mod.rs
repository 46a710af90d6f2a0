//! A cluster without faults of its own, a client, and words for what scenarios do to them.

pub mod bookies;
pub mod brokers;
pub mod ledgers;
pub mod metadata;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seawall::broker::SubscriptionType;
use seawall::domain::Position;
use seawall::runtime::sim::{SimNode, World, WorldSettings};
use seawall::runtime::{Runtime, Shutdown, Task};
use seawall::simulator::cluster::Cluster;
use seawall::simulator::history::{HistoryClock, MessageNumber, SharedHistory, encode_body};
use seawall::simulator::plan::{Plan, Topology};
use seawall::simulator::trial::Trial;
use seawall::simulator::workloads::{Told, WorkloadClient, WorkloadContext};

/// The one topic of a scenario.
pub const TOPIC: &str = "persistent://public/default/scenario";

/// What a scenario has in hand.
pub struct Stage {
    pub world: World,
    pub cluster: Cluster,
    client: SimNode,
    /// What the cluster was set up by.
    pub plan: Arc<Plan>,
    /// What clients of metadata were told, and what its members did.
    pub history: SharedHistory,
    next: u64,
    /// The only broker clients are told of; none: all.
    asks: Option<String>,
}

/// Runs a scenario on a thread of its own, as each world needs.
pub fn scenario<F, Fut>(topology: Topology, play: F)
where
    F: FnOnce(Stage) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    scenario_with(topology, |_| {}, play);
}

/// The same with a changed plan.
pub fn scenario_with<F, Fut>(topology: Topology, change: fn(&mut Plan), play: F)
where
    F: FnOnce(Stage) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    scenario_of_seed(1, topology, change, play);
}

/// The same in another world: sizes, latencies and the order of things are drawn from its seed.
pub fn scenario_of_seed<F, Fut>(seed: u64, topology: Topology, change: fn(&mut Plan), play: F)
where
    F: FnOnce(Stage) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    let run = std::thread::spawn(move || {
        let mut plan = Plan { faults: Vec::new(), ..Plan::draw(seed, topology) };
        change(&mut plan);
        run(seed, plan, play);
    });
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Sets a cluster up in a world of this seed, waits until it serves, and plays, on a thread that no world was on.
pub fn run<F, Fut>(seed: u64, plan: Plan, play: F)
where
    F: FnOnce(Stage) -> Fut,
    Fut: Future<Output = ()>,
{
    let plan = Arc::new(plan);
    World::run(seed, WorldSettings::default(), move |world| async move {
        let history = SharedHistory::default();
        let cluster = Cluster::create(&world, &plan, &history);
        let client = world.create_node("client-0", "client-0");
        let mut stage = Stage { world, cluster, client, plan, history, next: 0, asks: None };
        stage.wait_until_served().await;
        play(stage).await;
    });
}

/// Does a trial, as `sim shrink` prints it, and demands that it breaks no promise.
pub fn keeps_every_promise(trial: &str) {
    let trial: Trial = serde_json::from_str(trial).unwrap();
    let run = std::thread::spawn(move || seawall::simulator::run(&trial, false).0);
    let told: Vec<String> =
        run.join().unwrap().violations.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}

impl Stage {
    /// Lets time pass, starting again what is down.
    pub async fn pass(&mut self, duration: Duration) {
        let until = self.world.now() + duration;
        while self.world.now() < until {
            self.cluster.supervise();
            self.world.sleep(Duration::from_millis(50)).await;
        }
    }

    /// Starts again what is down, then lets exactly `duration` pass.
    pub async fn start_and_pass(&mut self, duration: Duration) {
        self.cluster.supervise();
        self.world.sleep(duration).await;
    }

    /// Waits until every node serves.
    pub async fn wait_until_served(&mut self) {
        let until = self.world.now() + Duration::from_secs(120);
        while !self.cluster.all_serve() {
            assert!(self.world.now() < until, "the nodes do not come up");
            self.pass(Duration::from_millis(100)).await;
        }
    }

    /// What a workload of the client machine is given.
    pub fn context(&self) -> WorkloadContext {
        WorkloadContext {
            runtime: self.client.runtime(),
            broker: match &self.asks {
                Some(host) => format!("{host}:6650"),
                None => self.cluster.broker_address(),
            },
            metadata_addresses: self.cluster.metadata_addresses(),
            history: self.history.clone(),
            plan: Arc::clone(&self.plan),
            clock: {
                let world = self.world.clone();
                HistoryClock::new(move || world.now())
            },
            stop: Shutdown::new().signal(),
        }
    }

    /// From now on clients know only this broker, or all of them.
    pub fn ask_only(&mut self, broker: Option<&str>) {
        self.asks = broker.map(str::to_owned);
    }

    /// The client machine's runtime.
    pub fn client_runtime(&self) -> Runtime {
        self.client.runtime()
    }

    /// Starts work inside the client's machine and leaves it to run.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        self.client.spawn("scenario", work)
    }

    /// Runs the client's work inside its machine, supervising meanwhile.
    pub async fn client<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut task = self.client.spawn("scenario", work);
        loop {
            self.cluster.supervise();
            let step = self.world.sleep(Duration::from_millis(50));
            tokio::select! {
                biased;
                output = &mut task => return output.unwrap(),
                () = step => {}
            }
        }
    }

    /// Publishes `count` messages one after the other; answers those that were acknowledged. Stops at the
    /// first that was not.
    pub async fn publish(&mut self, count: u64) -> Vec<(MessageNumber, Position)> {
        let publishing = self.publishing(count, 1);
        self.client(publishing).await
    }

    /// Publishes `count` messages as one batch.
    pub async fn publish_batch(&mut self, count: u64) -> Vec<(MessageNumber, Position)> {
        let publishing = self.publishing(count, count);
        self.client(publishing).await
    }

    /// Begins to publish `count` messages and leaves that to run.
    pub fn begin_publishing(&mut self, count: u64) -> Task<Vec<(MessageNumber, Position)>> {
        let publishing = self.publishing(count, 1);
        self.begin(publishing)
    }

    /// One session of a producer that has so many messages in flight, in one batch.
    fn publishing(
        &mut self,
        count: u64,
        batch: u64,
    ) -> impl Future<Output = Vec<(MessageNumber, Position)>> + Send + 'static {
        let context = self.context();
        let first = self.next + 1;
        self.next += count;
        async move {
            let mut acknowledged = Vec::new();
            let Ok(client) = WorkloadClient::connect(&context).await else { return acknowledged };
            let Ok(producer) = client.producer(TOPIC, batch as u32).await else {
                return acknowledged;
            };
            let numbers: Vec<_> = (first..first + count).map(MessageNumber).collect();
            for numbers in numbers.chunks(batch as usize) {
                let mut receipts = Vec::new();
                for number in numbers {
                    let sent = producer.send(encode_body(*number, 100)).await;
                    let Ok(receipt) = sent else { return acknowledged };
                    receipts.push((*number, receipt));
                }
                for (number, receipt) in receipts {
                    match receipt.told().await {
                        Ok(Told::Committed(place)) => acknowledged.push((number, place.position)),
                        Ok(Told::Rejected | Told::Closed) | Err(_) => return acknowledged,
                    }
                }
            }
            acknowledged
        }
    }

    /// Creates a subscription that keeps everything from being trimmed.
    pub async fn keep_everything(&mut self) {
        let context = self.context();
        self.client(async move {
            let client = WorkloadClient::connect(&context).await.unwrap();
            let kind = SubscriptionType::Shared;
            client.consumer(TOPIC, "keeper", kind).await.unwrap().close().await;
        })
        .await;
    }

    /// The whole log as a reader sees it; tries for a minute.
    pub async fn read_all(&mut self) -> Vec<(MessageNumber, Position)> {
        for _ in 0..60 {
            let context = self.context();
            let read = self
                .client(async move {
                    seawall::simulator::workloads::read_whole_log(&context, TOPIC)
                        .await
                        .map_err(|error| error.to_string())
                })
                .await;
            if let Ok(log) = read {
                return log
                    .into_iter()
                    .map(|(place, number)| (number.expect("a message of ours"), place.position))
                    .collect();
            }
            self.pass(Duration::from_secs(1)).await;
        }
        panic!("the log cannot be read");
    }

    /// Asserts that every acknowledged message is in the log where its receipt said.
    pub async fn all_there(&mut self, acknowledged: &[(MessageNumber, Position)]) {
        let log = self.read_all().await;
        for message in acknowledged {
            assert!(log.contains(message), "{message:?} is not in {log:?}");
        }
    }

    /// The machine of a name.
    pub fn machine(&self, name: &str) -> SimNode {
        let found = self.cluster.nodes.iter().find(|node| node.machine.name() == name);
        found.expect("a node of that name").machine.clone()
    }

    /// Keeps a node down for a while.
    pub fn keep_down(&mut self, name: &str, duration: Duration) {
        let until = self.world.now() + duration;
        let index = self.cluster.nodes.iter().position(|node| node.machine.name() == name).unwrap();
        self.cluster.keep_down(index, until);
    }
}
