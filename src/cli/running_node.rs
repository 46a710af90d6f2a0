//! The seam between the command line and `node`: settings in, addresses out.

use super::settings::Settings;
use crate::runtime::Runtime;

/// A node as the command line sees it.
pub(super) struct RunningNode {
    /// `host:port` of the Pulsar port, with the real port.
    pub(super) pulsar_address: String,
    /// `host:port` of the HTTP port, with the real port.
    pub(super) http_address: String,
}

impl RunningNode {
    /// Starts a standalone node; the reason if it cannot.
    pub(super) async fn start(_runtime: Runtime, settings: &Settings) -> Result<Self, String> {
        let bookie = settings.bookie.config(&settings.data);
        let (ledger, broker) = (settings.ledger.config(), settings.broker.config());
        tracing::debug!(?bookie, ?ledger, ?broker, "settings");
        // Comes with the assembly of nodes.
        Err("this build has no node in it yet".to_owned())
    }

    /// Completes with the reason when the node can serve no longer.
    pub(super) async fn failed(&self) -> String {
        std::future::pending().await
    }

    /// Stops in order.
    pub(super) async fn stop(self) {}
}
