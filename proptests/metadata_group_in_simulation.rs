//! A metadata group of three and five members in the simulator, over real gRPC and simulated disks: power
//! losses, crashes, pauses and cut links, while clients count a key upwards by compare-and-set. Whatever was
//! acknowledged is read by everyone who asks afterwards; numbers drawn never repeat; a session ends only
//! when nobody keeps it; in the end all members hold the same state, and a seed run twice is the same run.
#![allow(
    clippy::disallowed_methods,
    reason = "each run of an equal seed needs a thread of its own"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use seawall::metadata::consensus::{MemberId, Membership, Role};
use seawall::metadata::{
    Expect, MemberLimits, MembersService, MembershipAdmin, Metadata, MetadataError,
    MetadataService, RemoteMetadata, RemoteMetadataConfig, ReplicatedConfig, ReplicatedMetadata,
    WatchEvent,
};
use seawall::rpc::{Routes, ServerConfig, serve};
use seawall::runtime::sim::{SimNode, World, WorldSettings};
use seawall::runtime::{Runtime, Shutdown};

type Handles = Arc<Mutex<BTreeMap<u64, ReplicatedMetadata>>>;

fn address(member: u64) -> String {
    format!("meta-{member}:9090")
}

fn founders(members: u64) -> Membership {
    Membership::of_voters((1..=members).map(|member| (MemberId(member), address(member))))
}

/// A member, served until its node dies.
async fn member(runtime: Runtime, id: u64, founders: Membership, handles: Handles) {
    let mut config = ReplicatedConfig::below(Path::new("/data"), MemberId(id), founders);
    config.limits = MemberLimits { log_bytes: 4000, log_kept: 5, snapshot_part: 700 };
    let store = ReplicatedMetadata::start(runtime.clone(), config).await.unwrap();
    handles.lock().unwrap().insert(id, store.clone());
    let listener = runtime.network.listen(&address(id)).await.unwrap();
    let routes = Routes::new()
        .with(store.service())
        .with(MembersService::server(Some(store.clone())))
        .with(MetadataService::server(Arc::new(store)));
    let never = Shutdown::new();
    serve(runtime, listener, routes, ServerConfig::default(), never.signal()).await;
}

fn client(runtime: &Runtime, members: u64) -> Metadata {
    let config = RemoteMetadataConfig {
        call_timeout: Duration::from_secs(1),
        give_up: Duration::from_secs(4),
        ..RemoteMetadataConfig::default()
    };
    let addresses: Vec<String> = (1..=members).map(address).collect();
    Arc::new(RemoteMetadata::new(runtime.clone(), &addresses, config))
}

#[derive(Default)]
struct Seen {
    /// The highest count acknowledged to anyone, or read by anyone.
    floor: u64,
    tried: u64,
    acknowledged: u64,
    unknown: u64,
    numbers: BTreeSet<u64>,
    watched: u64,
}

fn number_of(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

async fn count(metadata: Metadata, seen: Arc<Mutex<Seen>>, runtime: Runtime, until: Duration) {
    let end = runtime.clock.now() + until;
    while runtime.clock.now() < end {
        let floor = seen.lock().unwrap().floor;
        let Ok(found) = metadata.get("/count").await else { continue };
        let (value, expect) = match &found {
            Some(found) => (number_of(&found.value), Expect::Version(found.version)),
            None => (0, Expect::Absent),
        };
        {
            let mut seen = seen.lock().unwrap();
            assert!(value >= floor, "{floor} was acknowledged before, {value} was read");
            assert!(value <= seen.tried, "{value} was read, nobody tried it");
            seen.floor = seen.floor.max(value);
            seen.tried = seen.tried.max(value + 1);
        }
        let text = Bytes::from((value + 1).to_string());
        match metadata.put("/count", text, expect, None).await {
            Ok(_) => {
                let mut seen = seen.lock().unwrap();
                seen.floor = seen.floor.max(value + 1);
                seen.acknowledged += 1;
            }
            Err(MetadataError::OutcomeUnknown(_)) => seen.lock().unwrap().unknown += 1,
            Err(_) => {}
        }
        if let Ok(number) = metadata.next_number("/numbers").await {
            assert!(seen.lock().unwrap().numbers.insert(number), "{number} was drawn twice");
        }
    }
}

/// What a watcher is told never goes back, and ends where the store is.
async fn watch(metadata: Metadata, seen: Arc<Mutex<Seen>>) {
    loop {
        let Ok(mut watch) = metadata.watch("/count").await else { continue };
        let mut last = 0;
        while let Some(events) = watch.next().await {
            for event in events {
                let WatchEvent::Put { value, .. } = event else { panic!("nobody deletes") };
                let value = number_of(&value.value);
                assert!(value > last, "the watch went back from {last} to {value}");
                last = value;
                seen.lock().unwrap().watched = value;
            }
        }
    }
}

async fn storm(world: World, members: u64, faults: u64) -> (u64, u64) {
    let handles = Handles::default();
    let nodes: Vec<SimNode> = (1..=members)
        .map(|id| world.create_node(&format!("meta-{id}"), &format!("meta-{id}")))
        .collect();
    let start = |index: usize| {
        let (id, handles) = (index as u64 + 1, Arc::clone(&handles));
        nodes[index].start(|runtime| member(runtime, id, founders(members), handles));
    };
    (0..nodes.len()).for_each(start);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let storm = Duration::from_secs(2 * faults);
    let mut tasks = Vec::new();
    for number in 0..3 {
        let node = world.create_node(&format!("client-{number}"), &format!("client-{number}"));
        let runtime = node.runtime();
        let metadata = client(&runtime, members);
        if number == 2 {
            node.spawn("watch", watch(metadata, Arc::clone(&seen)));
        } else {
            let until = storm + Duration::from_secs(20);
            tasks.push(node.spawn("count", count(metadata, Arc::clone(&seen), runtime, until)));
        }
    }
    for round in 0..faults {
        world.sleep(Duration::from_millis(500 + world.random("pause", round) % 1500)).await;
        let target = (world.random("target", round) % members) as usize;
        let other = (world.random("other", round) % members) as usize;
        match world.random("fault", round) % 6 {
            0 => _ = nodes[target].crash(),
            1 | 2 => _ = nodes[target].power_loss(),
            3 if target != other => _ = world.cut_one_way(&nodes[target], &nodes[other]),
            4 => world.isolate(&nodes[target]),
            _ => {
                if nodes[target].pause() {
                    world.sleep(Duration::from_millis(800)).await;
                    nodes[target].resume();
                }
            }
        }
        world.sleep(Duration::from_millis(world.random("after", round) % 1500)).await;
        world.heal_all();
        (0..nodes.len()).filter(|index| !nodes[*index].is_running()).for_each(start);
    }
    world.heal_all();
    (0..nodes.len()).filter(|index| !nodes[*index].is_running()).for_each(start);
    for task in tasks {
        task.await.unwrap();
    }
    world.sleep(Duration::from_secs(8)).await;
    let seen = seen.lock().unwrap();
    assert!(seen.acknowledged > 20, "only {} changes were acknowledged", seen.acknowledged);
    assert!(seen.watched >= seen.floor, "watched {}, count {}", seen.watched, seen.floor);
    let handles = handles.lock().unwrap();
    let states: BTreeSet<Bytes> = handles.values().map(ReplicatedMetadata::snapshot).collect();
    assert_eq!(states.len(), 1, "members differ: {:?}", statuses(&handles));
    let leaders = handles.values().filter(|handle| handle.status().role == Role::Leader).count();
    assert_eq!(leaders, 1);
    (seen.acknowledged, world.event_hash())
}

fn statuses(handles: &BTreeMap<u64, ReplicatedMetadata>) -> Vec<String> {
    handles.values().map(|handle| format!("{:?}", handle.status())).collect()
}

fn run(seed: u64, members: u64, faults: u64) -> (u64, u64) {
    std::thread::spawn(move || {
        World::run(seed, WorldSettings::default(), move |world| storm(world, members, faults))
    })
    .join()
    .unwrap()
}

#[test]
fn three_members_lose_nothing_acknowledged() {
    let (acknowledged, hash) = run(0, 3, 8);
    println!("{acknowledged} changes acknowledged, hash {hash:x}");
}

#[test]
fn five_members_lose_nothing_acknowledged() {
    run(100, 5, 6);
}

#[test]
fn one_member_is_a_group() {
    run(7, 1, 6);
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(run(3, 3, 5), run(3, 3, 5));
}

#[test]
#[ignore = "long"]
fn many_seeds() {
    for seed in 1000..1100 {
        println!("seed {seed}");
        run(seed, if seed % 3 == 0 { 5 } else { 3 }, 20);
    }
}

/// A fourth member joins by its address alone, becomes a voter, the first one is removed, and the group goes on
/// without it; leadership goes where it is asked to.
#[test]
fn a_member_is_replaced() {
    World::run(5, WorldSettings::default(), |world| async move {
        let handles = Handles::default();
        let mut nodes = Vec::new();
        for id in 1..=4_u64 {
            let node = world.create_node(&format!("meta-{id}"), &format!("meta-{id}"));
            let group = if id == 4 { Membership::default() } else { founders(3) };
            let handles = Arc::clone(&handles);
            node.start(|runtime| member(runtime, id, group, handles));
            nodes.push(node);
        }
        let node = world.create_node("client", "client");
        let metadata = client(&node.runtime(), 3);
        for number in 0..300 {
            let key = format!("/k/{number}");
            // The world's time limit ends what never works.
            while metadata.put(&key, Bytes::new(), Expect::Any, None).await.is_err() {}
        }
        let addresses: Vec<String> = (1..=3).map(address).collect();
        let config = RemoteMetadataConfig::default();
        let admin = MembershipAdmin::new(node.runtime(), &addresses, config);
        admin.add_member(4, &address(4)).await.unwrap();
        admin.transfer_leader(1).await.unwrap();
        assert_eq!(admin.members().await.unwrap().members.len(), 4);
        // The leader itself.
        admin.remove_member(1).await.unwrap();
        admin.remove_member(1).await.unwrap();
        let refused = admin.transfer_leader(1).await;
        assert!(matches!(refused, Err(MetadataError::Refused(_))), "{refused:?}");
        admin.transfer_leader(4).await.unwrap();
        let group = admin.members().await.unwrap();
        let voters: Vec<(u64, bool)> =
            group.members.iter().map(|member| (member.id, member.leads)).collect();
        assert_eq!(voters, [(2, false), (3, false), (4, true)], "{group:?}");
        nodes[0].crash();
        nodes[1].crash();
        // Two of three: the newcomer is needed.
        let found = loop {
            if let Ok(found) = metadata.list("/k/", None, 1000).await {
                break found;
            }
        };
        assert_eq!(found.len(), 300);
        while metadata.put("/k/new", Bytes::new(), Expect::Any, None).await.is_err() {}
    });
}

/// What a member promised is on its disk. With the disk gone the id must not come back: of these three, one with
/// an empty disk and one that was away could otherwise agree that nothing was ever written.
#[test]
fn a_member_with_an_empty_disk_does_not_take_part() {
    World::run(6, WorldSettings::default(), |world| async move {
        let handles = Handles::default();
        let nodes: Vec<SimNode> = (1..=3_u64)
            .map(|id| world.create_node(&format!("meta-{id}"), &format!("meta-{id}")))
            .collect();
        let start = |index: usize| {
            let (id, handles) = (index as u64 + 1, Arc::clone(&handles));
            nodes[index].start(|runtime| member(runtime, id, founders(3), handles));
        };
        (0..3).for_each(start);
        let client_node = world.create_node("client", "client");
        let metadata = client(&client_node.runtime(), 3);
        while metadata.put("/k", Bytes::new(), Expect::Any, None).await.is_err() {}
        // The third is away while the first two agree on something; then one of them loses its disk.
        nodes[2].power_loss();
        while metadata.put("/kept", Bytes::new(), Expect::Any, None).await.is_err() {}
        nodes[0].power_loss();
        nodes[1].crash();
        assert!(nodes[1].wipe_disk());
        handles.lock().unwrap().remove(&2);
        start(1);
        start(2);
        let wiped = loop {
            world.sleep(Duration::from_millis(100)).await;
            if let Some(wiped) = handles.lock().unwrap().get(&2).cloned() {
                break wiped;
            }
        };
        // Who was away does not know what was agreed on, but it was greeted when the group was founded.
        let reason = wiped.poisoned().await;
        assert!(reason.contains("with another disk"), "{reason}");
        let put = metadata.put("/k", Bytes::new(), Expect::Any, None).await;
        assert!(put.is_err(), "one of three agreed with nobody: {put:?}");
        start(0);
        let kept = loop {
            if let Ok(kept) = metadata.get("/kept").await {
                break kept;
            }
        };
        assert!(kept.is_some(), "what was acknowledged is gone");
    });
}

/// Changes that are made together are written together. Each is answered, also the last one, behind which nothing comes.
#[test]
fn the_last_of_a_burst_waits_for_nothing() {
    World::run(8, WorldSettings::default(), |world| async move {
        let handles = Handles::default();
        let node = world.create_node("meta-1", "meta-1");
        let of_member = Arc::clone(&handles);
        node.start(|runtime| member(runtime, 1, founders(1), of_member));
        let client_node = world.create_node("client", "client");
        let remote = client(&client_node.runtime(), 1);
        while remote.put("/k", Bytes::new(), Expect::Any, None).await.is_err() {}
        // A client that asks only once: whoever asks again would be the one that follows.
        let store: Metadata = Arc::new(handles.lock().unwrap()[&1].clone());
        let puts = (0..20).map(|number| {
            let store = Arc::clone(&store);
            async move { store.put(&format!("/k/{number}"), Bytes::new(), Expect::Any, None).await }
        });
        let clock = client_node.runtime().clock;
        let made =
            clock.timeout(Duration::from_secs(60), futures_util::future::join_all(puts)).await;
        assert!(made.expect("all are answered").iter().all(Result::is_ok));
    });
}

/// Members whose clocks differ by an hour agree on when a session is over.
#[test]
fn sessions_are_over_by_one_clock_everywhere() {
    World::run(9, WorldSettings::default(), |world| async move {
        let handles = Handles::default();
        let mut nodes = Vec::new();
        for id in 1..=3_u64 {
            let node = world.create_node(&format!("meta-{id}"), &format!("meta-{id}"));
            let handles = Arc::clone(&handles);
            node.start(|runtime| member(runtime, id, founders(3), handles));
            nodes.push(node);
        }
        assert!(nodes[1].step_wall_clock(3_600_000));
        let client_node = world.create_node("client", "client");
        let metadata = client(&client_node.runtime(), 3);
        let session = loop {
            if let Ok(session) = metadata.open_session(Duration::from_secs(10)).await {
                break session;
            }
        };
        metadata.put("/held", Bytes::new(), Expect::Absent, Some(session)).await.unwrap();
        for _ in 0..4 {
            world.sleep(Duration::from_secs(3)).await;
            metadata.keep_alive(session).await.unwrap();
        }
        world.sleep(Duration::from_secs(1)).await;
        let handles = handles.lock().unwrap();
        let states: BTreeSet<Bytes> = handles.values().map(ReplicatedMetadata::snapshot).collect();
        assert_eq!(states.len(), 1, "members differ: {:?}", statuses(&handles));
    });
}
