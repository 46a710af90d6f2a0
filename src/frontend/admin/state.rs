//! What request handlers may use: what the node knows of itself, and its parts as they start.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use http::StatusCode;

use super::refusal::Refusal;
use super::{AdminConfig, BookieAdmin, GroupAdmin, Health, listener};
use crate::broker::Broker;
use crate::runtime::Runtime;
use crate::telemetry::MetricSource;

type Sources = Vec<Arc<dyn MetricSource>>;

/// Where clients and other brokers find this broker.
#[derive(Clone, Debug)]
pub struct BrokerPlace {
    /// The host alone.
    pub host: String,
    /// `pulsar://host:port`.
    pub pulsar: String,
    /// `http://host:port`.
    pub http: String,
    /// Nobody said: a client is told the host by which it is connected instead.
    pub is_guess: bool,
}

/// What every request handler may use.
pub(crate) struct AdminState {
    pub(crate) runtime: Runtime,
    pub(crate) health: Arc<dyn Health>,
    pub(crate) config: AdminConfig,
    pub(crate) counters: listener::Counters,
    sources: Mutex<Sources>,
    bookies: OnceLock<Arc<dyn BookieAdmin>>,
    group: OnceLock<Arc<dyn GroupAdmin>>,
    broker: OnceLock<(Broker, BrokerPlace)>,
}

impl AdminState {
    pub(crate) fn new(runtime: Runtime, health: Arc<dyn Health>, config: AdminConfig) -> Self {
        Self {
            runtime,
            health,
            config,
            counters: listener::Counters::default(),
            sources: Mutex::default(),
            bookies: OnceLock::new(),
            group: OnceLock::new(),
            broker: OnceLock::new(),
        }
    }

    pub(crate) fn add_source(&self, source: Arc<dyn MetricSource>) {
        self.locked_sources().push(source);
    }

    pub(crate) fn set_bookies(&self, bookies: Arc<dyn BookieAdmin>) {
        // A node tells its parts once.
        let _ = self.bookies.set(bookies);
    }

    pub(crate) fn set_group(&self, group: Arc<dyn GroupAdmin>) {
        let _ = self.group.set(group);
    }

    pub(crate) fn set_broker(&self, broker: Broker, place: BrokerPlace) {
        let _ = self.broker.set((broker, place));
    }

    fn locked_sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Parts with figures of their own: bookie, connections, repair.
    pub(crate) fn sources(&self) -> Sources {
        self.locked_sources().clone()
    }

    /// The bookies of the cluster.
    pub(crate) fn bookies(&self) -> Result<&dyn BookieAdmin, Refusal> {
        match self.bookies.get() {
            Some(bookies) => Ok(bookies.as_ref()),
            None => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the node is starting")),
        }
    }

    /// The metadata group, by its member here.
    pub(crate) fn group(&self) -> Result<&dyn GroupAdmin, Refusal> {
        let none =
            || Refusal::missing("this node is no member of a metadata group; ask one that is");
        self.group.get().map(AsRef::as_ref).ok_or_else(none)
    }

    /// The broker, once it serves.
    pub(crate) fn broker(&self) -> Result<&Broker, Refusal> {
        self.serving().map(|(broker, _)| broker)
    }

    /// Where others find the broker.
    pub(crate) fn place(&self) -> Result<&BrokerPlace, Refusal> {
        self.serving().map(|(_, place)| place)
    }

    fn serving(&self) -> Result<&(Broker, BrokerPlace), Refusal> {
        match self.broker.get() {
            Some(serving) => Ok(serving),
            None if self.config.has_broker => {
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the broker is starting"))
            }
            None => Err(Refusal::missing("this node is no broker; ask one that is")),
        }
    }
}
