//! The metadata store and rpc in the simulator: power losses, crashes, pauses and cut links, while clients
//! keep writing. Nothing acknowledged is lost, counters never repeat, watchers end where the store is,
//! and a seed run twice gives the same events.
#![allow(
    clippy::disallowed_methods,
    reason = "each run of an equal seed needs a thread of its own"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::{
    Expect, Metadata, MetadataError, MetadataService, RemoteMetadata, RemoteMetadataConfig,
    Revision, SingleNodeConfig, SingleNodeMetadata, WatchEvent,
};
use seawall::rpc::{Routes, ServerConfig, serve};
use seawall::runtime::sim::{DiskSettings, SimNode, World, WorldSettings};
use seawall::runtime::{Runtime, Shutdown};

const ADDRESS: &str = "meta:9090";

/// A metadata node: the store served until the node dies.
async fn metadata_node(runtime: Runtime) {
    let config =
        SingleNodeConfig { log_bytes: 2000, ..SingleNodeConfig::below(Path::new("/data")) };
    let store = SingleNodeMetadata::start(runtime.clone(), config).await.unwrap();
    let listener = runtime.network.listen(ADDRESS).await.unwrap();
    let routes = Routes::new().with(MetadataService::server(Arc::new(store)));
    let never = Shutdown::new();
    serve(runtime, listener, routes, ServerConfig::default(), never.signal()).await;
}

fn client(runtime: &Runtime) -> Metadata {
    let config = RemoteMetadataConfig {
        call_timeout: Duration::from_secs(2),
        give_up: Duration::from_secs(4),
        ..RemoteMetadataConfig::default()
    };
    Arc::new(RemoteMetadata::new(runtime.clone(), &[ADDRESS.to_owned()], config))
}

#[derive(Default)]
struct Seen {
    acknowledged: u64,
    unknown: u64,
    numbers: BTreeSet<u64>,
    watched: Option<(u64, Revision)>,
}

fn number_of(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// One writer counts a key upwards by compare-and-set, and draws numbers.
async fn write(runtime: Runtime, seen: Arc<Mutex<Seen>>, until: Duration) {
    let metadata = client(&runtime);
    let end = runtime.clock.now() + until;
    let (mut acknowledged, mut tried) = (0, 0);
    while runtime.clock.now() < end {
        let Ok(found) = metadata.get("/count").await else { continue };
        let (value, expect) = match &found {
            Some(found) => (number_of(&found.value), Expect::Version(found.version)),
            None => (0, Expect::Absent),
        };
        assert!(value >= acknowledged, "acknowledged {acknowledged}, read {value}");
        assert!(value <= tried, "tried {tried}, read {value}");
        tried = value + 1;
        let text = Bytes::from(tried.to_string());
        match metadata.put("/count", text, expect, None).await {
            Ok(_) => {
                acknowledged = tried;
                seen.lock().unwrap().acknowledged = tried;
            }
            Err(MetadataError::OutcomeUnknown(_)) => seen.lock().unwrap().unknown += 1,
            Err(MetadataError::Unavailable(_)) => {}
            // A change of unknown outcome may still arrive after the read.
            Err(MetadataError::VersionMismatch { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        if let Ok(number) = metadata.next_number("/n").await {
            let mut seen = seen.lock().unwrap();
            assert!(seen.numbers.last().is_none_or(|last| *last < number), "{number} came late");
            seen.numbers.insert(number);
        }
        runtime.clock.sleep(Duration::from_millis(20)).await;
    }
}

/// Watches the key; versions only grow, within a watch and from one to the next.
async fn watch(runtime: Runtime, seen: Arc<Mutex<Seen>>) {
    let metadata = client(&runtime);
    loop {
        let Ok(mut watch) = metadata.watch("/count").await else { continue };
        let mut is_initial = true;
        while let Some(events) = watch.next().await {
            is_initial &= !events.is_empty();
            for event in events {
                let WatchEvent::Put { value, .. } = event else { panic!("deleted") };
                let now = (number_of(&value.value), value.version);
                let mut seen = seen.lock().unwrap();
                if let Some(before) = seen.watched {
                    assert!(before.1 <= now.1, "{before:?} then {now:?}");
                    // Between two changes of one watch none is missing.
                    assert!(is_initial || before.1 == now.1 || before.0 + 1 == now.0);
                }
                seen.watched = Some(now);
            }
        }
    }
}

async fn nemesis(world: &World, meta: &SimNode, writer: &SimNode) {
    for round in 0..8 {
        world.sleep(Duration::from_millis(500 + world.random("pause", round) % 3000)).await;
        match world.random("fault", round) % 5 {
            0 | 1 => {
                meta.power_loss();
            }
            2 => {
                meta.crash();
            }
            3 => {
                world.cut(meta, writer);
                world.sleep(Duration::from_millis(world.random("cut", round) % 12_000)).await;
                world.heal_all();
            }
            _ => {
                meta.pause();
                world.sleep(Duration::from_millis(world.random("pause", round) % 12_000)).await;
                meta.resume();
            }
        }
        world.sleep(Duration::from_millis(world.random("down", round) % 2000)).await;
        meta.start(metadata_node);
    }
}

fn run(seed: u64) -> (u64, u64) {
    // Slow syncs: an answer that does not wait for its sync is far ahead of it when the power goes.
    let disk = DiskSettings { sync_latency: Duration::from_millis(30), ..Default::default() };
    let time_limit = Duration::from_secs(600);
    let settings = WorldSettings { time_limit, disk, ..Default::default() };
    World::run(seed, settings, |world| async move {
        let meta = world.create_node("meta", "meta");
        let writer = world.create_node("writer", "writer");
        let watcher = world.create_node("watcher", "watcher");
        meta.start(metadata_node);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let runtime = writer.runtime();
        let until = Duration::from_secs(45);
        let written = writer.spawn("writer", write(runtime, Arc::clone(&seen), until));
        watcher.spawn("watcher", watch(watcher.runtime(), Arc::clone(&seen)));
        nemesis(&world, &meta, &writer).await;
        written.await.unwrap();
        world.sleep(Duration::from_secs(15)).await;
        let last = client(&writer.runtime());
        let check = async move { last.get("/count").await.unwrap().unwrap() };
        let found = writer.spawn("check", check).await.unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen.acknowledged > 100, "only {} acknowledged", seen.acknowledged);
        assert!(number_of(&found.value) >= seen.acknowledged);
        assert_eq!(seen.watched, Some((number_of(&found.value), found.version)), "the watch lags");
        (seen.acknowledged, world.event_hash())
    })
}

#[test]
fn nothing_acknowledged_is_lost_and_the_watch_catches_up() {
    for seed in 0..3 {
        run(seed);
    }
}

#[test]
fn a_seed_gives_the_same_events_twice() {
    for seed in 100..101 {
        let [first, second] = [0, 1].map(|_| std::thread::spawn(move || run(seed)).join().unwrap());
        assert_eq!(first, second, "seed {seed}");
    }
}
