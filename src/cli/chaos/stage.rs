//! This machine as the place of a run: real processes, real time, the operating system's sockets.

use std::sync::Arc;
use std::time::Duration;

use super::nemesis::Nemesis;
use crate::cli::local_cluster::LocalCluster;
use crate::domain::Instant;
use crate::runtime::Runtime;
use crate::simulator::clients::{Machine, Stage};
use crate::simulator::history::HistoryClock;

/// See the module.
pub(super) struct RealStage {
    pub(super) runtime: Runtime,
    pub(super) cluster: LocalCluster,
    pub(super) nemesis: Nemesis,
    /// The brokers' addresses behind their proxies.
    pub(super) service_url: String,
    /// The metadata nodes' addresses behind theirs.
    metadata: Vec<String>,
    began: Instant,
}

impl RealStage {
    pub(super) fn new(
        runtime: &Runtime,
        cluster: LocalCluster,
        nemesis: Nemesis,
        service_url: String,
        metadata: Vec<String>,
    ) -> Self {
        let began = runtime.clock.now();
        Self { runtime: runtime.clone(), cluster, nemesis, service_url, metadata, began }
    }

    /// Ends every fault.
    pub(super) fn heal(&mut self) {
        let now = self.now();
        self.nemesis.heal(&mut self.cluster, now);
    }
}

impl Stage for RealStage {
    fn now(&self) -> Duration {
        self.runtime.clock.now().since(self.began)
    }

    async fn sleep(&self, duration: Duration) {
        self.runtime.clock.sleep(duration).await;
    }

    fn look_after(&mut self) {
        let now = self.now();
        self.nemesis.tick(&mut self.cluster, now);
    }

    fn all_serve(&mut self) -> bool {
        self.nemesis.all_run(&mut self.cluster)
    }

    fn brokers(&self) -> String {
        self.service_url.clone()
    }

    fn metadata_nodes(&self) -> Vec<String> {
        self.metadata.clone()
    }

    /// Producers and consumers draw from labels of their own: one runtime serves both.
    fn runtime(&self, _machine: Machine) -> Runtime {
        self.runtime.clone()
    }

    fn clock(&self) -> HistoryClock {
        let (clock, began) = (Arc::new(self.runtime.clock.clone()), self.began);
        HistoryClock::new(move || clock.now().since(began))
    }
}
