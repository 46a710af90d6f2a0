//! Settings as the node takes them.

use std::path::Path;

use super::Settings;
use super::sections::{
    BookieSettings, BrokerSettings, LedgerSettings, MetadataSettings, RepairSettings,
    ReplicationSettings, RoleName,
};
use crate::bookie::BookieConfig;
use crate::broker::{BrokerConfig, OwnershipConfig};
use crate::domain::{FormatLevel, Formats};
use crate::ledger::repair::RepairConfig;
use crate::ledger::{LedgerConfig, Quorum};
use crate::node::{MetadataMember, NodeConfig, Roles};

impl Settings {
    /// True for a node that does everything alone.
    pub(crate) fn is_standalone(&self) -> bool {
        self.roles.is_empty()
    }

    /// What the node does.
    pub(crate) fn node_roles(&self) -> Roles {
        if self.is_standalone() {
            return Roles::STANDALONE;
        }
        Roles {
            metadata: self.roles.contains(&RoleName::Metadata),
            bookie: self.roles.contains(&RoleName::Bookie),
            broker: self.roles.contains(&RoleName::Broker),
        }
    }

    /// Everything a node is told.
    pub(crate) fn node_config(&self) -> NodeConfig {
        let address = |host: &str, port: u16| format!("{host}:{port}");
        let told = |advertised: &str| (!advertised.is_empty()).then(|| advertised.to_owned());
        let quorum = self.replication.quorum();
        let rpc_listen = (!self.is_standalone()).then(|| address(&self.rpc.host, self.rpc.port));
        let mut config = NodeConfig {
            rpc_listen,
            rpc_advertised: told(&self.rpc.advertised),
            metadata_addresses: self.metadata.addresses.clone(),
            metadata_member: self.metadata.group_member(),
            pulsar_listen: address(&self.pulsar.host, self.pulsar.port),
            pulsar_advertised: told(&self.pulsar.advertised),
            message_bytes_max: self.pulsar.message_bytes_max,
            http_listen: address(&self.http.host, self.http.port),
            http_advertised: told(&self.http.advertised),
            grpc_listen: address(&self.grpc.host, self.grpc.port),
            grpc_advertised: told(&self.grpc.advertised),
            bookie: self.bookie.config(&self.data),
            ledger: self.ledger.config(),
            repair: self.repair.config(),
            broker: self.broker.config(quorum),
            ..NodeConfig::new(self.data.clone(), self.node_roles(), quorum)
        };
        // A number that is no level was refused before.
        let level = FormatLevel::of_number(self.format_level).unwrap_or(FormatLevel::NEWEST);
        config.set_formats(Formats::writing(level));
        config
    }
}

impl MetadataSettings {
    fn group_member(&self) -> Option<MetadataMember> {
        let founders = self.founders.iter().filter_map(|founder| parse_founder(founder)).collect();
        (self.member > 0).then(|| MetadataMember::new(self.member, founders))
    }
}

/// `id@host:port`.
pub(super) fn parse_founder(text: &str) -> Option<(u64, String)> {
    let (id, address) = text.split_once('@')?;
    let id = id.parse().ok().filter(|id| *id > 0)?;
    Some((id, address.to_owned()))
}

impl ReplicationSettings {
    /// The same, unchecked.
    pub(crate) const fn quorum(&self) -> Quorum {
        Quorum { ensemble: self.ensemble, write: self.write_quorum, ack: self.ack_quorum }
    }
}

impl RepairSettings {
    fn config(&self) -> RepairConfig {
        RepairConfig {
            lost_bookie_grace: self.lost_bookie_grace,
            open_tail_grace: self.open_tail_grace,
            audit_interval: self.audit_interval,
            check_interval: self.check_interval,
            check_samples: self.check_samples,
            replicator_interval: self.replicator_interval,
            bytes_per_second: self.bytes_per_second,
            session_time_to_live: self.session_time_to_live,
            ..RepairConfig::default()
        }
    }
}

impl BookieSettings {
    fn config(&self, data: &Path) -> BookieConfig {
        let mut config = BookieConfig::below(data);
        if !self.journal_directory.as_os_str().is_empty() {
            config.journal_directory.clone_from(&self.journal_directory);
        }
        if let Some((first, others)) = self.journal_directories.split_first() {
            config.journal_directory.clone_from(first);
            config.more_journal_directories = others.to_vec();
        }
        if !self.ledger_directory.as_os_str().is_empty() {
            config.ledger_directory.clone_from(&self.ledger_directory);
        }
        if let Some((first, others)) = self.ledger_directories.split_first() {
            config.ledger_directory.clone_from(first);
            config.more_ledger_directories = others.to_vec();
        }
        config.rack.clone_from(&self.rack);
        config.journal_file_bytes = self.journal_file_bytes;
        config.journal_group_bytes = self.journal_group_bytes;
        config.journal_queue_bytes = self.journal_queue_bytes;
        config.write_cache_bytes = self.write_cache_bytes;
        config.read_cache_bytes = self.read_cache_bytes;
        config.checkpoint_interval = self.checkpoint_interval;
        config.entry_log_bytes = self.entry_log_bytes;
        config.free_space_low_bytes = self.free_space_low_bytes;
        config.garbage_interval = self.garbage_interval;
        config.scrub_bytes_per_second = self.scrub_bytes_per_second;
        config
    }
}

impl LedgerSettings {
    fn config(&self) -> LedgerConfig {
        LedgerConfig {
            add_timeout: self.add_timeout,
            read_timeout: self.read_timeout,
            speculative_read_delay: self.speculative_read_delay,
            pending_entries_max: self.pending_entries_max,
            pending_bytes_max: self.pending_bytes_max,
            racks_min: self.racks_min,
            opportunistic_striping: self.opportunistic_striping,
            ..LedgerConfig::default()
        }
    }
}

impl BrokerSettings {
    fn config(&self, quorum: Quorum) -> BrokerConfig {
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
            ..BrokerConfig::with_quorum(quorum)
        }
    }
}
