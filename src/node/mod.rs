//! Puts parts together, the same for production and simulation: which role needs what, in which order
//! they start and stop, and when the node must say that it can serve no longer.

mod bookie_admin;
pub mod bookie_registry;
mod config;
mod damage;
mod error;
mod failing;
mod group_admin;
mod health;
mod metrics;
mod own_metadata;
mod parts;

use std::sync::Arc;

pub use config::{MetadataMember, NodeConfig, Roles};
pub use error::NodeError;

use crate::bookie::Bookie;
use crate::broker::Broker;
use crate::frontend::admin::AdminFrontend;
use crate::frontend::grpc::GrpcFrontend;
use crate::frontend::pulsar::{PulsarCounts, PulsarFrontend};
use crate::ledger::LedgerClient;
use crate::ledger::repair::{RepairService, RepairStats};
use crate::metadata::{Metadata, ReplicatedMetadata};
use crate::runtime::{DiskLock, Runtime, Shutdown, Task};

use bookie_registry::BookieRegistration;
use failing::Failing;
use health::NodeHealth;
use own_metadata::OwnMetadata;

/// A running node.
pub struct Node {
    metadata: Metadata,
    own_metadata: Option<OwnMetadata>,
    bookie: Option<Bookie>,
    registration: Option<BookieRegistration>,
    broker: Option<BrokerPart>,
    repair: Option<RepairService>,
    rpc_address: Option<String>,
    rpc_server: Option<Task<()>>,
    admin: AdminFrontend,
    health: Arc<NodeHealth>,
    stop: Shutdown,
    _folder: Box<dyn DiskLock>,
}

/// What the role of broker consists of.
struct BrokerPart {
    broker: Broker,
    ledgers: LedgerClient,
    pulsar: PulsarFrontend,
    grpc: GrpcFrontend,
}

impl Node {
    /// Starts the roles in order: metadata, bookie, broker, front ends. Waits for metadata and for enough
    /// bookies as long as it takes.
    pub async fn start(runtime: Runtime, config: NodeConfig) -> Result<Self, NodeError> {
        parts::start(runtime, config).await
    }

    /// `host:port` of the Pulsar port, with the real port.
    pub fn pulsar_address(&self) -> Option<&str> {
        self.broker.as_ref().map(|part| part.pulsar.local_address())
    }

    /// `host:port` of the HTTP port, with the real port.
    pub fn http_address(&self) -> &str {
        self.admin.local_address()
    }

    /// `host:port` of the public gRPC port, with the real port.
    pub fn grpc_address(&self) -> Option<&str> {
        self.broker.as_ref().map(|part| part.grpc.local_address())
    }

    /// `host:port` of the node-to-node port, with the real port.
    pub fn rpc_address(&self) -> Option<&str> {
        self.rpc_address.as_deref()
    }

    /// Metadata as this node sees it.
    pub fn metadata(&self) -> Metadata {
        Arc::clone(&self.metadata)
    }

    /// The member of the metadata group, if the node is one.
    pub fn metadata_member(&self) -> Option<&ReplicatedMetadata> {
        self.own_metadata.as_ref().and_then(OwnMetadata::member)
    }

    /// The bookie, if the node has that role.
    pub fn bookie(&self) -> Option<&Bookie> {
        self.bookie.as_ref()
    }

    /// What repair did on this node, if it takes part in it.
    pub fn repair(&self) -> Option<Arc<RepairStats>> {
        self.repair.as_ref().map(RepairService::stats)
    }

    /// The broker, if the node has that role.
    pub fn broker(&self) -> Option<&Broker> {
        self.broker.as_ref().map(|part| &part.broker)
    }

    /// Connections of Pulsar clients, if the node has that role.
    pub fn pulsar_counts(&self) -> Option<PulsarCounts> {
        self.broker.as_ref().map(|part| part.pulsar.counters().read())
    }

    /// The broker's client of ledgers, if the node has that role.
    pub fn ledgers(&self) -> Option<&LedgerClient> {
        self.broker.as_ref().map(|part| &part.ledgers)
    }

    /// Completes with the reason when the node can serve no longer: its journal or its metadata is
    /// poisoned. It must be restarted then; it acknowledges nothing in the meantime.
    pub async fn failed(&self) -> String {
        let reason = self.failing().reason().await;
        self.health.not_ready(&reason);
        reason
    }

    fn failing(&self) -> Failing {
        Failing { metadata: self.own_metadata.clone(), bookie: self.bookie.clone() }
    }

    /// Stops in order: clients are told to look up again, then topics, bookie and metadata close.
    pub async fn stop(self) {
        self.health.not_ready("stopping");
        if let Some(part) = self.broker {
            part.broker.stop().await;
            part.pulsar.stop().await;
            part.grpc.stop().await;
        }
        self.admin.stop();
        if let Some(metadata) = &self.own_metadata {
            metadata.hand_over().await;
        }
        if let Some(metadata) = &self.own_metadata {
            metadata.hand_over().await;
        }
        self.stop.trigger();
        if let Some(registration) = self.registration {
            registration.ended().await;
        }
        if let Some(server) = self.rpc_server {
            // Cancelled with its node: ended all the same.
            let _ = server.await;
        }
        if let Some(bookie) = self.bookie {
            bookie.stop().await;
        }
        if let Some(metadata) = self.own_metadata {
            metadata.stop().await;
        }
    }
}
