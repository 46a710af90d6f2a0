//! The seam between the command line and `node`: settings in, addresses out.

use super::settings::Settings;
use crate::node::{Node, NodeConfig};
use crate::runtime::Runtime;

/// A node as the command line sees it.
pub(super) struct RunningNode {
    /// `host:port` of the Pulsar port, with the real port.
    pub(super) pulsar_address: String,
    /// `host:port` of the HTTP port, with the real port.
    pub(super) http_address: String,
    /// `host:port` of the gRPC port, with the real port.
    pub(super) grpc_address: String,
    node: Node,
}

impl RunningNode {
    /// Starts a standalone node; the reason if it cannot.
    pub(super) async fn start(runtime: Runtime, settings: &Settings) -> Result<Self, String> {
        let address = |host: &str, port: u16| format!("{host}:{port}");
        let advertised = settings.pulsar.advertised.clone();
        let config = NodeConfig {
            pulsar_listen: address(&settings.pulsar.host, settings.pulsar.port),
            pulsar_advertised: (!advertised.is_empty()).then_some(advertised),
            message_bytes_max: settings.pulsar.message_bytes_max,
            http_listen: address(&settings.http.host, settings.http.port),
            grpc_listen: address(&settings.grpc.host, settings.grpc.port),
            grpc_advertised: (!settings.grpc.advertised.is_empty())
                .then(|| settings.grpc.advertised.clone()),
            bookie: settings.bookie.config(&settings.data),
            ledger: settings.ledger.config(),
            broker: settings.broker.config(),
            ..NodeConfig::standalone(settings.data.clone())
        };
        let node = Node::start(runtime, config).await.map_err(|error| error.to_string())?;
        let shown = |address: Option<&str>| address.unwrap_or_default().to_owned();
        Ok(Self {
            pulsar_address: shown(node.pulsar_address()),
            http_address: shown(node.http_address()),
            grpc_address: shown(node.grpc_address()),
            node,
        })
    }

    /// Completes with the reason when the node can serve no longer.
    pub(super) async fn failed(&self) -> String {
        self.node.failed().await
    }

    /// Stops in order.
    pub(super) async fn stop(self) {
        self.node.stop().await;
    }
}
