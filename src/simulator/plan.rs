//! What one seed means: topology, settings, workloads and faults, drawn by swarm (whole fault kinds are
//! switched off at random, since a fault that is always there hides bugs that need its absence) unless a
//! profile says which.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock_fault::ClockFault;
use super::draw::Draw;
use super::profile::Profile;
use super::shape::Shape;
use super::steps::Steps;
use super::trial::Trial;
use super::versions::Versions;
use super::workloads::Workload;
use crate::domain::Formats;
use crate::runtime::mix;
use crate::runtime::sim::World;

/// Which kind of cluster a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// One node with all roles, 1/1/1.
    Standalone,
    /// One metadata node, three bookies with 3/3/2, one broker.
    Cluster,
    /// A cluster whose counts of nodes and quorums are drawn from the seed.
    Swarm,
    /// Three metadata nodes, five bookies with 5/3/2, two brokers, four producers that hardly pause: what speed is measured on.
    Loaded,
}

impl Topology {
    /// The word on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Cluster => "cluster",
            Self::Swarm => "swarm",
            Self::Loaded => "loaded",
        }
    }
}

/// A kind of fault the nemesis can inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A process dies and comes back; its unsynced bytes survive.
    Crash,
    /// A node loses power: unsynced bytes and names are lost, kept or torn.
    PowerLoss,
    /// A process stands still for a while (SIGSTOP).
    Pause,
    /// Links are cut, both ways, one way, or around one node.
    Partition,
    /// Streams are reset while both ends live.
    Reset,
    /// Links become slow.
    SlowLink,
    /// A disk becomes slow or stalls.
    SlowDisk,
    /// A sync fails.
    SyncError,
    /// A read fails.
    ReadError,
    /// Bits flip at rest.
    BitRot,
    /// A disk is full for a while.
    DiskFull,
    /// Clocks drift, jump or freeze, per node.
    Clock,
    /// The index is lost with the crash.
    IndexLoss,
    /// Topics are unloaded, bundles given up, brokers stopped in order.
    MoveTopics,
    /// The leader of the metadata group dies, stands still, is cut off, or is asked to hand over.
    MetadataLeader,
    /// An operator takes a member out of the metadata group and adds its node again, empty, as a new one.
    MetadataMember,
    /// A bookie's disk is emptied; its process comes back soon, while its old registration may still stand.
    DiskWiped,
    /// A bookie is away for longer than its registration lasts, then another with an empty disk is at its
    /// address.
    BookieReplaced,
}

impl FaultKind {
    /// Every kind that is drawn.
    pub const ALL: &'static [Self] = &[
        Self::Crash,
        Self::PowerLoss,
        Self::Pause,
        Self::Partition,
        Self::Reset,
        Self::SlowLink,
        Self::SlowDisk,
        Self::SyncError,
        Self::ReadError,
        Self::BitRot,
        Self::DiskFull,
        Self::Clock,
        Self::IndexLoss,
        Self::MoveTopics,
        Self::DiskWiped,
        Self::BookieReplaced,
        Self::MetadataLeader,
        Self::MetadataMember,
    ];

    /// Whether a cluster of this shape has what the fault hits.
    pub(super) const fn fits(self, shape: Shape) -> bool {
        match self {
            Self::MetadataLeader => shape.metadata > 1,
            // The disk is emptied: a bookie's entries must not be on it.
            Self::MetadataMember => shape.metadata > 1 && !shape.shares_nodes,
            _ => true,
        }
    }

    /// Whether any cluster of this topology has what the fault hits.
    pub(super) const fn can_hit(self, topology: Topology) -> bool {
        match self {
            Self::MetadataLeader | Self::MetadataMember => {
                matches!(topology, Topology::Swarm | Topology::Loaded)
            }
            // They hit one copy among several.
            Self::BitRot | Self::DiskWiped | Self::BookieReplaced => {
                !matches!(topology, Topology::Standalone)
            }
            _ => true,
        }
    }

    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::PowerLoss => "power_loss",
            Self::Pause => "pause",
            Self::Partition => "partition",
            Self::Reset => "reset",
            Self::SlowLink => "slow_link",
            Self::SlowDisk => "slow_disk",
            Self::SyncError => "sync_error",
            Self::ReadError => "read_error",
            Self::BitRot => "bit_rot",
            Self::DiskFull => "disk_full",
            Self::Clock => "clock",
            Self::IndexLoss => "index_loss",
            Self::MoveTopics => "move_topics",
            Self::MetadataLeader => "metadata_leader",
            Self::MetadataMember => "metadata_member",
            Self::DiskWiped => "disk_wiped",
            Self::BookieReplaced => "bookie_replaced",
        }
    }
}

/// Mean pause between two faults of a storm.
const STORM_INTERVAL: Duration = Duration::from_millis(200);

/// Everything drawn for one seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Which kind of cluster.
    pub topology: Topology,
    /// Its nodes and its replication.
    pub shape: Shape,
    /// Fault kinds that may happen in this run.
    pub faults: Vec<FaultKind>,
    /// The one way in which clocks are wrong, if not all of them come.
    pub clock: Option<ClockFault>,
    /// The only strikes of the nemesis that happen, if not all do.
    pub strikes: Option<BTreeSet<u64>>,
    /// Which latencies, and moments between ticks, are drawn, if not the seed's own (0).
    pub timing: u64,
    /// Mean pause between faults.
    pub fault_interval: Duration,
    /// Length of the safety phase.
    pub safety_phase: Duration,
    /// Longest wait in the liveness phase until everything is published, delivered and read again.
    pub liveness_limit: Duration,
    /// What clients do.
    pub workloads: Vec<Workload>,
    /// Topics.
    pub topics: u32,
    /// Producers of each topic.
    pub producers: u32,
    /// Mean time between two publishes of a producer, over bursts and pauses.
    pub publish_interval: Duration,
    /// Messages a producer sends one after the other before it pauses: work comes in heaps, as it does in life,
    /// and windows fill without the whole run being busy.
    pub publish_burst: u32,
    /// Messages a producer sends, at most.
    pub messages_max: u64,
    /// The only messages that producers send, by the number of the producer, if not all are sent.
    pub sends: Option<Steps>,
    /// Sends a producer keeps in flight.
    pub producer_window: u32,
    /// Body bytes: from … to.
    pub body_bytes: (u64, u64),
    /// Consumers of the Shared subscription of each topic.
    pub shared_consumers: u32,
    /// Consumers begin when everything is healed.
    pub consumes_late: bool,
    /// Messages a consumer lets come before it takes them.
    pub receiver_queue: u32,
    /// Acknowledgements a consumer has under way.
    pub ack_window: u32,
    /// A ledger is rolled over at this many entries.
    pub ledger_entries_max: u64,
    /// Each half of a bookie's write cache, bytes: small ones make checkpoints frequent.
    pub write_cache_bytes: usize,
    /// A bookie's read cache, bytes; small ones make it forget.
    pub read_cache_bytes: usize,
    /// Journal file length, bytes: small ones make recycling frequent.
    pub journal_file_bytes: u64,
    /// Journal directories of each bookie.
    pub journal_directories: usize,
    /// Ledger directories of each bookie.
    pub ledger_directories: usize,
    /// Longest time between checkpoints.
    pub checkpoint_interval: Duration,
    /// Entries in a cursor's ledger before it is rolled.
    pub cursor_ledger_entries_max: u64,
    /// The broker's tail cache, bytes: small ones make reads go to the bookies.
    pub tail_cache_bytes: usize,
    /// Ledgers that every subscription has consumed are deleted.
    pub trims: bool,
    /// Entries of a topic waiting to be stored; more are refused.
    pub topic_pending_max: usize,
    /// A bookie off the list for this long is lost.
    pub lost_bookie_grace: Duration,
    /// An open ledger of a lost bookie is fenced after this.
    pub open_tail_grace: Duration,
    /// After this many bytes of a metadata log a snapshot is taken: small ones make snapshots frequent.
    pub metadata_log_bytes: u64,
    /// Entries kept behind such a snapshot: few make members that were away need the snapshot.
    pub metadata_log_kept: u64,
    /// Bytes of a piece of a metadata snapshot: small ones make it many pieces.
    pub metadata_snapshot_part: usize,
    /// Clients that use metadata itself.
    pub register_clients: u32,
    /// Calls each of them makes, at most.
    pub register_calls_max: u64,
    /// The only calls that they make, by the number of the client, if not all are made.
    pub register_calls: Option<Steps>,
    /// Producers send batches of this many messages at most (1: no batches).
    pub batch_messages: u32,
    /// Whether an operator changes the versions of nodes.
    pub versions: Versions,
    /// What every node is at first, unless that is drawn. Scenarios ask for others.
    pub formats: Formats,
}

impl Plan {
    /// The number of the one bookie whose bits may rot and whose disk may be lost, if any: with one copy there
    /// is nothing to read instead. As the place is always the same, every entry keeps the copies that an ack
    /// quorum has elsewhere, whether or not repair is done.
    pub fn rot_victim(&self, world: &World) -> Option<usize> {
        let bookies = self.shape.bookies as u64;
        let chosen = (world.random("rot victim", 0) % bookies.max(1)) as usize;
        self.shape.spares_a_copy().then_some(chosen)
    }

    /// The plan of a seed, its faults drawn by swarm.
    pub fn draw(seed: u64, topology: Topology) -> Self {
        Self::of(&Trial::new(seed, topology))
    }

    /// The plan of a trial.
    pub fn of(trial: &Trial) -> Self {
        let mut plan = Self::whole(trial);
        trial.cuts.apply(&mut plan);
        plan
    }

    /// The plan of a trial of which nothing is left out.
    fn whole(trial: &Trial) -> Self {
        let mut plan = Self::drawn(trial);
        if trial.topology == Topology::Loaded {
            plan.topics = 2;
            plan.producers = 2;
            plan.publish_interval = Duration::from_millis(5);
            plan.publish_burst = 10;
            plan.producer_window = 32;
            plan.register_clients = 2;
        }
        plan
    }

    fn drawn(trial: &Trial) -> Self {
        let Trial { seed, settings, topology, profile, .. } = *trial;
        let draw = Draw::new(mix(settings.unwrap_or(seed)) ^ topology as u64);
        // One run in ten is calm: a failure there is the plainest story.
        let calm = draw.chance("calm", 10);
        let shape = Shape::draw(&draw, topology);
        let faults = FaultKind::ALL
            .iter()
            .copied()
            .filter(|kind| kind.fits(shape))
            .filter(|kind| profile.allows(*kind, || !calm && draw.chance(kind.as_str(), 50)))
            .collect();
        Self {
            seed,
            topology,
            shape,
            faults,
            clock: trial.clock,
            strikes: None,
            timing: 0,
            fault_interval: match profile {
                Profile::Storm => STORM_INTERVAL,
                _ => Duration::from_millis(draw.pick("fault interval", &[400, 900, 1800, 3600])),
            },
            safety_phase: Duration::from_secs(draw.between("safety phase", 10, 25)),
            liveness_limit: Duration::from_secs(240),
            workloads: Workload::ALL.to_vec(),
            topics: draw.between("topics", 1, 2) as u32,
            producers: draw.between("producers", 1, 2) as u32,
            publish_interval: Duration::from_millis(
                draw.pick("publish interval", &[10, 30, 60, 120]),
            ),
            publish_burst: draw.pick("publish burst", &[1, 3, 10, 30]),
            messages_max: u64::MAX,
            sends: None,
            producer_window: draw.pick("window", &[1, 4, 32]),
            body_bytes: draw.pick("body", &[(16, 64), (16, 1024), (512, 8192)]),
            shared_consumers: draw.between("shared consumers", 1, 3) as u32,
            consumes_late: false,
            receiver_queue: 50,
            ack_window: draw.pick("ack window", &[2, 8, 32]),
            ledger_entries_max: draw.pick("ledger entries", &[10, 50, 300, 100_000]),
            write_cache_bytes: draw.pick("write cache", &[16 * 1024, 128 * 1024, 4 * 1024 * 1024]),
            read_cache_bytes: draw.pick("read cache", &[0, 16 * 1024, 256 * 1024]),
            journal_file_bytes: draw.pick("journal file", &[128 * 1024, 1024 * 1024]),
            journal_directories: draw.pick("journal directories", &[1, 1, 2, 3]),
            ledger_directories: draw.pick("ledger directories", &[1, 1, 2]),
            checkpoint_interval: Duration::from_millis(
                draw.pick("checkpoint", &[300, 1500, 10_000]),
            ),
            cursor_ledger_entries_max: draw.pick("cursor ledger", &[5, 50, 5_000]),
            tail_cache_bytes: draw.pick("tail cache", &[1, 32 * 1024, 64 * 1024 * 1024]),
            trims: draw.chance("trims", 50),
            topic_pending_max: draw.pick("pending", &[8, 1000, 1000]),
            lost_bookie_grace: Duration::from_secs(draw.pick("lost grace", &[1, 5, 20])),
            open_tail_grace: Duration::from_secs(draw.pick("tail grace", &[1, 10])),
            metadata_log_bytes: draw.pick("metadata log", &[8 * 1024, 64 * 1024, 16 * 1024 * 1024]),
            metadata_log_kept: draw.pick("metadata log kept", &[0, 20, 1000]),
            metadata_snapshot_part: draw.pick("metadata part", &[1024, 1024 * 1024]),
            register_clients: match topology {
                Topology::Swarm => draw.between("register clients", 2, 4) as u32,
                Topology::Standalone | Topology::Cluster | Topology::Loaded => 0,
            },
            register_calls_max: u64::MAX,
            register_calls: None,
            batch_messages: draw.pick("batch", &[1, 1, 5]),
            versions: trial.versions,
            formats: Formats::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_repeat() {
        let faults = |seed| Plan::draw(seed, Topology::Swarm).faults;
        assert_eq!(faults(1), faults(1));
        let kinds: std::collections::BTreeSet<_> = (0..50).flat_map(faults).collect();
        assert_eq!(kinds.len(), FaultKind::ALL.len(), "fifty seeds draw every kind");
        assert!((0..50).any(|seed| faults(seed).is_empty()), "some seeds are calm");
    }
}
