//! HTTP on 8080: administration under Pulsar's paths, statistics, metrics, health. Translates requests to
//! broker calls and what comes back to JSON; decides nothing.

mod aggregate;
mod bookies;
mod cluster;
mod connection;
mod health;
mod listener;
mod lookup;
mod metrics;
mod namespaces;
mod owner;
mod partitions;
mod parts;
mod paths;
mod peer;
mod refusal;
mod routes;
mod statistics;
mod stats_json;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topics;

pub use bookies::{BookieAdmin, BookieRefusal, BookieRow, UnderReplicatedRow};

use std::sync::Arc;
use std::time::Duration;

use crate::broker::Broker;
use crate::runtime::{Runtime, Shutdown};
use crate::telemetry::MetricSource;

/// Settings and limits of the HTTP front end.
#[derive(Clone, Debug)]
pub struct AdminConfig {
    /// `host:port` to listen on; port 0 asks for any.
    pub listen: String,
    /// The host clients are told to use.
    pub advertised_host: String,
    /// The Pulsar service URL clients are told to use, `pulsar://host:port`.
    pub pulsar_url: String,
    /// Clients are told the host by which they are connected instead.
    pub host_of_connection: bool,
    /// The cluster's name.
    pub cluster: String,
    /// Open connections; one more is closed at once.
    pub connections_max: usize,
    /// Bytes of a request's line and headers; a longer one is answered 431.
    pub header_bytes_max: usize,
    /// Bytes of a request's body; a longer one is answered 413.
    pub body_bytes_max: usize,
    /// A connection without a complete request, or that does not take its answer, is closed after this.
    pub idle_limit: Duration,
    /// A request, body included, that is not answered within this gets 503; what it asked may still happen.
    pub request_limit: Duration,
    /// Loaded topics with metric series of their own; of the rest only sums are shown.
    pub topic_series_max: usize,
}

impl AdminConfig {
    /// Defaults for an address.
    pub fn new(listen: &str, advertised_host: &str, pulsar_url: &str, cluster: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            advertised_host: advertised_host.to_owned(),
            pulsar_url: pulsar_url.to_owned(),
            host_of_connection: false,
            cluster: cluster.to_owned(),
            connections_max: 256,
            header_bytes_max: 64 * 1024,
            body_bytes_max: 1024 * 1024,
            idle_limit: Duration::from_secs(30),
            request_limit: Duration::from_secs(60),
            topic_series_max: 10_000,
        }
    }
}

/// Port to the node's own opinion of itself; `node` fills it in.
pub trait Health: Send + Sync {
    /// `Ok` when the node serves, else why not, in words for an operator.
    fn ready(&self) -> Result<(), String>;
}

/// What the front end asks of its node besides the broker.
#[derive(Clone)]
pub struct AdminPorts {
    /// Whether the node serves.
    pub health: Arc<dyn Health>,
    /// Parts with figures of their own: bookie, connections.
    pub metrics: Vec<Arc<dyn MetricSource>>,
    /// The bookies of the cluster.
    pub bookies: Arc<dyn BookieAdmin>,
}

/// What every request handler may use.
pub(crate) struct AdminState {
    runtime: Runtime,
    broker: Broker,
    ports: AdminPorts,
    config: AdminConfig,
    /// `http://host:port` with the port really bound.
    web_url: String,
    counters: listener::Counters,
}

/// A running HTTP front end. It stops with its node, or when told to.
pub struct AdminFrontend {
    address: String,
    web_url: String,
    shutdown: Shutdown,
}

impl AdminFrontend {
    /// Listens and serves. Fails if the address cannot be bound.
    pub async fn start(
        runtime: Runtime,
        broker: Broker,
        ports: AdminPorts,
        config: AdminConfig,
    ) -> std::io::Result<Self> {
        let listener = runtime.network.listen(&config.listen).await?;
        let address = listener.local_address();
        let port = address.rsplit(':').next().unwrap_or_default();
        let web_url = format!("http://{}:{port}", config.advertised_host);
        let counters = listener::Counters::default();
        let told = web_url.clone();
        let state = Arc::new(AdminState {
            runtime: runtime.clone(),
            broker,
            ports,
            config,
            web_url,
            counters,
        });
        let shutdown = Shutdown::new();
        let serving = listener::serve(runtime.clone(), listener, state, shutdown.signal());
        // Runs until told to stop or until the node's tasks end.
        drop(runtime.tasks.spawn("admin listener", serving));
        Ok(Self { address, web_url: told, shutdown })
    }

    /// `http://host:port` as clients and other brokers are told.
    pub fn web_url(&self) -> &str {
        &self.web_url
    }

    /// The address bound, with the real port.
    pub fn local_address(&self) -> &str {
        &self.address
    }

    /// Accepts nothing more and closes every connection.
    pub fn stop(&self) {
        self.shutdown.trigger();
    }
}
