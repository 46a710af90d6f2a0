//! Channel and server against each other on loopback, with the metadata service as the load.

use std::time::Duration;

use super::generated::metadata::{GetRequest, metadata_client};
use super::{Channel, ChannelConfig, ChannelError, PROTOCOL, Routes, ServerConfig, serve};
use crate::runtime::{Shutdown, real};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_without_listener_backs_off() {
    let runtime = real::runtime();
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_address();
    drop(listener);
    let channel = Channel::new(runtime, &address, ChannelConfig::default());
    assert!(matches!(channel.ready().await, Err(ChannelError::Connect { .. })));
    assert!(matches!(channel.ready().await, Err(ChannelError::BackingOff { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_peer_runs_into_the_deadline() {
    let runtime = real::runtime();
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let request = || GetRequest { key: "/a".to_owned() };
    let config = ChannelConfig {
        keep_alive_interval: Duration::from_millis(100),
        keep_alive_timeout: Duration::from_millis(100),
        ..ChannelConfig::default()
    };
    let channel = Channel::new(runtime.clone(), &listener.local_address(), config);
    let accepting = listener.clone();
    let accepted = runtime.tasks.spawn("silent peer", async move { accepting.accept().await });
    channel.ready().await.unwrap();
    let silent = accepted.await.unwrap().unwrap();
    // Without a deadline of its own the call ends because pings are not answered; it would hang otherwise.
    let mut client = metadata_client::MetadataClient::new(channel);
    client.get(request()).await.unwrap_err();
    // Pings come far later than the deadline here, however busy the machine is.
    let address = listener.local_address();
    let channel = Channel::new(runtime.clone(), &address, ChannelConfig::default());
    let mut client = metadata_client::MetadataClient::new(channel.clone());
    let call = client.get(request());
    let status = channel.bounded(Duration::from_millis(50), call).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_service_is_refused_and_a_stop_ends_serving() {
    let runtime = real::runtime();
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let channel =
        Channel::new(runtime.clone(), &listener.local_address(), ChannelConfig::default());
    let stop = Shutdown::new();
    let server = runtime.tasks.spawn(
        "server",
        serve(runtime.clone(), listener, Routes::new(), ServerConfig::default(), stop.signal()),
    );
    let mut client = metadata_client::MetadataClient::new(channel);
    let status = client.get(GetRequest { key: "/a".to_owned() }).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    stop.trigger();
    server.await.unwrap();
    assert!(client.get(GetRequest { key: "/a".to_owned() }).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_protocol_is_refused_by_both_numbers() {
    let runtime = real::runtime();
    let listener = runtime.network.listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_address();
    let stop = Shutdown::new();
    let server = runtime.tasks.spawn(
        "server",
        serve(runtime.clone(), listener, Routes::new(), ServerConfig::default(), stop.signal()),
    );
    for (protocol, code) in
        [(PROTOCOL, tonic::Code::Unimplemented), (PROTOCOL + 1, tonic::Code::FailedPrecondition)]
    {
        let config = ChannelConfig { protocol, ..ChannelConfig::default() };
        let channel = Channel::new(runtime.clone(), &address, config);
        let mut client = metadata_client::MetadataClient::new(channel);
        let status = client.get(GetRequest { key: "/a".to_owned() }).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        if protocol > PROTOCOL {
            let both = format!("version {protocol}, this node understands up to {PROTOCOL}");
            assert!(status.message().contains(&both), "{status}");
        }
    }
    stop.trigger();
    server.await.unwrap();
}
