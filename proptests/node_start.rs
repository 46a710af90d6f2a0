//! A start that fails half way leaves nothing behind, and a node bound to every address tells each client the
//! one by which it came.

use seawall::bookie::BookieConfig;
use seawall::client::{ClientOptions, PulsarClient};
use seawall::node::{Node, NodeConfig, NodeError};
use seawall::runtime::real;

use crate::bookie_model::{block_on, new_folder};

fn config(folder: &std::path::Path, pulsar: &str, http: &str) -> NodeConfig {
    NodeConfig {
        pulsar_listen: pulsar.to_owned(),
        http_listen: http.to_owned(),
        grpc_listen: "127.0.0.1:0".to_owned(),
        bookie: BookieConfig {
            journal_file_bytes: 4 * 1024 * 1024,
            write_cache_bytes: 4 * 1024 * 1024,
            entry_log_bytes: 8 * 1024 * 1024,
            free_space_low_bytes: 0,
            ..BookieConfig::below(folder)
        },
        ..NodeConfig::standalone(folder.to_owned())
    }
}

#[test]
fn a_start_that_fails_half_way_stops_what_had_started() {
    block_on(async {
        let runtime = real::runtime();
        let folder = new_folder(&runtime).await;
        let taken = runtime.network.listen("127.0.0.1:0").await.expect("a port");
        // Two of the three ports can be had, the last one cannot.
        let free = runtime.network.listen("127.0.0.1:0").await.expect("a port");
        let pulsar = free.local_address();
        drop(free);
        let refused = config(&folder, &pulsar, &taken.local_address());
        let failed = Box::pin(Node::start(runtime.clone(), refused)).await;
        assert!(matches!(failed, Err(NodeError::Listen { .. })), "the HTTP port is taken");
        drop(taken);
        // The same folder and the same Pulsar port: neither is held any more.
        let node = Box::pin(Node::start(runtime.clone(), config(&folder, &pulsar, "127.0.0.1:0")));
        node.await.expect("started").stop().await;

        let node = Node::start(runtime.clone(), config(&folder, "0.0.0.0:0", "0.0.0.0:0"));
        let node = Box::pin(node).await.expect("started");
        let port = node.pulsar_address().and_then(|address| address.rsplit(':').next());
        let reached = format!("127.0.0.1:{}", port.expect("a port"));
        let client = PulsarClient::connect(&runtime, &reached, ClientOptions::default());
        let client = client.await.expect("connected");
        assert_eq!(client.lookup("t").await.expect("found"), reached);
        client.close().await;
        node.stop().await;
        runtime.disk.remove_directory(&folder).await.expect("removed");
    });
}
