//! Starting the roles, in order.

use std::path::Path;
use std::sync::Arc;

use super::bookie_registry::{
    BookieRegistration, LocalBookie, MetadataLedgers, RegisteredBookies, RegistrationConfig,
    check_cookie,
};
use super::health::NodeHealth;
use super::metrics::{BookieMetrics, ConnectionMetrics};
use super::{BrokerPart, Node, NodeConfig, NodeError};
use crate::bookie::{Bookie, BookieService};
use crate::broker::Broker;
use crate::frontend::admin::{AdminConfig, AdminFrontend, AdminPorts};
use crate::frontend::pulsar::{PulsarConfig, PulsarFrontend};
use crate::ledger::{BookieClient, LedgerClient, RemoteBookieConfig};
use crate::metadata::{
    Metadata, MetadataService, RemoteMetadata, RemoteMetadataConfig, SingleNodeConfig,
    SingleNodeMetadata,
};
use crate::rpc::{Routes, ServerConfig, serve};
use crate::runtime::{DiskResult, Listener, Runtime, Shutdown};

/// Says which incarnation of a bookie this folder belongs to, as metadata was told.
const BOOKIE_MARKER: &str = "bookie-id";

pub(super) async fn start(runtime: Runtime, config: NodeConfig) -> Result<Node, NodeError> {
    create_durably(&runtime, &config.data).await?;
    let folder = runtime.disk.lock(&config.data).await?;
    let stop = Shutdown::new();

    let listener = match &config.rpc_listen {
        Some(address) => Some(listen(&runtime, address).await?),
        None => None,
    };
    let rpc_address = listener.as_ref().map(Listener::local_address);
    let advertised = config.rpc_advertised.clone().or_else(|| rpc_address.clone());

    let (metadata, own_metadata) = start_metadata(&runtime, &config).await?;
    let mut routes = Routes::new();
    if own_metadata.is_some() {
        routes = routes.with(MetadataService::server(Arc::clone(&metadata)));
    }

    // A node without a node-to-node port is reached by nobody but itself.
    let advertised = advertised.unwrap_or_else(|| "local".to_owned());
    let bookie = match config.roles.bookie {
        true => Some(start_bookie(&runtime, &config, &metadata, &advertised).await?),
        false => None,
    };
    if let Some(bookie) = &bookie {
        routes = routes.with(BookieService::server(runtime.clone(), bookie.clone()));
    }
    let rpc_server = listener.map(|listener| {
        let serving =
            serve(runtime.clone(), listener, routes, ServerConfig::default(), stop.signal());
        runtime.tasks.spawn("rpc server", serving)
    });
    let registration = bookie.as_ref().map(|bookie| {
        let id = bookie.id();
        let watched = bookie.clone();
        let writable = move || {
            let stats = watched.stats();
            !stats.read_only && stats.poisoned.is_none()
        };
        BookieRegistration::start(
            &runtime,
            Arc::clone(&metadata),
            id,
            advertised,
            Arc::new(writable),
            RegistrationConfig::default(),
            stop.signal(),
        )
    });

    let health = Arc::new(NodeHealth::new(bookie.clone()));
    let broker = match config.roles.broker {
        true => {
            let part =
                start_broker(&runtime, &config, &metadata, bookie.as_ref(), &health, &stop).await?;
            Some(part)
        }
        false => None,
    };
    health.ready_now();
    Ok(Node {
        metadata,
        own_metadata,
        bookie,
        registration,
        broker,
        rpc_address,
        rpc_server,
        health,
        stop,
        _folder: folder,
    })
}

/// Creates the folder and makes its name, and those of its parents, durable: a folder that a power loss
/// takes away takes everything in it.
async fn create_durably(runtime: &Runtime, folder: &Path) -> DiskResult<()> {
    runtime.disk.create_directory(folder).await?;
    for parent in folder.ancestors().skip(1) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        runtime.disk.sync_directory(parent).await?;
    }
    Ok(())
}

async fn listen(runtime: &Runtime, address: &str) -> Result<Listener, NodeError> {
    let listening = runtime.network.listen(address).await;
    listening.map_err(|error| NodeError::Listen { address: address.to_owned(), error })
}

async fn start_metadata(
    runtime: &Runtime,
    config: &NodeConfig,
) -> Result<(Metadata, Option<SingleNodeMetadata>), NodeError> {
    if config.roles.metadata {
        let single = SingleNodeConfig::below(&config.data);
        let store = SingleNodeMetadata::start(runtime.clone(), single).await?;
        return Ok((Arc::new(store.clone()), Some(store)));
    }
    if config.metadata_addresses.is_empty() {
        let reason = "a node without the metadata role needs the address of one that has it";
        return Err(NodeError::Config(reason.to_owned()));
    }
    let remote = RemoteMetadata::new(
        runtime.clone(),
        &config.metadata_addresses,
        RemoteMetadataConfig::default(),
    );
    Ok((Arc::new(remote), None))
}

async fn start_bookie(
    runtime: &Runtime,
    config: &NodeConfig,
    metadata: &Metadata,
    advertised: &str,
) -> Result<Bookie, NodeError> {
    let directory = Arc::new(MetadataLedgers::new(Arc::clone(metadata)));
    let bookie = Bookie::start(runtime.clone(), config.bookie.clone(), directory).await?;
    let marker = config.data.join(BOOKIE_MARKER);
    check_cookie(runtime, metadata, bookie.id(), advertised, &marker).await?;
    Ok(bookie)
}

async fn start_broker(
    runtime: &Runtime,
    config: &NodeConfig,
    metadata: &Metadata,
    bookie: Option<&Bookie>,
    health: &Arc<NodeHealth>,
    stop: &Shutdown,
) -> Result<BrokerPart, NodeError> {
    let local = bookie.map(|bookie| {
        let client: Arc<dyn BookieClient> = Arc::new(LocalBookie::new(bookie.clone()));
        (bookie.id(), client)
    });
    let bookies = RegisteredBookies::start(
        runtime,
        Arc::clone(metadata),
        local,
        RemoteBookieConfig::default(),
        stop.signal(),
    );
    // Before that no topic could be opened; clients would only be told to come back.
    bookies.wait_for_writable(config.broker.quorum.ensemble as usize).await;
    let ledgers =
        LedgerClient::new(runtime.clone(), Arc::clone(metadata), bookies, config.ledger.clone());
    let broker =
        Broker::new(runtime.clone(), Arc::clone(metadata), ledgers.clone(), config.broker.clone());
    let pulsar_config = PulsarConfig {
        advertised: config.pulsar_advertised.clone(),
        max_message_size: config.message_bytes_max,
        ..PulsarConfig::new(&config.pulsar_listen)
    };
    let pulsar = PulsarFrontend::start(runtime.clone(), broker.clone(), pulsar_config)
        .await
        .map_err(|error| NodeError::Listen { address: config.pulsar_listen.clone(), error })?;
    let mut sources: Vec<Arc<dyn crate::telemetry::MetricSource>> =
        vec![Arc::new(ConnectionMetrics(pulsar.counters()))];
    if let Some(bookie) = bookie {
        sources.push(Arc::new(BookieMetrics(bookie.clone())));
    }
    let ports = AdminPorts { health: Arc::clone(health) as _, metrics: sources };
    let host = pulsar
        .service_url()
        .trim_start_matches("pulsar://")
        .rsplit_once(':')
        .map_or("localhost", |(host, _)| host)
        .to_owned();
    let admin_config =
        AdminConfig::new(&config.http_listen, &host, pulsar.service_url(), &config.broker.cluster);
    let admin = AdminFrontend::start(runtime.clone(), broker.clone(), ports, admin_config)
        .await
        .map_err(|error| NodeError::Listen { address: config.http_listen.clone(), error })?;
    Ok(BrokerPart { broker, ledgers, pulsar, admin })
}
