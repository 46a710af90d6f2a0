//! A bookie over rpc in the simulator, losing power while a client adds: every entry answered as stored is
//! read back, every batch is answered exactly once, and another bookie's name is refused.
#![allow(
    clippy::disallowed_methods,
    reason = "each run of an equal seed needs a thread of its own"
)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use seawall::bookie::{Bookie, BookieConfig, BookieService, LedgerDirectory, LedgerPresence};
use seawall::domain::{
    AddAnswer, AddBatch, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId, ReadError,
    ReadRequest,
};
use seawall::ledger::{BookieClient, RemoteBookie, RemoteBookieConfig};
use seawall::rpc::{Routes, ServerConfig, serve};
use seawall::runtime::sim::{World, WorldSettings};
use seawall::runtime::{Runtime, Shutdown};

const ADDRESS: &str = "bookie:9090";
const LEDGER: LedgerId = LedgerId(9);
const CREATOR: CreatorToken = CreatorToken(5);

struct AllExist;

#[async_trait]
impl LedgerDirectory for AllExist {
    async fn presence(&self, _ledger: LedgerId, _bookie: BookieId) -> LedgerPresence {
        LedgerPresence::Exists
    }
}

async fn bookie_node(runtime: Runtime, told: Arc<Mutex<Option<BookieId>>>) {
    runtime.disk.create_directory(Path::new("/data")).await.unwrap();
    runtime.disk.sync_directory(Path::new("/")).await.unwrap();
    let config =
        BookieConfig { journal_file_bytes: 1 << 20, ..BookieConfig::below(Path::new("/data")) };
    let bookie = Bookie::start(runtime.clone(), config, Arc::new(AllExist)).await.unwrap();
    *told.lock().unwrap() = Some(bookie.id());
    let listener = runtime.network.listen(ADDRESS).await.unwrap();
    let routes = Routes::new().with(BookieService::server(runtime.clone(), bookie));
    let never = Shutdown::new();
    serve(runtime, listener, routes, ServerConfig::default(), never.signal()).await;
}

#[derive(Default)]
struct Answers {
    stored: BTreeSet<EntryId>,
    answered: BTreeSet<EntryId>,
}

struct Sink(Arc<Mutex<Answers>>);

impl AddSink for Sink {
    fn answered(&self, answer: AddAnswer) {
        let mut answers = self.0.lock().unwrap();
        for entry in answer.entries {
            assert!(answers.answered.insert(entry), "{entry} answered twice");
            if answer.result.is_ok() {
                answers.stored.insert(entry);
            }
        }
    }
}

fn batch(first: i64) -> AddBatch {
    let entries = (first..first + 2)
        .map(|id| {
            let payload = Bytes::from(format!("entry {id}").repeat(20));
            Entry::seal(LEDGER, EntryId(id), EntryId::NONE, 1, payload)
        })
        .collect();
    AddBatch { ledger: LEDGER, creator: CREATOR, recovery: false, entries }
}

fn read_of(entry: EntryId) -> ReadRequest {
    ReadRequest {
        ledger: LEDGER,
        creator: CREATOR,
        first: entry,
        entries_max: 1,
        bytes_max: 1000,
        fence: false,
    }
}

async fn add_and_read(runtime: Runtime, id: BookieId, answers: Arc<Mutex<Answers>>) {
    let config = RemoteBookieConfig {
        call_timeout: Duration::from_secs(2),
        ..RemoteBookieConfig::default()
    };
    let remote = RemoteBookie::new(runtime.clone(), id, ADDRESS, config.clone());
    let count = 600;
    for number in 0..count {
        remote.add(batch(number * 2), Arc::new(Sink(Arc::clone(&answers))));
        runtime.clock.sleep(Duration::from_millis(30)).await;
    }
    runtime.clock.sleep(Duration::from_secs(20)).await;
    assert_eq!(answers.lock().unwrap().answered.len(), count as usize * 2);
    let stored = answers.lock().unwrap().stored.clone();
    assert!(stored.len() > 100, "only {} stored", stored.len());
    for entry in stored {
        let found = remote.read(read_of(entry)).await.unwrap();
        found[0].verify(LEDGER, entry).unwrap();
    }
    let other = RemoteBookie::new(runtime, BookieId(id.0 ^ 1), ADDRESS, config);
    let refused = other.read(read_of(EntryId(0))).await;
    assert!(matches!(refused, Err(ReadError::Unreachable(_))), "{refused:?}");
}

fn run(seed: u64) -> u64 {
    let settings = WorldSettings { time_limit: Duration::from_secs(300), ..Default::default() };
    World::run(seed, settings, |world| async move {
        let node = world.create_node("bookie", "bookie");
        let client = world.create_node("client", "client");
        let told = Arc::new(Mutex::new(None));
        let start = |runtime| bookie_node(runtime, Arc::clone(&told));
        node.start(start);
        world.sleep(Duration::from_secs(1)).await;
        let id = told.lock().unwrap().expect("the bookie started");
        let work = add_and_read(client.runtime(), id, Arc::default());
        let done = client.spawn("client", work);
        for round in 0..4 {
            world.sleep(Duration::from_millis(1000 + world.random("up", round) % 3000)).await;
            node.power_loss();
            world.sleep(Duration::from_millis(world.random("down", round) % 1000)).await;
            node.start(start);
        }
        done.await.unwrap();
        assert_eq!(*told.lock().unwrap(), Some(id), "another identity after a power loss");
        world.event_hash()
    })
}

#[test]
fn what_a_remote_bookie_stored_is_read_back() {
    for seed in 0..3 {
        run(seed);
    }
}

#[test]
fn a_remote_bookie_gives_the_same_events_twice() {
    let [first, second] = [0, 1].map(|_| std::thread::spawn(|| run(77)).join().unwrap());
    assert_eq!(first, second);
}
