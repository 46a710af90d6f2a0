//! The contract over gRPC on loopback: the same answers as in the same process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{
    Expect, MetadataClient, MetadataError, MetadataService, RemoteMetadata, RemoteMetadataConfig,
    Revision, SingleNodeConfig, SingleNodeMetadata, WatchEvent,
};
use crate::rpc::{Routes, ServerConfig, serve};
use crate::runtime::{Runtime, Shutdown, Task, real};

struct Server {
    store: SingleNodeMetadata,
    address: String,
    stop: Shutdown,
    task: Task<()>,
}

async fn serve_store(runtime: &Runtime, data: &std::path::Path, address: &str) -> Server {
    let store =
        SingleNodeMetadata::start(runtime.clone(), SingleNodeConfig::below(data)).await.unwrap();
    let listener = runtime.network.listen(address).await.unwrap();
    let address = listener.local_address();
    let routes = Routes::new().with(MetadataService::server(Arc::new(store.clone())));
    let stop = Shutdown::new();
    let config = ServerConfig { drain: Duration::from_millis(50), ..ServerConfig::default() };
    let served = serve(runtime.clone(), listener, routes, config, stop.signal());
    let task = runtime.tasks.spawn("server", served);
    Server { store, address, stop, task }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_over_the_wire() {
    let runtime = real::runtime();
    let data = std::env::temp_dir().join(format!("seawall-metadata-rpc-{}", std::process::id()));
    runtime.disk.remove_directory(&data).await.unwrap();
    let server = serve_store(&runtime, &data, "127.0.0.1:0").await;
    let config = RemoteMetadataConfig { give_up: Duration::from_millis(300), ..Default::default() };
    let remote =
        RemoteMetadata::new(runtime.clone(), std::slice::from_ref(&server.address), config);

    let mut watch = remote.watch("/w/").await.unwrap();
    assert!(watch.next().await.unwrap().is_empty());
    let value = Bytes::from_static(b"1");
    let version = remote.put("/w/a", value.clone(), Expect::Absent, None).await.unwrap();
    assert_eq!(version, Revision(1));
    assert!(matches!(
        &watch.next().await.unwrap()[..],
        [WatchEvent::Put { key, .. }] if key == "/w/a"
    ));
    assert_eq!(
        remote.put("/w/a", value.clone(), Expect::Absent, None).await,
        Err(MetadataError::VersionMismatch {
            key: "/w/a".to_owned(),
            expected: Expect::Absent,
            found: Some(version),
        })
    );
    assert_eq!(remote.get("/w/a").await.unwrap().unwrap().value, value);
    assert_eq!(remote.get("/w/b").await, Ok(None));
    assert!(matches!(remote.get("bad").await, Err(MetadataError::Refused(_))));
    assert!(matches!(remote.list("/", None, 1001).await, Err(MetadataError::Refused(_))));
    assert_eq!(remote.next_number("/n").await, Ok(1));
    assert_eq!(remote.next_number("/n").await, Ok(2));

    let big = Bytes::from(vec![7; 900 * 1024]);
    for number in 0..5 {
        remote.put(&format!("/big/{number}"), big.clone(), Expect::Any, None).await.unwrap();
    }
    assert_eq!(remote.list("/big/", Some("/big/0"), 100).await.unwrap().len(), 4);

    let session = remote.open_session(Duration::from_secs(60)).await.unwrap();
    remote.put("/w/s", value.clone(), Expect::Absent, Some(session)).await.unwrap();
    remote.keep_alive(session).await.unwrap();
    remote.close_session(session).await.unwrap();
    assert_eq!(remote.keep_alive(session).await, Err(MetadataError::SessionExpired));
    assert_eq!(remote.get("/w/s").await, Ok(None));
    remote.delete("/w/a", Expect::Version(version)).await.unwrap();

    server.stop.trigger();
    server.task.await.unwrap();
    server.store.stop().await;
    while watch.next().await.is_some() {}
    let lost = remote.put("/w/z", value.clone(), Expect::Any, None).await;
    assert!(
        matches!(lost, Err(MetadataError::Unavailable(_) | MetadataError::OutcomeUnknown(_))),
        "{lost:?}"
    );
    assert!(matches!(remote.get("/w/z").await, Err(MetadataError::Unavailable(_))));

    // The same client goes on once the node is back at its address.
    let server = serve_store(&runtime, &data, &server.address).await;
    let config = RemoteMetadataConfig::default();
    let patient =
        RemoteMetadata::new(runtime.clone(), std::slice::from_ref(&server.address), config);
    assert_eq!(patient.list("/big/", None, 100).await.unwrap().len(), 5);
    server.stop.trigger();
    server.task.await.unwrap();
    server.store.stop().await;
    runtime.disk.remove_directory(&data).await.unwrap();
}
