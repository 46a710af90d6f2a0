//! A whole node on real files and sockets, and a Pulsar front end over its broker with limits small enough
//! to be reached.

use std::time::Duration;

use seawall::bookie::BookieConfig;
use seawall::broker::Broker;
use seawall::frontend::pulsar::{PulsarConfig, PulsarFrontend};
use seawall::node::{Node, NodeConfig};
use seawall::runtime::{Runtime, real};

use crate::bookie_model::{block_on, new_folder};

/// What a test is given.
pub struct Place {
    pub runtime: Runtime,
    pub node: Node,
    /// The node's broker.
    pub broker: Broker,
    /// The second Pulsar port, with small limits.
    pub front_end: PulsarFrontend,
}

/// Runs a test on a node of its own, which is stopped in good order at the end.
pub fn on_node(test: impl AsyncFnOnce(&Place)) {
    block_on(async {
        let runtime = real::runtime();
        let folder = new_folder(&runtime).await;
        let config = NodeConfig {
            pulsar_listen: "127.0.0.1:0".to_owned(),
            http_listen: "127.0.0.1:0".to_owned(),
            grpc_listen: "127.0.0.1:0".to_owned(),
            bookie: BookieConfig {
                journal_file_bytes: 4 * 1024 * 1024,
                write_cache_bytes: 4 * 1024 * 1024,
                entry_log_bytes: 8 * 1024 * 1024,
                free_space_low_bytes: 0,
                ..BookieConfig::below(&folder)
            },
            ..NodeConfig::standalone(folder.clone())
        };
        let node = Box::pin(Node::start(runtime.clone(), config)).await.expect("started");
        let broker = node.broker().expect("a broker").clone();
        let config = PulsarConfig {
            max_message_size: 256 * 1024,
            handshake_limit: Duration::from_millis(300),
            outbound_bytes_max: 64 * 1024,
            publishes_max: 50,
            producers_max: 20,
            consumers_max: 20,
            ..PulsarConfig::new("127.0.0.1:0")
        };
        let front_end = PulsarFrontend::start(runtime.clone(), broker.clone(), config);
        let front_end = front_end.await.expect("listening");
        let place = Place { runtime: runtime.clone(), node, broker, front_end };
        test(&place).await;
        place.front_end.stop().await;
        place.node.stop().await;
        runtime.disk.remove_directory(&folder).await.expect("removed");
    });
}
