//! Starting the roles, in order.

use std::path::Path;
use std::sync::Arc;

use super::bookie_admin::ClusterBookies;
use super::bookie_registry::{
    BookieRegistration, LocalBookie, MetadataLedgers, RegisteredBookies, RegistrationConfig,
    check_cookie,
};
use super::damage::tell_damage;
use super::group_admin::OwnGroup;
use super::health::NodeHealth;
use super::metrics::{BookieMetrics, ConnectionMetrics, RepairMetrics};
use super::own_metadata::OwnMetadata;
use super::{BrokerPart, Node, NodeConfig, NodeError};
use crate::bookie::{Bookie, BookieService};
use crate::broker::{Broker, BrokerAddresses};
use crate::frontend::admin::{AdminConfig, AdminFrontend, BrokerPlace};
use crate::frontend::grpc::{GrpcConfig, GrpcFrontend};
use crate::frontend::pulsar::{PulsarConfig, PulsarFrontend};
use crate::ledger::repair::{RepairParts, RepairService};
use crate::ledger::{BookieClient, BookiePool, LedgerClient, RemoteBookieConfig};
use crate::metadata::{Metadata, RemoteMetadata, RemoteMetadataConfig};
use crate::reached;
use crate::rpc::{Routes, ServerConfig, serve};
use crate::runtime::{DiskResult, Listener, Runtime, Shutdown, is_any_host};

/// Says which incarnation of a bookie this folder belongs to, as metadata was told.
const BOOKIE_MARKER: &str = "bookie-id";

/// Starts all parts. If one fails, those started before it are stopped.
pub(super) async fn start(runtime: Runtime, config: NodeConfig) -> Result<Node, NodeError> {
    create_durably(&runtime, &config.data).await?;
    let folder = runtime.disk.lock(&config.data).await?;
    let listener = match &config.rpc_listen {
        Some(address) => Some(listen(&runtime, address).await?),
        None => None,
    };
    let health = Arc::new(NodeHealth::new());
    let admin = start_admin(&runtime, &config, &health).await?;
    health.not_ready("starting metadata");
    let started = start_metadata(&runtime, &config).await;
    let (metadata, own_metadata) = started.inspect_err(|_| admin.stop())?;
    let ensemble = config.broker.quorum.ensemble;
    admin.set_bookies(Arc::new(ClusterBookies::new(Arc::clone(&metadata), ensemble)));
    if let Some(member) = own_metadata.as_ref().and_then(OwnMetadata::member) {
        admin.set_group(Arc::new(OwnGroup(member.clone())));
    }
    let mut node = Node {
        metadata,
        own_metadata,
        bookie: None,
        repair: None,
        registration: None,
        broker: None,
        rpc_address: listener.as_ref().map(Listener::local_address),
        rpc_server: None,
        admin,
        health,
        stop: Shutdown::new(),
        _folder: folder,
    };
    match start_roles(&runtime, &config, listener, &mut node).await {
        Ok(()) => {
            node.health.ready_now();
            Ok(node)
        }
        Err(error) => {
            reached!("node: a start failed half way");
            node.stop().await;
            Err(error)
        }
    }
}

async fn start_roles(
    runtime: &Runtime,
    config: &NodeConfig,
    listener: Option<Listener>,
    node: &mut Node,
) -> Result<(), NodeError> {
    let mut routes = Routes::growing();
    if let Some(own) = &node.own_metadata {
        routes = own.serve(routes);
    }
    // Served before anything else starts: a member of a metadata group reaches its group, and so its own
    // metadata, over this port, and the other roles begin by asking metadata.
    let serving = routes.clone();
    node.rpc_server = listener.map(|listener| {
        let stop = node.stop.signal();
        let serving = serve(runtime.clone(), listener, serving, ServerConfig::default(), stop);
        runtime.tasks.spawn("rpc server", serving)
    });
    // A node without a node-to-node port is reached by nobody but itself.
    let advertised = config.rpc_advertised.clone().or_else(|| node.rpc_address.clone());
    let advertised = advertised.unwrap_or_else(|| "local".to_owned());
    if config.roles.bookie {
        node.health.not_ready("starting the bookie");
        let directory = Arc::new(MetadataLedgers::new(Arc::clone(&node.metadata)));
        let bookie = Bookie::start(runtime.clone(), config.bookie.clone(), directory).await?;
        node.bookie = Some(bookie.clone());
        let marker = config.data.join(BOOKIE_MARKER);
        let known = check_cookie(runtime, &node.metadata, bookie.id(), &advertised, &marker);
        node.failing().unless(known).await??;
        routes = routes.with(BookieService::server(runtime.clone(), bookie.clone()));
        node.health.watch(&bookie);
        node.admin.add_metrics(Arc::new(BookieMetrics(bookie)));
    }
    routes.complete();
    node.registration = node.bookie.as_ref().map(|bookie| {
        BookieRegistration::start(
            runtime,
            Arc::clone(&node.metadata),
            bookie.id(),
            advertised.clone(),
            Arc::new(LocalBookie::new(bookie.clone())),
            RegistrationConfig { rack: config.bookie.rack.clone(), ..Default::default() },
            node.stop.signal(),
        )
    });
    let ledgers = match config.roles.bookie || config.roles.broker {
        true => {
            let bookie = node.bookie.as_ref();
            Some(LedgerPart::start(runtime, config, &node.metadata, bookie, &node.stop))
        }
        false => None,
    };
    // A node nobody can reach has nobody to copy from.
    node.repair = match (&ledgers, &node.bookie) {
        _ if config.rpc_listen.is_none() => None,
        (Some(ledgers), Some(bookie)) => {
            let (metadata, stop) = (&node.metadata, &node.stop);
            Some(start_repair(runtime, config, metadata, ledgers, bookie, &advertised, stop))
        }
        (Some(_), None) => {
            let interval = config.repair.replicator_interval;
            let store = Arc::clone(&node.metadata);
            Some(RepairService::watch(runtime, store, interval, &node.stop.signal()))
        }
        (None, _) => None,
    };
    if let Some(repair) = &node.repair {
        node.admin.add_metrics(Arc::new(RepairMetrics(repair.stats())));
    }
    if config.roles.broker
        && let Some(ledgers) = ledgers
    {
        node.broker = Some(start_broker(runtime, config, node, ledgers).await?);
    }
    Ok(())
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

/// The first part to start and the last to end: an operator sees what the others wait for.
async fn start_admin(
    runtime: &Runtime,
    config: &NodeConfig,
    health: &Arc<NodeHealth>,
) -> Result<AdminFrontend, NodeError> {
    let admin_config = AdminConfig {
        has_broker: config.roles.broker,
        ..AdminConfig::new(&config.http_listen, &config.broker.cluster)
    };
    let health = Arc::clone(health) as _;
    let admin = AdminFrontend::start(runtime, health, admin_config).await;
    admin.map_err(|error| NodeError::Listen { address: config.http_listen.clone(), error })
}

async fn start_metadata(
    runtime: &Runtime,
    config: &NodeConfig,
) -> Result<(Metadata, Option<OwnMetadata>), NodeError> {
    if config.roles.metadata {
        let (metadata, own) = OwnMetadata::start(runtime, config).await?;
        return Ok((metadata, Some(own)));
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

/// The node's one client of ledgers, shared by repair and broker: two would draw the same random numbers.
struct LedgerPart {
    bookies: Arc<RegisteredBookies>,
    client: LedgerClient,
}

impl LedgerPart {
    fn start(
        runtime: &Runtime,
        config: &NodeConfig,
        metadata: &Metadata,
        bookie: Option<&Bookie>,
        stop: &Shutdown,
    ) -> Self {
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
        let pool: Arc<dyn BookiePool> = Arc::<RegisteredBookies>::clone(&bookies);
        let store = Arc::clone(metadata);
        let client = LedgerClient::new(runtime.clone(), store, pool, config.ledger.clone());
        Self { bookies, client }
    }
}

fn start_repair(
    runtime: &Runtime,
    config: &NodeConfig,
    metadata: &Metadata,
    ledgers: &LedgerPart,
    bookie: &Bookie,
    advertised: &str,
    stop: &Shutdown,
) -> RepairService {
    tell_damage(runtime, metadata, bookie, &config.repair, stop);
    let parts = RepairParts {
        runtime: runtime.clone(),
        metadata: Arc::clone(metadata),
        ledgers: ledgers.client.clone(),
        bookies: Arc::<RegisteredBookies>::clone(&ledgers.bookies),
        standings: Arc::<RegisteredBookies>::clone(&ledgers.bookies),
        ledger_config: config.ledger.clone(),
        config: config.repair.clone(),
        holder: advertised.to_owned(),
    };
    RepairService::start(parts, &stop.signal())
}

async fn start_broker(
    runtime: &Runtime,
    config: &NodeConfig,
    node: &Node,
    ledgers: LedgerPart,
) -> Result<BrokerPart, NodeError> {
    let metadata = &node.metadata;
    let LedgerPart { bookies, client: ledgers } = ledgers;
    // Before that no topic could be opened; clients would only be told to come back.
    let failing = node.failing();
    let enough = config.ledger.bookies_min(config.broker.quorum);
    node.health.not_ready(&format!("waiting for {enough} bookies that take writes"));
    failing.unless(bookies.wait_for_writable(enough as usize)).await?;
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
    node.admin.add_metrics(Arc::new(ConnectionMetrics(pulsar.counters())));
    let grpc_config = GrpcConfig {
        message_bytes_max: config.message_bytes_max,
        ..GrpcConfig::new(&config.grpc_listen, config.broker.quorum)
    };
    let grpc =
        GrpcFrontend::start(runtime.clone(), broker.clone(), ledgers.clone(), grpc_config).await;
    let grpc = match grpc {
        Ok(grpc) => grpc,
        Err(error) => {
            pulsar.stop().await;
            return Err(NodeError::Listen { address: config.grpc_listen.clone(), error });
        }
    };
    let place = place_of(config, pulsar.local_address(), node.admin.local_address());
    node.admin.set_broker(broker.clone(), place.clone());
    let grpc_port = grpc.local_address().rsplit(':').next().unwrap_or_default();
    let grpc_advertised = config.grpc_advertised.clone();
    let grpc_advertised = grpc_advertised.unwrap_or_else(|| format!("{}:{grpc_port}", place.host));
    let counters = pulsar.counters();
    let addresses =
        BrokerAddresses { pulsar: place.pulsar, http: place.http, grpc: grpc_advertised };
    let joined = broker.join(addresses, Arc::new(move || counters.active()));
    if let Err(failed) = failing.unless(joined).await {
        pulsar.stop().await;
        grpc.stop().await;
        return Err(failed);
    }
    Ok(BrokerPart { broker, ledgers, pulsar, grpc })
}

/// Where others are told to find this broker.
fn place_of(config: &NodeConfig, pulsar_bound: &str, http_bound: &str) -> BrokerPlace {
    let host_of = |address: &str| {
        let address = address.trim_start_matches("pulsar://");
        address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned()
    };
    let port_of = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    let http_of = |host: &str| match &config.http_advertised {
        Some(told) if told.contains("://") => told.clone(),
        Some(told) => format!("http://{told}"),
        None => format!("http://{host}:{}", port_of(http_bound)),
    };
    if let Some(told) = &config.pulsar_advertised {
        let pulsar = match told.contains("://") {
            true => told.clone(),
            false => format!("pulsar://{told}"),
        };
        let host = host_of(told);
        return BrokerPlace { http: http_of(&host), host, pulsar, is_guess: false };
    }
    if !is_any_host(pulsar_bound) {
        let (host, pulsar) = (host_of(pulsar_bound), format!("pulsar://{pulsar_bound}"));
        return BrokerPlace { http: http_of(&host), host, pulsar, is_guess: false };
    }
    // The host by which other nodes reach this one is known if there are any.
    let advertised = config.rpc_advertised.as_deref().filter(|address| !is_any_host(address));
    let host = advertised.map_or_else(|| "localhost".to_owned(), host_of);
    let pulsar = format!("pulsar://{host}:{}", port_of(pulsar_bound));
    tracing::warn!(
        listening = pulsar_bound,
        told = pulsar,
        "listening on every address and none is advertised: a client is told the address by which it is \
         connected, other brokers tell theirs {pulsar}"
    );
    BrokerPlace { http: http_of(&host), host, pulsar, is_guess: true }
}
