//! Every key with its default.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bookie::BookieConfig;
use crate::broker::BrokerConfig;
use crate::domain::{FormatLevel, Rack};
use crate::frontend::pulsar::codec::MAX_MESSAGE_SIZE_DEFAULT;
use crate::ledger::repair::RepairConfig;
use crate::ledger::{LedgerConfig, Quorum};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Folder of everything stored.
    pub(crate) data: PathBuf,
    /// What a node of a cluster does; empty: a standalone node, which does everything alone.
    pub(crate) roles: Vec<RoleName>,
    /// The formats written (docs/operating/upgrade.md).
    pub(crate) format_level: u32,
    /// The node-to-node port.
    pub(crate) rpc: RpcSettings,
    /// The Pulsar port.
    pub(crate) pulsar: PulsarSettings,
    /// The HTTP port.
    pub(crate) http: HttpSettings,
    /// Where metadata is.
    pub(crate) metadata: MetadataSettings,
    /// Copies of each entry.
    pub(crate) replication: ReplicationSettings,
    /// The gRPC port.
    pub(crate) grpc: GrpcSettings,
    /// Storage.
    pub(crate) bookie: BookieSettings,
    /// The client of storage.
    pub(crate) ledger: LedgerSettings,
    /// Topics.
    pub(crate) broker: BrokerSettings,
    /// Restoring lost copies.
    pub(crate) repair: RepairSettings,
}

/// A role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleName {
    /// Stores metadata.
    Metadata,
    /// Stores entries.
    Bookie,
    /// Serves clients.
    Broker,
}

/// The node-to-node port; a standalone node has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RpcSettings {
    /// Host to listen on.
    pub(crate) host: String,
    /// Port; 0 asks for any.
    pub(crate) port: u16,
    /// `host:port` by which other nodes reach this one; empty: the address bound.
    pub(crate) advertised: String,
}

/// Where metadata is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetadataSettings {
    /// Node-to-node addresses of the nodes with the metadata role.
    pub(crate) addresses: Vec<String>,
    /// This node's id in the metadata group, if it has the role; 0: it keeps metadata alone.
    pub(crate) member: u64,
    /// `id@host:port` of the group's founding members, the same on each; empty on one that joins later.
    pub(crate) founders: Vec<String>,
}

/// Copies of each entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReplicationSettings {
    /// Bookies an open fragment is spread over.
    pub(crate) ensemble: u32,
    /// Copies sent of each entry.
    pub(crate) write_quorum: u32,
    /// Synced copies that make an entry complete.
    pub(crate) ack_quorum: u32,
}

/// The Pulsar port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PulsarSettings {
    /// Host to listen on.
    pub(crate) host: String,
    /// Port; 0 asks for any.
    pub(crate) port: u16,
    /// `host:port` told to clients; empty: the address bound, or, when that is every address of the machine,
    /// the one by which the client is connected.
    pub(crate) advertised: String,
    /// Longest message accepted, bytes of metadata and payload.
    pub(crate) message_bytes_max: usize,
}

/// The HTTP port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpSettings {
    /// Host to listen on.
    pub(crate) host: String,
    /// Port; 0 asks for any.
    pub(crate) port: u16,
    /// `host:port` told to clients and other brokers; empty: the host they are told for Pulsar, and the port bound.
    pub(crate) advertised: String,
}

/// The gRPC port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GrpcSettings {
    /// Host to listen on.
    pub(crate) host: String,
    /// Port; 0 asks for any.
    pub(crate) port: u16,
    /// `host:port` told to clients of other brokers; empty: the host told to Pulsar clients, the port bound.
    pub(crate) advertised: String,
}

/// Storage. Empty folders are below `data`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BookieSettings {
    pub(crate) journal_directory: PathBuf,
    /// Instead of `journal_directory`: several, each with a journal of its own.
    pub(crate) journal_directories: Vec<PathBuf>,
    pub(crate) ledger_directory: PathBuf,
    /// Instead of `ledger_directory`: several, the first one with index and checkpoint.
    pub(crate) ledger_directories: Vec<PathBuf>,
    /// What this bookie fails together with.
    pub(crate) rack: Rack,
    pub(crate) journal_file_bytes: u64,
    pub(crate) journal_group_bytes: usize,
    pub(crate) journal_queue_bytes: usize,
    pub(crate) write_cache_bytes: usize,
    pub(crate) read_cache_bytes: usize,
    #[serde(with = "readable_duration")]
    pub(crate) checkpoint_interval: Duration,
    pub(crate) entry_log_bytes: u64,
    pub(crate) free_space_low_bytes: u64,
    #[serde(with = "readable_duration")]
    pub(crate) garbage_interval: Duration,
    pub(crate) scrub_bytes_per_second: u64,
}

/// The client of storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LedgerSettings {
    #[serde(with = "readable_duration")]
    pub(crate) add_timeout: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) read_timeout: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) speculative_read_delay: Duration,
    pub(crate) pending_entries_max: usize,
    pub(crate) pending_bytes_max: usize,
    /// Distinct racks that each entry's copies must be on.
    pub(crate) racks_min: u32,
    /// With fewer bookies than the ensemble, but a write quorum, spread ledgers over those.
    pub(crate) opportunistic_striping: bool,
}

/// Topics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BrokerSettings {
    pub(crate) cluster: String,
    pub(crate) ledger_entries_max: u64,
    pub(crate) ledger_bytes_max: u64,
    #[serde(with = "readable_duration")]
    pub(crate) ledger_age_max: Duration,
    pub(crate) tail_cache_bytes: usize,
    pub(crate) topic_pending_max: usize,
    pub(crate) unacked_per_consumer_max: u32,
    #[serde(with = "readable_duration")]
    pub(crate) trim_interval: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) cursor_flush_interval: Duration,
    /// Bundles of a namespace that is used for the first time.
    pub(crate) bundles: u32,
    /// Others may try to take this broker's bundles when metadata has not heard of it for this long.
    #[serde(with = "readable_duration")]
    pub(crate) session_time_to_live: Duration,
    /// How often loads are compared; 0s never gives a bundle up.
    #[serde(with = "readable_duration")]
    pub(crate) shedding_interval: Duration,
}

/// Restoring lost copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RepairSettings {
    #[serde(with = "readable_duration")]
    pub(crate) lost_bookie_grace: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) open_tail_grace: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) audit_interval: Duration,
    #[serde(with = "readable_duration")]
    pub(crate) check_interval: Duration,
    pub(crate) check_samples: u32,
    #[serde(with = "readable_duration")]
    pub(crate) replicator_interval: Duration,
    pub(crate) bytes_per_second: u64,
    #[serde(with = "readable_duration")]
    pub(crate) session_time_to_live: Duration,
}

impl Settings {
    /// The defaults of a node of a cluster: three copies instead of one.
    pub(crate) fn of_cluster() -> Self {
        let replication = ReplicationSettings { ensemble: 3, write_quorum: 3, ack_quorum: 2 };
        Self { replication, ..Self::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data: PathBuf::from("data"),
            roles: Vec::new(),
            format_level: FormatLevel::NEWEST.number(),
            rpc: RpcSettings::default(),
            metadata: MetadataSettings::default(),
            replication: ReplicationSettings::default(),
            repair: RepairSettings::default(),
            pulsar: PulsarSettings::default(),
            http: HttpSettings::default(),
            grpc: GrpcSettings::default(),
            bookie: BookieSettings::default(),
            ledger: LedgerSettings::default(),
            broker: BrokerSettings::default(),
        }
    }
}

impl Default for PulsarSettings {
    fn default() -> Self {
        Self {
            host: "0.0.0.0".to_owned(),
            port: 6650,
            advertised: String::new(),
            message_bytes_max: MAX_MESSAGE_SIZE_DEFAULT,
        }
    }
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { host: "0.0.0.0".to_owned(), port: 8080, advertised: String::new() }
    }
}

impl Default for RpcSettings {
    fn default() -> Self {
        Self { host: "0.0.0.0".to_owned(), port: 7000, advertised: String::new() }
    }
}

impl Default for ReplicationSettings {
    fn default() -> Self {
        let Quorum { ensemble, write, ack } = Quorum::SINGLE;
        Self { ensemble, write_quorum: write, ack_quorum: ack }
    }
}

impl Default for RepairSettings {
    fn default() -> Self {
        let config = RepairConfig::default();
        Self {
            lost_bookie_grace: config.lost_bookie_grace,
            open_tail_grace: config.open_tail_grace,
            audit_interval: config.audit_interval,
            check_interval: config.check_interval,
            check_samples: config.check_samples,
            replicator_interval: config.replicator_interval,
            bytes_per_second: config.bytes_per_second,
            session_time_to_live: config.session_time_to_live,
        }
    }
}

impl Default for GrpcSettings {
    fn default() -> Self {
        Self { host: "0.0.0.0".to_owned(), port: 9090, advertised: String::new() }
    }
}

impl Default for BookieSettings {
    fn default() -> Self {
        let config = BookieConfig::below(std::path::Path::new(""));
        Self {
            journal_directory: PathBuf::new(),
            journal_directories: Vec::new(),
            ledger_directory: PathBuf::new(),
            ledger_directories: Vec::new(),
            rack: config.rack,
            journal_file_bytes: config.journal_file_bytes,
            journal_group_bytes: config.journal_group_bytes,
            journal_queue_bytes: config.journal_queue_bytes,
            write_cache_bytes: config.write_cache_bytes,
            read_cache_bytes: config.read_cache_bytes,
            checkpoint_interval: config.checkpoint_interval,
            entry_log_bytes: config.entry_log_bytes,
            free_space_low_bytes: config.free_space_low_bytes,
            garbage_interval: config.garbage_interval,
            scrub_bytes_per_second: config.scrub_bytes_per_second,
        }
    }
}

impl Default for LedgerSettings {
    fn default() -> Self {
        let config = LedgerConfig::default();
        Self {
            add_timeout: config.add_timeout,
            read_timeout: config.read_timeout,
            speculative_read_delay: config.speculative_read_delay,
            pending_entries_max: config.pending_entries_max,
            pending_bytes_max: config.pending_bytes_max,
            racks_min: config.racks_min,
            opportunistic_striping: config.opportunistic_striping,
        }
    }
}

impl Default for BrokerSettings {
    fn default() -> Self {
        let config = BrokerConfig::with_quorum(Quorum::SINGLE);
        Self {
            cluster: config.cluster,
            ledger_entries_max: config.ledger_entries_max,
            ledger_bytes_max: config.ledger_bytes_max,
            ledger_age_max: config.ledger_age_max,
            tail_cache_bytes: config.tail_cache_bytes,
            topic_pending_max: config.topic_pending_max,
            unacked_per_consumer_max: config.unacked_per_consumer_max,
            trim_interval: config.trim_interval,
            cursor_flush_interval: config.cursor_flush_interval,
            bundles: config.ownership.bundles,
            session_time_to_live: config.ownership.session_time_to_live,
            shedding_interval: config.ownership.shedding_interval,
        }
    }
}

/// Durations as `30s`, `200ms`, `4h`.
mod readable_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(*duration))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map_err(serde::de::Error::custom)
    }
}
