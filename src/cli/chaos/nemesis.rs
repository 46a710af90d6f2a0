//! Does to the cluster what the plan says, and undoes it. Keeps what it did, with the time it was done.

use std::sync::Arc;
use std::time::Duration;

use super::fault_plan::{Fault, Party, PlannedFault};
use super::files;
use super::proxy::{LinkState, Links};
use crate::cli::local_cluster::LocalCluster;

/// A node that ended by itself is started again after this.
const RESTART_PAUSE: Duration = Duration::from_millis(500);
/// A node told to stop that still runs after this is killed.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// What a node's process is to do next, and when.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Nothing: it runs.
    Runs,
    /// It was told to stop and is killed at that time; then it stays down for so long.
    Stopping { until: Duration, down: Duration },
    /// Started at that time.
    Down { until: Duration },
}

/// A fault that ends by itself.
struct Lasting {
    until: Duration,
    fault: Fault,
}

/// What happened, for the verdict.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Happening {
    /// Since the run began.
    at_ms: u64,
    /// What.
    what: String,
}

/// See the module.
pub(super) struct Nemesis {
    links: Arc<Links>,
    plan: std::vec::IntoIter<PlannedFault>,
    due: Option<PlannedFault>,
    began: Duration,
    next: Vec<Next>,
    lasting: Vec<Lasting>,
    /// Everything, in order.
    pub(super) happenings: Vec<Happening>,
    /// Faults done.
    pub(super) done: u64,
    /// Ends of nodes that nobody asked for.
    pub(super) ends: Vec<String>,
}

impl Nemesis {
    /// Nothing happens before [`Nemesis::begin`].
    pub(super) fn new(links: Arc<Links>, nodes: usize) -> Self {
        Self {
            links,
            plan: Vec::new().into_iter(),
            due: None,
            began: Duration::ZERO,
            next: vec![Next::Runs; nodes],
            lasting: Vec::new(),
            happenings: Vec::new(),
            done: 0,
            ends: Vec::new(),
        }
    }

    /// The storm begins.
    pub(super) fn begin(&mut self, plan: Vec<PlannedFault>, now: Duration) {
        self.plan = plan.into_iter();
        self.due = self.plan.next();
        self.began = now;
    }

    /// Undoes what is due, does what is due, and starts again what is down and due.
    pub(super) fn tick(&mut self, cluster: &mut LocalCluster, now: Duration) {
        let (over, lasting): (Vec<Lasting>, Vec<Lasting>) =
            std::mem::take(&mut self.lasting).into_iter().partition(|one| one.until <= now);
        self.lasting = lasting;
        for one in over {
            self.undo(one.fault, cluster, now);
        }
        while let Some(planned) = self.due
            && self.began + Duration::from_millis(planned.at_ms) <= now
        {
            self.due = self.plan.next();
            self.perform(planned, cluster, now);
        }
        self.look_after(cluster, now);
    }

    /// Ends the storm: every link carries, every node runs.
    pub(super) fn heal(&mut self, cluster: &mut LocalCluster, now: Duration) {
        self.due = None;
        self.plan = Vec::new().into_iter();
        for one in std::mem::take(&mut self.lasting) {
            self.undo(one.fault, cluster, now);
        }
        self.links.heal_all();
        for node in &mut cluster.nodes {
            node.resume();
        }
        for next in &mut self.next {
            if let Next::Down { until } = next {
                *until = now;
            }
        }
        self.tell(now, "healed".to_owned());
        self.look_after(cluster, now);
    }

    /// True when every node is meant to run, and does.
    pub(super) fn all_run(&self, cluster: &mut LocalCluster) -> bool {
        self.next.iter().all(|next| matches!(next, Next::Runs))
            && cluster.nodes.iter_mut().all(|node| node.is_running())
    }

    fn tell(&mut self, now: Duration, what: String) {
        tracing::info!(what, "chaos");
        let at_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.happenings.push(Happening { at_ms, what });
    }

    fn perform(&mut self, planned: PlannedFault, cluster: &mut LocalCluster, now: Duration) {
        let lasts = Duration::from_millis(planned.lasts_ms);
        let hurt = match planned.fault {
            Fault::Kill { node }
            | Fault::Restart { node }
            | Fault::Pause { node }
            | Fault::Rot { node, .. }
            | Fault::IndexLoss { node }
            | Fault::DiskLoss { node } => Some(node),
            _ => None,
        };
        let is_down = |node: usize| !matches!(self.next.get(node - 1), Some(Next::Runs));
        let Some(process) = hurt.map_or(Some(0), |node| (!is_down(node)).then(|| node - 1)) else {
            return;
        };
        self.done += 1;
        self.tell(now, format!("{:?} for {lasts:?}", planned.fault));
        let until = now + lasts;
        match planned.fault {
            Fault::Kill { .. } => {
                cluster.nodes[process].kill();
                self.next[process] = Next::Down { until };
            }
            Fault::Restart { .. } => {
                cluster.nodes[process].resume();
                cluster.nodes[process].ask_to_stop();
                self.next[process] = Next::Stopping { until: now + STOP_LIMIT, down: lasts };
            }
            Fault::Rot { bytes, .. } => {
                cluster.nodes[process].kill();
                self.next[process] = Next::Down { until };
                let seed = planned.at_ms;
                let flipped = files::flip_bytes(&cluster.nodes[process].layout.data(), bytes, seed);
                self.tell(now, flipped);
            }
            Fault::IndexLoss { .. } => {
                cluster.nodes[process].kill();
                self.next[process] = Next::Down { until };
                files::remove_index(&cluster.nodes[process].layout.data());
            }
            Fault::DiskLoss { .. } => {
                cluster.nodes[process].kill();
                self.next[process] = Next::Down { until };
                files::remove_bookie(&cluster.nodes[process].layout.data());
            }
            Fault::Pause { .. } => cluster.nodes[process].pause(),
            Fault::Reset { node } => self.links.reset(node),
            Fault::Cut { from, to, forth, back } => self.links.change(from, to, |link| {
                link.holds_forth |= forth;
                link.holds_back |= back;
            }),
            Fault::Isolate { node } => self.isolate(node, true),
            Fault::Slow { node, delay_ms } => {
                self.slow(node, Duration::from_millis(delay_ms));
            }
        }
        let is_undone = matches!(
            planned.fault,
            Fault::Pause { .. } | Fault::Cut { .. } | Fault::Isolate { .. } | Fault::Slow { .. }
        );
        if is_undone {
            self.lasting.push(Lasting { until, fault: planned.fault });
        }
    }

    fn undo(&mut self, fault: Fault, cluster: &mut LocalCluster, now: Duration) {
        match fault {
            Fault::Pause { node } => {
                if let Some(process) = cluster.nodes.get_mut(node - 1) {
                    process.resume();
                }
            }
            Fault::Cut { from, to, .. } => self.links.change(from, to, hold_nothing),
            Fault::Isolate { node } => self.isolate(node, false),
            Fault::Slow { node, .. } => self.slow(node, Duration::ZERO),
            _ => return,
        }
        self.tell(now, format!("{fault:?} is over"));
    }

    fn isolate(&self, node: usize, is_cut: bool) {
        let change = |link: &mut LinkState| {
            link.holds_forth = is_cut;
            link.holds_back = is_cut;
        };
        // A node reaches itself whatever happens around it.
        for party in self.links.parties().filter(|party| *party != Party::Node(node)) {
            self.links.change(party, node, change);
            if let Party::Node(other) = party {
                self.links.change(Party::Node(node), other, change);
            }
        }
    }

    fn slow(&self, node: usize, delay: Duration) {
        for party in self.links.parties() {
            self.links.change(party, node, |link| link.delay = delay);
        }
    }

    /// Starts what is down and due; notes what ended by itself and lets it be started again.
    fn look_after(&mut self, cluster: &mut LocalCluster, now: Duration) {
        for index in 0..self.next.len() {
            let node = &mut cluster.nodes[index];
            match self.next[index] {
                Next::Runs => {
                    if let Some(end) = node.take_end() {
                        let words = format!("node {} ended by itself: {end}", index + 1);
                        self.ends.push(words.clone());
                        self.next[index] = Next::Down { until: now + RESTART_PAUSE };
                        self.tell(now, words);
                    }
                }
                Next::Stopping { until, down } => {
                    if !node.is_running() {
                        self.next[index] = Next::Down { until: now + down };
                        self.tell(now, format!("node {} has stopped", index + 1));
                    } else if now >= until {
                        node.kill();
                        let words = format!("node {} did not stop in {STOP_LIMIT:?}", index + 1);
                        self.ends.push(words.clone());
                        self.next[index] = Next::Down { until: now + down };
                        self.tell(now, words);
                    }
                }
                Next::Down { until } if now >= until => match node.start() {
                    Ok(()) => {
                        let process = node.id().unwrap_or(0);
                        self.links.runs_as(index + 1, process);
                        self.next[index] = Next::Runs;
                    }
                    Err(error) => {
                        self.next[index] = Next::Down { until: now + RESTART_PAUSE };
                        self.tell(now, error.to_string());
                    }
                },
                Next::Down { .. } => {}
            }
        }
    }
}

fn hold_nothing(link: &mut LinkState) {
    link.holds_forth = false;
    link.holds_back = false;
}
