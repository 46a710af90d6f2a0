//! The nodes of a run: which there are, how each is configured, and the supervisor that starts again what
//! died or gave up, as an operator's would.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::history::SharedHistory;
use super::metadata_history::recorder;
use super::node_states::NodeStates;
use super::noted::Noted;
use super::plan::{Plan, Topology};
use crate::bookie::BookieConfig;
use crate::domain::Formats;
use crate::ledger::repair::RepairConfig;
use crate::metadata::MemberLimits;
use crate::metadata::consensus::Role;
use crate::node::{MetadataMember, Node, NodeConfig, Roles};
use crate::runtime::sim::{Note, Recorder, SimNode, World};
use crate::runtime::{Runtime, Shutdown};

/// Longest message in a run, bytes.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
const PULSAR_PORT: u16 = 6650;
const HTTP_PORT: u16 = 8080;
const GRPC_PORT: u16 = 9090;
const RPC_PORT: u16 = 7000;

/// Where a node's process is.
#[derive(Default)]
struct Slot {
    /// The running node, once started.
    node: Option<Arc<Node>>,
    /// The process gave up (failed start, poisoned) and must be started again.
    gave_up: Option<GaveUp>,
    /// The process is to stop in order.
    stop: Shutdown,
}

/// Why a process gave up, and the record of that, if the run is recorded.
struct GaveUp {
    reason: String,
    record: u32,
}

/// One node of the cluster.
pub struct ClusterNode {
    /// The machine.
    pub machine: SimNode,
    /// What it runs.
    pub roles: Roles,
    config: NodeConfig,
    formats: Formats,
    /// What its last process was started as.
    started_as: Formats,
    slot: Arc<Mutex<Slot>>,
    /// Virtual time before which the supervisor leaves it down.
    down_until: Duration,
    /// Why its process gave up the last time, if it ever did.
    pub gave_up_because: Option<String>,
}

/// All nodes of a run.
pub struct Cluster {
    /// The nodes, in order of creation.
    pub nodes: Vec<ClusterNode>,
    world: World,
    /// Restarts after a node gave up by itself.
    pub gave_up: u64,
    states: NodeStates,
}

fn locked(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Cluster {
    /// Creates the machines; nothing runs yet.
    pub fn create(world: &World, plan: &Plan, history: &SharedHistory) -> Self {
        let nodes = layout(plan)
            .into_iter()
            .enumerate()
            .map(|(index, (name, roles))| ClusterNode {
                machine: world.create_node(&name, &name),
                roles,
                config: configure(&name, index, roles, plan, history),
                formats: plan.formats,
                started_as: plan.formats,
                slot: Arc::default(),
                down_until: Duration::ZERO,
                gave_up_because: None,
            })
            .collect();
        Self { nodes, world: world.clone(), gave_up: 0, states: NodeStates::default() }
    }

    /// Addresses of the brokers' Pulsar ports, as a service URL.
    pub fn broker_address(&self) -> String {
        let brokers = self.nodes.iter().filter(|node| node.roles.broker);
        let addresses: Vec<String> =
            brokers.map(|node| format!("{}:{PULSAR_PORT}", node.machine.host())).collect();
        addresses.join(",")
    }

    /// Node-to-node addresses of the nodes with metadata.
    pub fn metadata_addresses(&self) -> Vec<String> {
        let nodes = self.nodes.iter().filter(|node| node.roles.metadata);
        nodes.map(|node| format!("{}:{RPC_PORT}", node.machine.host())).collect()
    }

    /// Where among all nodes the leader of the metadata group is, as far as it knows itself.
    pub fn metadata_leader(&self) -> Option<usize> {
        let leads = |node: &ClusterNode| {
            let serving = node.serving()?;
            Some(serving.metadata_member()?.status().role == Role::Leader)
        };
        self.nodes.iter().position(|node| leads(node) == Some(true))
    }

    /// Addresses of the brokers' gRPC ports.
    pub fn grpc_addresses(&self) -> Vec<String> {
        let brokers = self.nodes.iter().filter(|node| node.roles.broker);
        brokers.map(|node| format!("{}:{GRPC_PORT}", node.machine.host())).collect()
    }

    /// Starts what is down and due, and starts again what gave up.
    pub fn supervise(&mut self) {
        let now = self.world.now();
        for node in &mut self.nodes {
            let gave_up = locked(&node.slot).gave_up.take();
            if let Some(GaveUp { reason, record }) = gave_up {
                tracing::info!(node = node.machine.name(), reason, "gave up, will be restarted");
                self.gave_up += 1;
                node.gave_up_because = Some(reason);
                self.world.recorder().owing(record, || node.machine.crash());
                node.down_until = now + Duration::from_millis(500);
            }
            if !node.machine.is_running() && now >= node.down_until {
                node.start(self.world.recorder());
            }
        }
        self.states.look(&self.nodes, self.world.recorder());
    }

    /// The bookie of this number, from 0, in a cluster.
    pub fn bookie(&self, number: usize) -> Option<&ClusterNode> {
        let is_bookie = |node: &&ClusterNode| node.roles.bookie;
        self.nodes.iter().filter(is_bookie).nth(number)
    }

    /// Where among all nodes that bookie is.
    pub fn bookie_index(&self, number: usize) -> Option<usize> {
        let bookies = self.nodes.iter().enumerate().filter(|(_, node)| node.roles.bookie);
        bookies.map(|(index, _)| index).nth(number)
    }

    /// Leaves a node down until `until`.
    pub fn keep_down(&mut self, index: usize, until: Duration) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.down_until = until;
        }
    }

    /// True once every node has started and serves.
    pub fn all_serve(&self) -> bool {
        self.nodes.iter().all(|node| node.machine.is_running() && node.serving().is_some())
    }
}

impl ClusterNode {
    /// The running node, if it serves.
    pub fn serving(&self) -> Option<Arc<Node>> {
        if !self.machine.is_running() {
            return None;
        }
        locked(&self.slot).node.clone()
    }

    /// Asks the process to stop in order, as a signal would; then it is started again.
    pub fn stop_in_order(&self) {
        locked(&self.slot).stop.trigger();
    }

    /// The id of the member of the metadata group that the node is.
    pub fn member_id(&self) -> Option<u64> {
        self.config.metadata_member.as_ref().map(|member| member.id)
    }

    /// From its next start on the node is another member, one that joins the group.
    pub fn become_member(&mut self, id: u64) {
        if let Some(member) = &mut self.config.metadata_member {
            (member.id, member.founders) = (id, Vec::new());
        }
    }

    /// `host:port` of its node-to-node port.
    pub fn rpc_address(&self) -> String {
        format!("{}:{RPC_PORT}", self.machine.host())
    }

    /// The version it is from its next start on.
    pub fn set_formats(&mut self, formats: Formats) {
        self.formats = formats;
    }

    /// The version it was set to.
    pub const fn formats(&self) -> Formats {
        self.formats
    }

    /// No process of another version than it was set to runs on it.
    pub fn is_what_it_was_set_to(&self) -> bool {
        !self.machine.is_running() || self.started_as == self.formats
    }

    /// Whether a process of this version runs on it, or would be started next.
    pub fn may_be(&self, formats: Formats) -> bool {
        self.formats == formats || (self.machine.is_running() && self.started_as == formats)
    }

    fn start(&mut self, recorder: &Recorder) {
        *locked(&self.slot) = Slot::default();
        self.started_as = self.formats;
        let (slot, mut config) = (Arc::clone(&self.slot), self.config.clone());
        config.set_formats(self.formats);
        let recorder = recorder.clone();
        self.machine.start(move |runtime| async move {
            let reason = live(runtime, config, &slot).await;
            let gave_up =
                recorder.note(|| Note::from(Noted::GaveUp).following().text(reason.clone()));
            let mut slot = locked(&slot);
            slot.node = None;
            slot.gave_up = Some(GaveUp { reason, record: gave_up });
        });
    }
}

/// The life of one process; answers why it ended.
async fn live(runtime: Runtime, config: NodeConfig, slot: &Mutex<Slot>) -> String {
    match Node::start(runtime, config).await {
        Ok(node) => {
            let node = Arc::new(node);
            let stop = {
                let mut slot = locked(slot);
                slot.node = Some(Arc::clone(&node));
                slot.stop.signal()
            };
            let failed = tokio::select! {
                biased;
                reason = node.failed() => Some(reason),
                () = stop.triggered() => None,
            };
            match failed {
                Some(reason) => reason,
                None => {
                    locked(slot).node = None;
                    stop_in_order(node).await;
                    "stopped in order".to_owned()
                }
            }
        }
        Err(error) => error.to_string(),
    }
}

async fn stop_in_order(node: Arc<Node>) {
    match Arc::try_unwrap(node) {
        Ok(node) => node.stop().await,
        // Somebody looks at it right now: at least what matters to clients.
        Err(node) => {
            if let Some(broker) = node.broker() {
                broker.stop().await;
            }
        }
    }
}

/// Names and roles of all nodes; those with metadata come first.
fn layout(plan: &Plan) -> Vec<(String, Roles)> {
    let shape = plan.shape;
    if plan.topology == Topology::Standalone {
        return vec![("node-0".to_owned(), Roles::STANDALONE)];
    }
    if shape.shares_nodes {
        let roles = |number| Roles {
            metadata: number < shape.metadata,
            bookie: true,
            broker: number < shape.brokers,
        };
        return (0..shape.bookies)
            .map(|number| (format!("node-{number}"), roles(number)))
            .collect();
    }
    let many = |count: usize, kind: &'static str, roles: Roles| {
        (0..count).map(move |number| (format!("{kind}-{number}"), roles))
    };
    many(shape.metadata, "metadata", Roles::METADATA)
        .chain(many(shape.bookies, "bookie", Roles::BOOKIE))
        .chain(many(shape.brokers, "broker", Roles::BROKER))
        .collect()
}

/// Node-to-node addresses of the nodes with metadata.
fn metadata_addresses(plan: &Plan) -> Vec<String> {
    let nodes = layout(plan).into_iter().filter(|(_, roles)| roles.metadata);
    nodes.map(|(host, _)| format!("{host}:{RPC_PORT}")).collect()
}

/// The place in the metadata group of the node with this index, if there is a group and it is in it.
fn metadata_member(
    index: usize,
    roles: Roles,
    plan: &Plan,
    history: &SharedHistory,
) -> Option<MetadataMember> {
    if plan.shape.metadata < 2 || !roles.metadata {
        return None;
    }
    let founders = (1..).zip(metadata_addresses(plan)).collect();
    let limits = MemberLimits {
        log_bytes: plan.metadata_log_bytes,
        log_kept: plan.metadata_log_kept,
        snapshot_part: plan.metadata_snapshot_part,
    };
    let observer = recorder(history);
    Some(MetadataMember { limits, observer, ..MetadataMember::new(index as u64 + 1, founders) })
}

/// Folders of a bookie beside the first one of this kind.
fn others(data: &Path, kind: &str, count: usize) -> Vec<PathBuf> {
    (2..=count).map(|number| data.join(format!("{kind}-{number}"))).collect()
}

fn configure(
    host: &str,
    index: usize,
    roles: Roles,
    plan: &Plan,
    history: &SharedHistory,
) -> NodeConfig {
    let data = PathBuf::from("/data");
    let alone = plan.topology == Topology::Standalone;
    let mut config = NodeConfig {
        rpc_listen: (!alone).then(|| format!("{host}:{RPC_PORT}")),
        metadata_addresses: metadata_addresses(plan),
        metadata_member: metadata_member(index, roles, plan, history),
        pulsar_listen: format!("{host}:{PULSAR_PORT}"),
        http_listen: format!("{host}:{HTTP_PORT}"),
        grpc_listen: format!("{host}:{GRPC_PORT}"),
        message_bytes_max: MESSAGE_BYTES_MAX,
        bookie: BookieConfig {
            journal_file_bytes: plan.journal_file_bytes,
            journal_group_bytes: 64 * 1024,
            journal_queue_bytes: 4 * 1024 * 1024,
            write_cache_bytes: plan.write_cache_bytes,
            read_cache_bytes: plan.read_cache_bytes,
            checkpoint_interval: plan.checkpoint_interval,
            entry_log_bytes: 2 * 1024 * 1024,
            free_space_low_bytes: 1024 * 1024,
            garbage_interval: Duration::from_secs(5),
            scrub_bytes_per_second: 64 * 1024,
            more_journal_directories: others(&data, "journal", plan.journal_directories),
            more_ledger_directories: others(&data, "ledgers", plan.ledger_directories),
            ..BookieConfig::below(&data)
        },
        ..NodeConfig::new(data, roles, plan.shape.quorum)
    };
    config.repair = RepairConfig {
        lost_bookie_grace: plan.lost_bookie_grace,
        open_tail_grace: plan.open_tail_grace,
        audit_interval: Duration::from_secs(3),
        check_interval: Duration::from_secs(10),
        check_samples: 0,
        replicator_interval: Duration::from_secs(2),
        batch_entries: 16,
        batch_bytes: 64 * 1024,
        ..RepairConfig::default()
    };
    config.broker.ledger_entries_max = plan.ledger_entries_max;
    config.broker.cursor_ledger_entries_max = plan.cursor_ledger_entries_max;
    config.broker.trim_interval = Duration::from_secs(3);
    config.broker.ownership.session_time_to_live = Duration::from_secs(3);
    config.broker.ownership.shedding_interval = Duration::from_secs(5);
    config.broker.tail_cache_bytes = plan.tail_cache_bytes;
    config.broker.topic_pending_max = plan.topic_pending_max;
    config
}
