//! Every key with its default.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bookie::BookieConfig;
use crate::broker::{BrokerConfig, OwnershipConfig};
use crate::frontend::pulsar::codec::MAX_MESSAGE_SIZE_DEFAULT;
use crate::ledger::{LedgerConfig, Quorum};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Folder of everything stored.
    pub(crate) data: PathBuf,
    /// The Pulsar port.
    pub(crate) pulsar: PulsarSettings,
    /// The HTTP port.
    pub(crate) http: HttpSettings,
    /// The gRPC port.
    pub(crate) grpc: GrpcSettings,
    /// Storage.
    pub(crate) bookie: BookieSettings,
    /// The client of storage.
    pub(crate) ledger: LedgerSettings,
    /// Topics.
    pub(crate) broker: BrokerSettings,
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
    pub(crate) ledger_directory: PathBuf,
    pub(crate) journal_file_bytes: u64,
    pub(crate) journal_group_bytes: usize,
    pub(crate) journal_queue_bytes: usize,
    pub(crate) write_cache_bytes: usize,
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

impl Default for Settings {
    fn default() -> Self {
        Self {
            data: PathBuf::from("data"),
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
        Self { host: "0.0.0.0".to_owned(), port: 8080 }
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
            ledger_directory: PathBuf::new(),
            journal_file_bytes: config.journal_file_bytes,
            journal_group_bytes: config.journal_group_bytes,
            journal_queue_bytes: config.journal_queue_bytes,
            write_cache_bytes: config.write_cache_bytes,
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

impl BookieSettings {
    /// The bookie's configuration below a data folder.
    pub(crate) fn config(&self, data: &std::path::Path) -> BookieConfig {
        let mut config = BookieConfig::below(data);
        if !self.journal_directory.as_os_str().is_empty() {
            config.journal_directory.clone_from(&self.journal_directory);
        }
        if !self.ledger_directory.as_os_str().is_empty() {
            config.ledger_directory.clone_from(&self.ledger_directory);
        }
        config.journal_file_bytes = self.journal_file_bytes;
        config.journal_group_bytes = self.journal_group_bytes;
        config.journal_queue_bytes = self.journal_queue_bytes;
        config.write_cache_bytes = self.write_cache_bytes;
        config.checkpoint_interval = self.checkpoint_interval;
        config.entry_log_bytes = self.entry_log_bytes;
        config.free_space_low_bytes = self.free_space_low_bytes;
        config.garbage_interval = self.garbage_interval;
        config.scrub_bytes_per_second = self.scrub_bytes_per_second;
        config
    }
}

impl LedgerSettings {
    /// The ledger client's configuration.
    pub(crate) fn config(&self) -> LedgerConfig {
        LedgerConfig {
            add_timeout: self.add_timeout,
            read_timeout: self.read_timeout,
            speculative_read_delay: self.speculative_read_delay,
            pending_entries_max: self.pending_entries_max,
            pending_bytes_max: self.pending_bytes_max,
            ..LedgerConfig::default()
        }
    }
}

impl BrokerSettings {
    /// The broker's configuration.
    pub(crate) fn config(&self) -> BrokerConfig {
        BrokerConfig {
            cluster: self.cluster.clone(),
            ledger_entries_max: self.ledger_entries_max,
            ledger_bytes_max: self.ledger_bytes_max,
            ledger_age_max: self.ledger_age_max,
            tail_cache_bytes: self.tail_cache_bytes,
            topic_pending_max: self.topic_pending_max,
            unacked_per_consumer_max: self.unacked_per_consumer_max,
            trim_interval: self.trim_interval,
            cursor_flush_interval: self.cursor_flush_interval,
            ownership: OwnershipConfig {
                bundles: self.bundles,
                session_time_to_live: self.session_time_to_live,
                shedding_interval: self.shedding_interval,
                ..OwnershipConfig::default()
            },
            ..BrokerConfig::with_quorum(Quorum::SINGLE)
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
