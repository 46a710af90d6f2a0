//! HTTP on 8080: administration under Pulsar's paths, statistics, metrics, health. Translates requests to
//! broker calls and what comes back to JSON; decides nothing. Every node has it from its first moment: health
//! and metrics are there at once, the rest when the parts it speaks to have started.

mod aggregate;
mod bookies;
mod cluster;
mod connection;
mod health;
mod listener;
mod lookup;
mod metadata;
mod metrics;
mod namespaces;
mod owner;
mod partitions;
mod parts;
mod paths;
mod peer;
mod refusal;
mod routes;
mod state;
mod statistics;
mod stats_json;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topics;

pub use bookies::{BookieAdmin, BookieRefusal, BookieRow, UnderReplicatedRow};
pub use metadata::{GroupAdmin, GroupRefusal, GroupView, MemberRow};
pub use state::BrokerPlace;

pub(crate) use parts::topic_path;
pub(crate) use peer::exchange_for;
pub(crate) use state::AdminState;

use std::sync::Arc;
use std::time::Duration;

use crate::broker::Broker;
use crate::runtime::{Listener, Runtime, Shutdown};
use crate::telemetry::MetricSource;

/// Settings and limits of the HTTP front end.
#[derive(Clone, Debug)]
pub struct AdminConfig {
    /// `host:port` to listen on; port 0 asks for any.
    pub listen: String,
    /// The cluster's name.
    pub cluster: String,
    /// The node has the role of broker, so that one may be asked for later if not now.
    pub has_broker: bool,
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
    pub fn new(listen: &str, cluster: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            cluster: cluster.to_owned(),
            has_broker: true,
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

/// A running HTTP front end. It stops with its node, or when told to.
pub struct AdminFrontend {
    address: String,
    state: Arc<AdminState>,
    shutdown: Shutdown,
}

impl AdminFrontend {
    /// Listens and serves. Fails if the address cannot be bound.
    pub async fn start(
        runtime: &Runtime,
        health: Arc<dyn Health>,
        config: AdminConfig,
    ) -> std::io::Result<Self> {
        let listener = runtime.network.listen(&config.listen).await?;
        Ok(Self::serve(runtime, listener, AdminState::new(runtime.clone(), health, config)))
    }

    fn serve(runtime: &Runtime, listener: Listener, state: AdminState) -> Self {
        let address = listener.local_address();
        let state = Arc::new(state);
        let shutdown = Shutdown::new();
        let serving =
            listener::serve(runtime.clone(), listener, Arc::clone(&state), shutdown.signal());
        // Runs until told to stop or until the node's tasks end.
        drop(runtime.tasks.spawn("admin listener", serving));
        Self { address, state, shutdown }
    }

    /// A part with figures of its own has started.
    pub fn add_metrics(&self, source: Arc<dyn MetricSource>) {
        self.state.add_source(source);
    }

    /// The cluster's bookies can be asked about from now on.
    pub fn set_bookies(&self, bookies: Arc<dyn BookieAdmin>) {
        self.state.set_bookies(bookies);
    }

    /// This node is a member of a metadata group that can be asked about from now on.
    pub fn set_group(&self, group: Arc<dyn GroupAdmin>) {
        self.state.set_group(group);
    }

    /// The broker can be spoken to from now on; others reach it at `place`.
    pub fn set_broker(&self, broker: Broker, place: BrokerPlace) {
        self.state.set_broker(broker, place);
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
