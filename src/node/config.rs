//! What a node is told: its data folder, its roles, where it listens, its limits.

use std::path::PathBuf;

use crate::bookie::BookieConfig;
use crate::broker::BrokerConfig;
use crate::domain::Formats;
use crate::frontend::pulsar::codec::MAX_MESSAGE_SIZE_DEFAULT;
use crate::ledger::repair::RepairConfig;
use crate::ledger::{LedgerConfig, Quorum};
use crate::metadata::{MemberLimits, Observer};

/// The roles a node may run, in any mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Stores metadata.
    pub metadata: bool,
    /// Stores entries.
    pub bookie: bool,
    /// Serves clients.
    pub broker: bool,
}

impl Roles {
    /// All three in one process.
    pub const STANDALONE: Self = Self { metadata: true, bookie: true, broker: true };
    /// Metadata only.
    pub const METADATA: Self = Self { metadata: true, bookie: false, broker: false };
    /// Bookie only.
    pub const BOOKIE: Self = Self { metadata: false, bookie: true, broker: false };
    /// Broker only.
    pub const BROKER: Self = Self { metadata: false, bookie: false, broker: true };
}

/// A node's place in a metadata group.
#[derive(Clone, Debug)]
pub struct MetadataMember {
    /// Its id; never used again for a node whose disk was lost.
    pub id: u64,
    /// Ids and node-to-node addresses of the founding members, the same on each of them; none on a member
    /// that joins a running group.
    pub founders: Vec<(u64, String)>,
    /// Its limits.
    pub limits: MemberLimits,
    /// Told what the member does.
    pub observer: Observer,
}

impl MetadataMember {
    /// A member with the default limits.
    pub fn new(id: u64, founders: Vec<(u64, String)>) -> Self {
        Self { id, founders, limits: MemberLimits::default(), observer: Observer::default() }
    }
}

/// What a node is told.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Folder of everything this node stores; one process at a time.
    pub data: PathBuf,
    /// What it does.
    pub roles: Roles,
    /// Address of the node-to-node port; needed unless the node runs all roles alone.
    pub rpc_listen: Option<String>,
    /// The same as others reach it; default: the address bound.
    pub rpc_advertised: Option<String>,
    /// Node-to-node addresses of the metadata nodes, for nodes without the role and for members that are no
    /// founders.
    pub metadata_addresses: Vec<String>,
    /// With the metadata role: a member of a group; without: metadata of this node alone.
    pub metadata_member: Option<MetadataMember>,
    /// Address of the Pulsar port.
    pub pulsar_listen: String,
    /// `host:port` told to Pulsar clients by lookup. By default the address bound; when that is every address
    /// of the machine, the one by which the client is connected.
    pub pulsar_advertised: Option<String>,
    /// Address of the HTTP port.
    pub http_listen: String,
    /// `host:port` of the HTTP port told to clients and other brokers. By default the port bound at the host of
    /// the Pulsar address.
    pub http_advertised: Option<String>,
    /// Address of the public gRPC port.
    pub grpc_listen: String,
    /// `host:port` of it told to clients of other brokers. By default the host told to Pulsar clients and the
    /// port bound.
    pub grpc_advertised: Option<String>,
    /// Longest message accepted from a client, bytes of metadata and payload.
    pub message_bytes_max: usize,
    /// The bookie's limits; its folders are below `data` unless set otherwise.
    pub bookie: BookieConfig,
    /// The ledger client's limits.
    pub ledger: LedgerConfig,
    /// Repair's limits.
    pub repair: RepairConfig,
    /// The broker's limits.
    pub broker: BrokerConfig,
}

impl NodeConfig {
    /// A node with the given roles and replication, and defaults for the rest.
    pub fn new(data: PathBuf, roles: Roles, quorum: Quorum) -> Self {
        Self {
            roles,
            rpc_listen: None,
            rpc_advertised: None,
            metadata_addresses: Vec::new(),
            metadata_member: None,
            pulsar_listen: "0.0.0.0:6650".to_owned(),
            pulsar_advertised: None,
            http_listen: "0.0.0.0:8080".to_owned(),
            http_advertised: None,
            grpc_listen: "0.0.0.0:9090".to_owned(),
            grpc_advertised: None,
            message_bytes_max: MAX_MESSAGE_SIZE_DEFAULT,
            bookie: BookieConfig::below(&data),
            ledger: LedgerConfig::default(),
            repair: RepairConfig::default(),
            broker: BrokerConfig::with_quorum(quorum),
            data,
        }
    }

    /// What every role writes and reads from its next start on.
    pub fn set_formats(&mut self, formats: Formats) {
        self.broker.formats = formats;
        self.bookie.formats = formats;
    }

    /// A standalone node: all roles, one copy, still synced.
    pub fn standalone(data: PathBuf) -> Self {
        Self::new(data, Roles::STANDALONE, Quorum::SINGLE)
    }
}
