//! Byte streams: what both runtimes promise, and how simulated links, crashes and half-open ends behave.

use std::io::ErrorKind;
use std::time::Duration;

use seawall::runtime::sim::{LinkSettings, SimNode, World};
use seawall::runtime::{Accepted, ByteStream, Listener, Runtime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::both_conformance::{Place, on_real, on_sim, quick};

const SECOND: Duration = Duration::from_secs(1);

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

async fn bytes_arrive_in_order(place: Place) {
    let network = place.runtime.network.clone();
    let listener = network.listen(&format!("{}:0", place.host)).await.unwrap();
    let address = listener.local_address();
    let echo = place.runtime.tasks.spawn("echo", async move {
        let mut stream = listener.accept().await.unwrap().stream;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&all).await.unwrap();
        stream.shutdown().await.unwrap();
        all.len()
    });
    let mut stream = network.connect(&address).await.unwrap();
    let sent = pattern(700_000);
    stream.write_all(&sent).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    assert!(back == sent);
    assert_eq!(echo.await, Ok(700_000));
}

async fn nobody_listening_is_refused(place: Place) {
    let network = place.runtime.network;
    let listener = network.listen(&format!("{}:0", place.host)).await.unwrap();
    let address = listener.local_address();
    drop(listener);
    let error = network.connect(&address).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

async fn writes_wait_for_a_slow_reader(place: Place) {
    let network = place.runtime.network.clone();
    let listener = network.listen(&format!("{}:0", place.host)).await.unwrap();
    let mut writer = network.connect(&listener.local_address()).await.unwrap();
    let Accepted { stream: mut reader, peer, local } = listener.accept().await.unwrap();
    assert_eq!(local, listener.local_address());
    assert!(peer.contains(':'));
    let clock = place.runtime.clock.clone();
    let much = pattern(64 << 20);
    let limit = Duration::from_millis(300);
    assert!(clock.timeout(limit, writer.write_all(&much)).await.is_err());
    let mut some = vec![0; 100_000];
    reader.read_exact(&mut some).await.unwrap();
    assert!(some == pattern(100_000));
}

async fn a_dropped_end_is_noticed(place: Place) {
    let network = place.runtime.network.clone();
    let listener = network.listen(&format!("{}:0", place.host)).await.unwrap();
    let mut stream = network.connect(&listener.local_address()).await.unwrap();
    let accepted = listener.accept().await.unwrap().stream;
    drop(accepted);
    assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
    let clock = place.runtime.clock.clone();
    let mut failed = false;
    for _ in 0..50 {
        failed |= stream.write_all(b"anybody?").await.is_err();
        clock.sleep(Duration::from_millis(5)).await;
    }
    assert!(failed);
}

#[test]
fn bytes_arrive_in_order_on_both() {
    on_real(bytes_arrive_in_order);
    on_sim(bytes_arrive_in_order);
}

#[test]
fn nobody_listening_is_refused_on_both() {
    on_real(nobody_listening_is_refused);
    on_sim(nobody_listening_is_refused);
}

#[test]
fn writes_wait_for_a_slow_reader_on_both() {
    on_real(writes_wait_for_a_slow_reader);
    World::run(1, quick(), |world| async move {
        let node = world.create_node("subject", "subject");
        let (runtime, host) = (node.runtime(), "subject".to_owned());
        writes_wait_for_a_slow_reader(Place { runtime, folder: "/".into(), host }).await;
    });
}

#[test]
fn a_dropped_end_is_noticed_on_both() {
    on_real(a_dropped_end_is_noticed);
    on_sim(a_dropped_end_is_noticed);
}

struct Pair {
    world: World,
    client: SimNode,
    server: SimNode,
    near: ByteStream,
    far: ByteStream,
    listener: Listener,
}

impl Pair {
    async fn new(world: World) -> Self {
        let (client, server) = (world.create_node("c", "client"), world.create_node("s", "server"));
        let listener = server.runtime().network.listen("server:1").await.unwrap();
        let near = client.runtime().network.connect("server:1").await.unwrap();
        let Accepted { stream: far, peer, .. } = listener.accept().await.unwrap();
        assert!(peer.starts_with("client:"));
        Self { world, client, server, near, far, listener }
    }

    fn runtime(&self) -> Runtime {
        self.client.runtime()
    }
}

/// True if nothing can be read within a virtual minute.
async fn silent(world: &World, stream: &mut ByteStream) -> bool {
    let mut byte = [0];
    tokio::select! {
        biased;
        _ = stream.read(&mut byte) => false,
        () = world.sleep(60 * SECOND) => true,
    }
}

fn with_pair<F: Future<Output = ()>>(property: impl Fn(Pair) -> F) {
    for seed in 0..10 {
        World::run(seed, quick(), |world| async { property(Pair::new(world).await).await });
    }
}

#[test]
fn a_cut_holds_what_is_under_way_until_it_heals() {
    with_pair(|mut pair| async move {
        pair.near.write_all(b"under way").await.unwrap();
        pair.world.cut_one_way(&pair.client, &pair.server);
        assert!(silent(&pair.world, &mut pair.far).await);
        pair.far.write_all(b"one way").await.unwrap();
        let mut back = [0; 7];
        pair.near.read_exact(&mut back).await.unwrap();
        pair.near.write_all(b", still").await.unwrap();
        let connecting = pair.runtime().network;
        let connecting =
            pair.runtime().clock.timeout(60 * SECOND, connecting.connect("server:1")).await;
        assert!(connecting.is_err());
        pair.world.heal(&pair.client, &pair.server);
        let mut all = [0; 16];
        pair.far.read_exact(&mut all).await.unwrap();
        assert_eq!(&all, b"under way, still");
    });
}

#[test]
fn a_crashed_peer_is_silent_until_its_host_is_back() {
    with_pair(|mut pair| async move {
        pair.server.crash();
        assert!(silent(&pair.world, &mut pair.near).await);
        pair.near.write_all(b"hello?").await.unwrap();
        assert!(silent(&pair.world, &mut pair.near).await);
        pair.server.runtime();
        let error = pair.near.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(pair.far.write(b"zombie").await.is_err());
        assert!(pair.listener.accept().await.is_err());
        let refused = pair.runtime().network.connect("server:1").await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn connections_nobody_holds_are_forgotten() {
    with_pair(|pair| async move {
        let Pair { world, client, server, near, far, listener } = pair;
        assert_eq!(world.connection_count(), 1);
        drop((near, far));
        assert_eq!(world.connection_count(), 0);
        let runtime = client.runtime();
        world.cut(&client, &server);
        for _ in 0..20 {
            let connecting = runtime.network.connect("server:1");
            assert!(runtime.clock.timeout(SECOND, connecting).await.is_err());
        }
        assert_eq!(world.connection_count(), 0);
        let connecting = runtime.network.clone();
        let connecting = client.spawn("connect", async move {
            connecting.connect("server:1").await.err().map(|error| error.kind())
        });
        world.sleep(SECOND).await;
        world.reset_streams(&client, &server);
        assert_eq!(connecting.await, Ok(Some(ErrorKind::ConnectionReset)));
        world.heal_all();
        let near = runtime.network.connect("server:1").await.unwrap();
        drop(listener);
        world.sleep(SECOND).await;
        client.crash();
        drop(near);
        world.sleep(SECOND).await;
        assert_eq!(world.connection_count(), 0);
    });
}

#[test]
fn half_open_streams_swallow_what_is_sent() {
    with_pair(|mut pair| async move {
        pair.world.half_open(&pair.server, &pair.client);
        assert!(pair.far.read(&mut [0]).await.is_err());
        pair.near.write_all(b"into the void").await.unwrap();
        assert!(silent(&pair.world, &mut pair.near).await);
    });
}

#[test]
fn stalls_resets_and_slow_links_do_what_they_say() {
    with_pair(|mut pair| async move {
        pair.world.stall_streams(&pair.client, &pair.server);
        pair.near.write_all(b"a").await.unwrap();
        assert!(silent(&pair.world, &mut pair.far).await);
        pair.world.release_streams(&pair.client, &pair.server);
        assert_eq!(pair.far.read_u8().await.unwrap(), b'a');
        let slow = LinkSettings { latency: 5 * SECOND, ..LinkSettings::default() };
        pair.world.set_link(&pair.client, &pair.server, Some(slow));
        let before = pair.world.now();
        pair.near.write_all(b"b").await.unwrap();
        assert_eq!(pair.far.read_u8().await.unwrap(), b'b');
        assert!(pair.world.now() - before >= 5 * SECOND);
        pair.world.reset_streams(&pair.client, &pair.server);
        assert!(pair.near.read(&mut [0]).await.is_err());
        assert!(pair.far.read(&mut [0]).await.is_err());
    });
}

#[test]
fn lost_segments_are_late_and_in_order() {
    with_pair(|mut pair| async move {
        let lossy = LinkSettings { loss_rate: 0.3, ..LinkSettings::default() };
        pair.world.set_link(&pair.client, &pair.server, Some(lossy));
        let mut near = pair.near;
        let sent = pattern(100_000);
        let writing = pair.client.spawn("write", async move {
            near.write_all(&sent).await.unwrap();
            near
        });
        let mut all = vec![0; 100_000];
        pair.far.read_exact(&mut all).await.unwrap();
        assert!(all == pattern(100_000));
        writing.await.unwrap();
    });
}

fn busy_hash(seed: u64) -> (u64, u64) {
    let report = World::run_report(seed, quick(), |world| async move {
        let server = world.create_node("s", "server");
        server.start(|runtime| async move {
            let listener = runtime.network.listen("server:1").await.unwrap();
            while let Ok(Accepted { mut stream, .. }) = listener.accept().await {
                runtime.tasks.spawn("serve", async move {
                    let mut bytes = [0; 64];
                    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
                        if stream.write_all(&bytes[..length]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        let mut clients = Vec::new();
        for number in 0..5 {
            let client = world.create_node("c", &format!("client-{number}"));
            let runtime = client.runtime();
            clients.push(client.spawn("ask", async move {
                let mut stream = runtime.network.connect("server:1").await.unwrap();
                for turn in 0..50 {
                    runtime.clock.sleep(Duration::from_millis(runtime.random.below(20))).await;
                    stream.write_all(&[turn; 64]).await.unwrap();
                    stream.read_exact(&mut [0; 64]).await.unwrap();
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
    });
    assert!(report.output.is_some() && report.event_count > 500);
    (report.event_hash, report.event_count)
}

#[test]
fn the_same_seed_gives_the_same_events() {
    let first: Vec<_> = (0..5).map(busy_hash).collect();
    let second: Vec<_> = (0..5).map(busy_hash).collect();
    assert_eq!(first, second);
    assert!(first.iter().all(|hash| first.iter().filter(|other| *other == hash).count() == 1));
}
