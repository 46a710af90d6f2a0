//! A node: what stays over its starts, and what can be done to it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ambush::Ambush;
use super::clock::{ClockFace, ClockState, SimClock};
use super::crash::CrashWatch;
use super::disk::{DiskState, SimDisk};
use super::index::{IndexState, SimIndexes};
use super::keyed::{KeyedRandom, below, keyed};
use super::lock;
use super::network::SimNetwork;
use super::recorder::{Happening, Note};
use super::tape::{DecisionKind, Site};
use super::tasks::SimTasks;
use super::trace::EventKind;
use super::world::Shared;
use crate::runtime::{Clock, Disk, Network, Random, Runtime, Task, Tasks};

/// What stays over the starts of a node.
pub(super) struct NodeState {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) host: String,
    madsim: madsim::task::NodeId,
    /// The number of the running start; 0 if the node is down.
    running: AtomicU64,
    life: Mutex<Life>,
    pub(super) clock: Mutex<ClockState>,
    pub(super) disk: Mutex<DiskState>,
    pub(super) indexes: Mutex<IndexState>,
    pub(super) ambush: Mutex<Option<Ambush>>,
    pub(super) crash_watch: Mutex<Option<CrashWatch>>,
}

struct Life {
    starts: u64,
    paused: bool,
    site: Site,
    runtime: Option<Runtime>,
    /// The record of when it went down last.
    went_down: u32,
}

impl NodeState {
    pub(super) fn new(
        id: u32,
        (name, host): (&str, &str),
        madsim: madsim::task::NodeId,
        clock: ClockState,
        disk: DiskState,
        indexes: IndexState,
    ) -> Self {
        let site = Site::new(id, 0);
        let life = Life { starts: 0, paused: false, site, runtime: None, went_down: 0 };
        Self {
            id,
            name: name.to_owned(),
            host: host.to_owned(),
            madsim,
            running: AtomicU64::new(0),
            life: Mutex::new(life),
            clock: Mutex::new(clock),
            disk: Mutex::new(disk),
            indexes: Mutex::new(indexes),
            ambush: Mutex::new(None),
            crash_watch: Mutex::new(None),
        }
    }

    /// True while the start with this number runs.
    pub(super) fn is_start(&self, start: u64) -> bool {
        start != 0 && self.running.load(Ordering::Relaxed) == start
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) != 0
    }

    /// The process ends without a word: tasks dropped, handles dead, locks free, unflushed index changes
    /// cut. With `PowerLoss`, unsynced writes and names too.
    pub(super) fn stop(&self, shared: &Shared, how: EventKind) {
        let start = self.running.swap(0, Ordering::Relaxed);
        if start != 0 {
            let runtime = {
                let mut life = lock(&self.life);
                life.paused = false;
                life.runtime.take()
            };
            drop(runtime);
            shared.madsim.kill(self.madsim);
            shared.node_down(self.id);
            shared.event(how, [u64::from(self.id), start, 0]);
            let what = match how {
                EventKind::PowerLoss => Happening::PowerLoss,
                _ => Happening::Crash,
            };
            let down =
                shared.recorder().note(|| Note::from(what).on(self.id).facts([start as i64, 0, 0]));
            lock(&self.life).went_down = down;
            lock(&self.indexes).crash(shared);
        }
        let mut disk = lock(&self.disk);
        disk.process_ended();
        if how == EventKind::PowerLoss {
            disk.power_loss(shared);
        }
    }
}

/// Handle to a node; cheap to clone. Faults return false if they are masked or do not apply.
#[derive(Clone)]
pub struct SimNode {
    pub(super) shared: Arc<Shared>,
    pub(super) state: Arc<NodeState>,
}

impl SimNode {
    /// Number by order of creation, from 1: the number on the tape.
    pub fn id(&self) -> u32 {
        self.state.id
    }

    /// The name given.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The part of its addresses before the port.
    pub fn host(&self) -> &str {
        &self.state.host
    }

    /// True while its process runs (also while paused).
    pub fn is_running(&self) -> bool {
        self.state.is_running()
    }

    /// How often it was started.
    pub fn starts(&self) -> u64 {
        lock(&self.state.life).starts
    }

    /// Starts the process if it is down, and returns the runtime of the running start.
    pub fn runtime(&self) -> Runtime {
        if self.is_running()
            && let Some(runtime) = lock(&self.state.life).runtime.clone()
        {
            return runtime;
        }
        let (shared, node) = (&self.shared, &self.state);
        shared.madsim.restart(node.madsim);
        let handle = shared.madsim.get_node(node.madsim).expect("the node was created");
        let (start, went_down) = {
            let mut life = lock(&node.life);
            life.starts += 1;
            life.paused = false;
            (life.starts, life.went_down)
        };
        let origin = below(keyed(&[shared.seed, 4, u64::from(node.id), start]), 1 << 40);
        lock(&node.clock).restart(origin, shared.now());
        node.running.store(start, Ordering::Relaxed);
        shared.event(EventKind::Start, [u64::from(node.id), start, 0]);
        shared.recorder().note(|| {
            let note = Note::from(Happening::Start).on(node.id).because(went_down);
            note.facts([start as i64, 0, 0])
        });
        let random = KeyedRandom { seed: shared.seed, node: u64::from(node.id), start };
        let (shared, node) = (Arc::clone(shared), Arc::clone(node));
        let disk = SimDisk { shared: Arc::clone(&shared), node: Arc::clone(&node), start };
        let indexes = SimIndexes { shared: Arc::clone(&shared), node: Arc::clone(&node), start };
        let network = SimNetwork { shared: Arc::clone(&shared), node: Arc::clone(&node), start };
        let clock = SimClock { shared: Arc::clone(&shared), node: Arc::clone(&node) };
        let tasks = SimTasks { shared: Arc::clone(&shared), node, start, handle };
        let runtime = Runtime {
            clock: Clock::new(Arc::new(clock)),
            tasks: Tasks::new(Arc::new(tasks)),
            network: Network::new(Arc::new(network)),
            disk: Disk::new(Arc::new(disk)),
            indexes: Arc::new(indexes),
            random: Random::new(Arc::new(random)),
        };
        lock(&self.state.life).runtime = Some(runtime.clone());
        shared.unblock();
        runtime
    }

    /// Starts the process with this main task. False, and nothing done, if it already runs.
    pub fn start<F, Fut>(&self, main: F) -> bool
    where
        F: FnOnce(Runtime) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        if self.is_running() {
            return false;
        }
        let runtime = self.runtime();
        let future = main(runtime.clone());
        drop(runtime.tasks.spawn("main", future));
        true
    }

    /// Runs a future inside the node, starting it if it is down.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.runtime().tasks.spawn(name, future)
    }

    /// Records a decision of the fault plan about this node; false if it is masked.
    pub(super) fn admit(&self, kind: DecisionKind, value: u64) -> bool {
        self.shared.admit_at(&mut lock(&self.state.life).site, kind, value)
    }

    /// True if an operator may ask the node's program for something now; `number` tells what.
    pub fn admit_operation(&self, number: u64) -> bool {
        self.is_running() && self.admit(DecisionKind::Operation, number)
    }

    /// Kills the process. The page cache stays, so no write is lost. Peers see silence.
    pub fn crash(&self) -> bool {
        if !self.is_running() || !self.admit(DecisionKind::Crash, 0) {
            return false;
        }
        self.state.stop(&self.shared, EventKind::Crash);
        true
    }

    /// Kills the process and lets the disk lose, keep or tear what was not synced. Also applies to a node
    /// that is already down: its page cache is lost then.
    pub fn power_loss(&self) -> bool {
        if !self.admit(DecisionKind::PowerLoss, 0) {
            return false;
        }
        self.state.stop(&self.shared, EventKind::PowerLoss);
        true
    }

    /// Stops all its tasks until [`SimNode::resume`]. Its network still accepts and buffers.
    pub fn pause(&self) -> bool {
        if !self.is_running() || !self.admit(DecisionKind::Pause, 0) {
            return false;
        }
        lock(&self.state.life).paused = true;
        self.shared.madsim.pause(self.state.madsim);
        self.shared.event(EventKind::Pause, [u64::from(self.id()), 0, 0]);
        self.shared.recorder().note(|| Note::from(Happening::Pause).on(self.id()));
        true
    }

    /// Lets a paused node go on.
    pub fn resume(&self) {
        if std::mem::take(&mut lock(&self.state.life).paused) {
            self.shared.madsim.resume(self.state.madsim);
            self.shared.event(EventKind::Resume, [u64::from(self.id()), 0, 0]);
            self.shared.recorder().note(|| Note::from(Happening::Resume).on(self.id()));
        }
    }

    /// Empties the disk and the indexes of a node that is down.
    pub fn wipe_disk(&self) -> bool {
        if self.is_running() || !self.admit(DecisionKind::WipeDisk, 0) {
            return false;
        }
        lock(&self.state.disk).wipe();
        lock(&self.state.indexes).wipe();
        self.shared.event(EventKind::DiskFault, [u64::from(self.id()), 0, 0]);
        self.shared.recorder().note(|| Note::from(Happening::Wiped).on(self.id()));
        true
    }

    /// Exchanges the disks, with their indexes, of two nodes that are down.
    pub fn swap_disks(&self, other: &Self) -> bool {
        let apply = self.id() != other.id() && !self.is_running() && !other.is_running();
        if !apply || !self.admit(DecisionKind::SwapDisks, u64::from(other.id())) {
            return false;
        }
        lock(&self.state.disk).swap(&mut lock(&other.state.disk));
        lock(&self.state.indexes).swap(&mut lock(&other.state.indexes));
        let facts = [u64::from(self.id()), u64::from(other.id()), 3];
        self.shared.event(EventKind::DiskFault, facts);
        self.shared.recorder().note(|| {
            Note::from(Happening::Swapped).on(self.id()).facts([i64::from(other.id()), 0, 0])
        });
        true
    }

    /// Sets how much faster (or slower, if negative) a clock runs, in parts per million above -1,000,000.
    /// 0 ends the drift without setting the clock right.
    pub fn set_clock_drift(&self, face: ClockFace, ppm: i64) -> bool {
        if ppm != 0 && !self.admit(DecisionKind::ClockDrift, ppm as u64) {
            return false;
        }
        self.change_clock(face, Some(ppm.max(-999_999)), None);
        true
    }

    /// Stops a clock, or lets it run on from where it stood.
    pub fn freeze_clock(&self, face: ClockFace, frozen: bool) -> bool {
        if frozen && !self.admit(DecisionKind::ClockFreeze, 0) {
            return false;
        }
        self.change_clock(face, None, Some(frozen));
        true
    }

    /// Moves the wall clock by milliseconds, either way.
    pub fn step_wall_clock(&self, milliseconds: i64) -> bool {
        if !self.admit(DecisionKind::ClockStep, milliseconds as u64) {
            return false;
        }
        let now = self.shared.now();
        lock(&self.state.clock).wall.step(now, milliseconds.saturating_mul(1_000_000));
        self.shared.event(EventKind::Clock, [u64::from(self.id()), milliseconds as u64, 0]);
        self.shared.recorder().note(|| {
            let text = format!("the wall clock jumped by {milliseconds} ms");
            Note::from(Happening::ClockWrong).on(self.id()).text(text)
        });
        true
    }

    /// Sets the wall clock right: virtual time, no drift, not frozen.
    pub fn correct_wall_clock(&self) {
        self.change_clock(ClockFace::Wall, Some(0), Some(false));
        let now = self.shared.now();
        let mut clock = lock(&self.state.clock);
        let error = clock.wall.read(now) as i64 - (super::world::WALL_ORIGIN + now) as i64;
        clock.wall.step(now, -error);
    }

    fn record_clock(&self, face: ClockFace, drift_ppm: Option<i64>, frozen: Option<bool>) {
        let face = match face {
            ClockFace::Monotonic => "the monotonic clock",
            ClockFace::Wall => "the wall clock",
        };
        self.shared.recorder().note(|| {
            match (drift_ppm.unwrap_or(0), frozen) {
                (0, Some(true)) => {
                    Note::from(Happening::ClockWrong).text(format!("{face} stands still"))
                }
                (0, _) => Note::from(Happening::ClockRight).text(face),
                (ppm, _) => {
                    Note::from(Happening::ClockWrong).text(format!("{face} drifts by {ppm} ppm"))
                }
            }
            .on(self.id())
        });
    }

    fn change_clock(&self, face: ClockFace, drift_ppm: Option<i64>, frozen: Option<bool>) {
        let now = self.shared.now();
        {
            let mut clock = lock(&self.state.clock);
            let face = match face {
                ClockFace::Monotonic => &mut clock.monotonic,
                ClockFace::Wall => &mut clock.wall,
            };
            face.change(now, drift_ppm, frozen);
        }
        self.record_clock(face, drift_ppm, frozen);
        let facts = [u64::from(self.id()), face as u64, drift_ppm.unwrap_or(0) as u64];
        self.shared.event(EventKind::Clock, facts);
        self.state.replan_timers(&self.shared);
    }

    /// Waits by virtual time; for the fault plan.
    pub async fn wait(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2);
        super::agenda::delay(&self.shared, nanos).await;
    }
}
