//! The world: one seed, one madsim runtime, the nodes in it, and what a run reports.

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::agenda::{self, Agenda};
use super::clock::ClockState;
use super::disk::DiskState;
use super::index::IndexState;
use super::keyed::{below, keyed};
use super::lock;
use super::network::NetworkState;
use super::node::{NodeState, SimNode};
use super::recorder::{Happening, Note, Recorder, Recording};
use super::settings::WorldSettings;
use super::tape::{Decision, DecisionKey, DecisionKind, Site, Tape};
use super::trace::{EventKind, Trace, TraceEvent};

/// Wall time at the start of every run: 2026-01-01 00:00 UTC, in nanoseconds.
pub(super) const WALL_ORIGIN: u64 = 1_767_225_600_000_000_000;

/// A task of a node panicked. The node is dead from then on and the run has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePanic {
    /// The node's name.
    pub node: String,
    /// The task's name.
    pub task: &'static str,
    /// The panic's text.
    pub text: String,
    /// Virtual time since the start of the run.
    pub at: Duration,
}

/// What came out of a run.
#[derive(Debug)]
pub struct RunReport<T> {
    /// The output of the main future; `None` if it was cut short by a panic or the time limit.
    pub output: Option<T>,
    /// True if the time limit ended the run.
    pub timed_out: bool,
    /// Panics of node tasks.
    pub panics: Vec<NodePanic>,
    /// The decision tape.
    pub decisions: Vec<Decision>,
    /// Decisions that did not fit on the tape.
    pub decisions_dropped: u64,
    /// Hash over all events.
    pub event_hash: u64,
    /// How many events there were.
    pub event_count: u64,
    /// The last events, if a trace was asked for.
    pub trace: Vec<TraceEvent>,
    /// Virtual time passed.
    pub virtual_time: Duration,
    /// What was recorded, if the settings ask for it.
    pub recording: Recording,
}

/// Handle to a world; cheap to clone. Only valid inside the run that made it.
#[derive(Clone)]
pub struct World(pub(super) Arc<Shared>);

pub(super) struct Core {
    pub(super) tape: Tape,
    pub(super) trace: Trace,
    panics: Vec<NodePanic>,
}

/// Everything of a world. Locks are taken in the order network, node parts, agenda or core, and never
/// held while madsim is called.
pub(super) struct Shared {
    pub(super) seed: u64,
    /// What the latencies of disks and links are drawn from.
    pub(super) timing_seed: u64,
    pub(super) settings: WorldSettings,
    pub(super) time: madsim::time::TimeHandle,
    pub(super) madsim: madsim::runtime::Handle,
    pub(super) agenda: Mutex<Agenda>,
    pub(super) core: Mutex<Core>,
    pub(super) nodes: Mutex<Vec<Arc<NodeState>>>,
    pub(super) network: Mutex<NetworkState>,
    /// Tasks spawned so far.
    pub(super) spawned: AtomicU64,
    failed: Notify,
    pub(super) sprung: Notify,
}

impl Shared {
    /// Virtual nanoseconds since the start of the run.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.time.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.settings.recorder
    }

    pub(super) fn event(&self, kind: EventKind, facts: [u64; 3]) {
        let now = self.now();
        lock(&self.core).trace.record(now, kind, facts);
    }

    /// Puts a decision on the tape; false if it is masked and must not happen.
    pub(super) fn admit(&self, key: DecisionKey, value: u64) -> bool {
        let now = self.now();
        let admitted = lock(&self.core).tape.admit(now, key, value);
        if admitted {
            self.recorder().injected(key.kind, key.node, key.other);
        }
        admitted
    }

    /// A decision taken by the fault plan rather than by a rate.
    pub(super) fn admit_at(&self, site: &mut Site, kind: DecisionKind, value: u64) -> bool {
        let (key, _) = site.next(self.seed, kind);
        self.admit(key, value)
    }

    /// A decision taken by a rate: the random value to shape the fault with, if it happens.
    pub(super) fn chance(&self, site: &mut Site, kind: DecisionKind, rate: f64) -> Option<u64> {
        let (key, value) = site.chance(self.seed, kind, rate)?;
        self.admit(key, value).then_some(value)
    }

    pub(super) fn node(&self, id: u32) -> Option<Arc<NodeState>> {
        lock(&self.nodes).get(id.checked_sub(1)? as usize).cloned()
    }

    pub(super) fn node_of_host(&self, host: &str) -> Option<Arc<NodeState>> {
        lock(&self.nodes).iter().find(|node| node.host == host).cloned()
    }

    pub(super) fn fire_node_timers(&self, id: u32) {
        if let Some(node) = self.node(id) {
            let fired = node.fire_timers(self);
            if fired > 0 {
                self.event(EventKind::Timer, [u64::from(id), fired, 0]);
            }
        }
    }

    pub(super) fn task_panicked(
        &self,
        node: &Arc<NodeState>,
        start: u64,
        task: &'static str,
        text: String,
    ) {
        self.event(EventKind::Panic, [u64::from(node.id), start, 0]);
        self.recorder()
            .note(|| Note::from(Happening::Panic).on(node.id).text(format!("{task}: {text}")));
        let at = Duration::from_nanos(self.now());
        lock(&self.core).panics.push(NodePanic { node: node.name.clone(), task, text, at });
        if node.is_start(start) {
            node.stop(self, EventKind::Crash);
        }
        self.failed.notify_one();
    }
}

impl World {
    /// Runs `main` in a new world and returns its output. Panics if a node's task panicked or the time
    /// limit passed; use [`World::run_report`] to look at a failed run.
    pub fn run<T, F, Fut>(seed: u64, settings: WorldSettings, main: F) -> T
    where
        F: FnOnce(World) -> Fut,
        Fut: Future<Output = T>,
    {
        let report = Self::run_report(seed, settings, main);
        let (panics, timed_out) = (report.panics, report.timed_out);
        match report.output {
            Some(output) if panics.is_empty() => output,
            _ => panic!("seed {seed}: timed out: {timed_out}, panics: {panics:?}"),
        }
    }

    /// Runs `main` in a new world, on this thread, to its end, a panic of a node's task or the time limit.
    /// A panic in `main` itself goes through.
    pub fn run_report<T, F, Fut>(seed: u64, settings: WorldSettings, main: F) -> RunReport<T>
    where
        F: FnOnce(World) -> Fut,
        Fut: Future<Output = T>,
    {
        let executor =
            madsim::runtime::Runtime::with_seed_and_config(seed, madsim::Config::default());
        let limit = u64::try_from(settings.time_limit.as_nanos()).unwrap_or(u64::MAX / 2);
        let madsim = executor.handle().clone();
        executor.block_on(async move {
            let shared = Arc::new(Shared {
                seed,
                timing_seed: match settings.timing {
                    0 => seed,
                    timing => keyed(&[seed, 12, timing]),
                },
                time: madsim::time::TimeHandle::current(),
                madsim,
                agenda: Mutex::new(Agenda::default()),
                core: Mutex::new(Core {
                    tape: Tape::new(settings.mask.clone(), settings.tape_capacity),
                    trace: Trace::new(settings.trace_capacity),
                    panics: Vec::new(),
                }),
                nodes: Mutex::new(Vec::new()),
                network: Mutex::new(NetworkState::default()),
                spawned: AtomicU64::new(0),
                failed: Notify::new(),
                sprung: Notify::new(),
                settings,
            });
            let time = shared.time.clone();
            let elapsed = move || u64::try_from(time.elapsed().as_nanos()).unwrap_or(u64::MAX);
            shared.recorder().set_clock(elapsed);
            let world = World(Arc::clone(&shared));
            let driver = madsim::task::spawn(agenda::drive(Arc::clone(&shared)));
            let mut timed_out = false;
            let output = {
                let limit_reached = agenda::delay(&shared, limit);
                tokio::select! {
                    biased;
                    () = shared.failed.notified() => None,
                    output = main(world.clone()) => Some(output),
                    () = limit_reached => {
                        timed_out = true;
                        None
                    }
                }
            };
            let report = world.report(output, timed_out);
            // Let dead tasks be dropped, so that a process may run many worlds.
            for node in world.nodes() {
                node.state.stop(&shared, EventKind::Crash);
            }
            driver.abort();
            agenda::close(&shared);
            madsim::time::sleep(Duration::from_millis(1)).await;
            lock(&shared.nodes).clear();
            *lock(&shared.network) = NetworkState::default();
            report
        })
    }

    fn report<T>(&self, output: Option<T>, timed_out: bool) -> RunReport<T> {
        let virtual_time = Duration::from_nanos(self.0.now());
        let recording = self.recording();
        let core = lock(&self.0.core);
        RunReport {
            output,
            timed_out,
            panics: core.panics.clone(),
            decisions: core.tape.decisions().to_vec(),
            decisions_dropped: core.tape.dropped(),
            event_hash: core.trace.hash(),
            event_count: core.trace.count(),
            trace: core.trace.events(),
            virtual_time,
            recording,
        }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Virtual time since the start of the run.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now())
    }

    /// Waits in virtual time, by no node's clock. Only for the main future and what it joins.
    pub async fn sleep(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2);
        agenda::delay(&self.0, nanos).await;
    }

    /// A random value for the fault plan: a pure function of the seed, a label and an index.
    pub fn random(&self, label: &str, index: u64) -> u64 {
        let label = label.bytes().fold(2, |hash, byte| keyed(&[hash, u64::from(byte)]));
        keyed(&[self.0.seed, label, index])
    }

    /// A new node, not started, with an empty disk. `host` is the part of its addresses before the port
    /// and must be unlike that of every other node.
    pub fn create_node(&self, name: &str, host: &str) -> SimNode {
        let madsim = self.0.madsim.create_node().name(name).build();
        let now = self.0.now();
        let mut nodes = lock(&self.0.nodes);
        assert!(nodes.iter().all(|node| node.host != host), "two nodes called {host}");
        let id = nodes.len() as u32 + 1;
        let spread = below(keyed(&[self.0.seed, 3, u64::from(id)]), 40_000_000);
        let clock = ClockState::new(0, WALL_ORIGIN + spread, now);
        let state = Arc::new(NodeState::new(
            id,
            (name, host),
            madsim.id(),
            clock,
            DiskState::new(id, self.0.settings.disk.clone()),
            IndexState::new(id),
        ));
        nodes.push(Arc::clone(&state));
        SimNode { shared: Arc::clone(&self.0), state }
    }

    /// All nodes, in order of creation.
    pub fn nodes(&self) -> Vec<SimNode> {
        let nodes = lock(&self.0.nodes);
        nodes
            .iter()
            .map(|state| SimNode { shared: Arc::clone(&self.0), state: Arc::clone(state) })
            .collect()
    }

    /// The tape so far, one JSON object a line.
    pub fn tape_lines(&self) -> String {
        lock(&self.0.core).tape.to_json_lines()
    }

    /// The tape so far.
    pub fn decisions(&self) -> Vec<Decision> {
        lock(&self.0.core).tape.decisions().to_vec()
    }

    /// Hash over all events so far.
    pub fn event_hash(&self) -> u64 {
        lock(&self.0.core).trace.hash()
    }

    /// What was recorded so far.
    pub fn recording(&self) -> Recording {
        let nodes = self.nodes().iter().map(|node| node.name().to_owned()).collect();
        self.0.recorder().recording(nodes)
    }

    /// Where what happens is written down.
    pub fn recorder(&self) -> &Recorder {
        self.0.recorder()
    }

    /// How many events there were so far.
    pub fn event_count(&self) -> u64 {
        lock(&self.0.core).trace.count()
    }

    /// The last events, if the settings ask for a trace.
    pub fn trace(&self) -> Vec<TraceEvent> {
        lock(&self.0.core).trace.events()
    }

    /// Adds an event of the caller's own to the hash and the trace.
    pub fn mark(&self, facts: [u64; 3]) {
        self.0.event(EventKind::Mark, facts);
    }
}
