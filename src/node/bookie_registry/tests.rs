//! Cookies, registrations and the pool over a real store in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::{
    BookieRecord, BookieRegistration, CookieError, CookieRecord, MetadataLedgers, RegisteredBookie,
    RegisteredBookies, RegistrationConfig, check_cookie,
};
use crate::bookie::{LedgerDirectory, LedgerPresence};
use crate::domain::{BookieId, CreatorToken, EntryId, LedgerId, ReadError};
use crate::ledger::repair::{BookieStandings, Drains, Standing};
use crate::ledger::{BookiePool, Fragment, LedgerRecord, LedgerState, Quorum, RemoteBookieConfig};
use crate::metadata::{Expect, Metadata, SingleNodeConfig, SingleNodeMetadata};
use crate::runtime::{Runtime, Shutdown, real};

/// A bookie that takes writes when told so.
struct Asked(Arc<AtomicBool>, AtomicBool);

impl RegisteredBookie for Asked {
    fn takes_writes(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn set_draining(&self, draining: bool) {
        self.1.store(draining, Ordering::SeqCst);
    }
}

struct World {
    runtime: Runtime,
    data: PathBuf,
    store: SingleNodeMetadata,
    metadata: Metadata,
}

async fn world(name: &str) -> World {
    let runtime = real::runtime();
    let data = std::env::temp_dir().join(format!("seawall-registry-{name}-{}", std::process::id()));
    runtime.disk.remove_directory(&data).await.unwrap();
    let config =
        SingleNodeConfig { tick: Duration::from_millis(10), ..SingleNodeConfig::below(&data) };
    let store = SingleNodeMetadata::start(runtime.clone(), config).await.unwrap();
    let metadata: Metadata = Arc::new(store.clone());
    World { runtime, data, store, metadata }
}

impl World {
    async fn end(self) {
        self.store.stop().await;
        self.runtime.disk.remove_directory(&self.data).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_is_made_once_and_missed_when_gone() {
    let world = world("cookie").await;
    let marker = world.data.join("bookie-registered");
    let check = async |id: u64| {
        check_cookie(&world.runtime, &world.metadata, BookieId(id), "a:1", &marker).await
    };
    check(1).await.unwrap();
    check(1).await.unwrap();
    assert!(matches!(check(2).await, Err(CookieError::Swapped { .. })));
    // Cut short between record and marker.
    world.runtime.disk.remove(&marker).await.unwrap();
    check(1).await.unwrap();
    world.metadata.delete(&CookieRecord::key(BookieId(1)), Expect::Any).await.unwrap();
    assert_eq!(check(1).await, Err(CookieError::Missing(BookieId(1))));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_follows_registrations() {
    let world = world("pool").await;
    let stop = Shutdown::new();
    let pool = RegisteredBookies::start(
        &world.runtime,
        Arc::clone(&world.metadata),
        None,
        RemoteBookieConfig::default(),
        stop.signal(),
    );
    let leave = Shutdown::new();
    let writable = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&writable);
    let registration = BookieRegistration::start(
        &world.runtime,
        Arc::clone(&world.metadata),
        BookieId(0xab),
        "127.0.0.1:1".to_owned(),
        Arc::new(Asked(asked, AtomicBool::new(false))),
        RegistrationConfig { time_to_live: Duration::from_millis(150), ..Default::default() },
        leave.signal(),
    );
    registration.registered().await;
    pool.wait_for_writable(1).await;
    assert_eq!(pool.writable(), [BookieId(0xab)]);
    // Kept alive beyond its time to live.
    world.runtime.clock.sleep(Duration::from_millis(400)).await;
    assert_eq!(pool.writable(), [BookieId(0xab)]);
    writable.store(false, Ordering::SeqCst);
    while !pool.writable().is_empty() {
        world.runtime.clock.sleep(Duration::from_millis(10)).await;
    }
    // Asked to leave it stays on the list, takes nothing new, and comes back when that is taken back.
    let drains = Drains::new(Arc::clone(&world.metadata));
    writable.store(true, Ordering::SeqCst);
    pool.wait_for_writable(1).await;
    drains.begin(BookieId(0xab)).await.unwrap();
    while pool.standing(BookieId(0xab)) != Standing::Draining {
        world.runtime.clock.sleep(Duration::from_millis(10)).await;
    }
    assert!(pool.writable().is_empty());
    assert!(drains.cancel(BookieId(0xab)).await.unwrap());
    pool.wait_for_writable(1).await;
    assert_eq!(pool.standing(BookieId(0xab)), Standing::Serving);
    leave.trigger();
    registration.ended().await;
    while pool.standing(BookieId(0xab)) != Standing::Missing {
        world.runtime.clock.sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.metadata.get(&BookieRecord::key(BookieId(0xab))).await, Ok(None));
    let gone = pool.bookie(BookieId(0xab));
    let known = gone.last_add_confirmed(LedgerId(1), CreatorToken(1), false).await;
    assert!(matches!(known, Err(ReadError::Unreachable(_))));
    stop.trigger();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_is_gone_only_when_metadata_says_so() {
    let world = world("directory").await;
    let ledgers = MetadataLedgers::new(Arc::clone(&world.metadata));
    let key = LedgerRecord::key(LedgerId(5));
    world.metadata.put(&key, Bytes::from_static(b"{}"), Expect::Any, None).await.unwrap();
    let me = BookieId(1);
    assert_eq!(ledgers.presence(LedgerId(5), me).await, LedgerPresence::Exists);
    assert_eq!(ledgers.presence(LedgerId(6), me).await, LedgerPresence::Gone);
    let record = |state, members: [u64; 2]| LedgerRecord {
        format: 1,
        ledger: LedgerId(7),
        creator: CreatorToken(1),
        quorum: Quorum { ensemble: 2, write: 2, ack: 2 },
        state,
        fragments: vec![Fragment {
            first_entry: EntryId::FIRST,
            ensemble: members.into_iter().map(BookieId).collect(),
        }],
        purpose: "test".to_owned(),
    };
    let closed = LedgerState::Closed { last_entry: EntryId(0), length: 1 };
    let cases = [
        (record(LedgerState::Open, [2, 3]), LedgerPresence::Exists),
        // Recovery may be writing back to a bookie that no record names before it closes the ledger.
        (record(LedgerState::InRecovery, [2, 3]), LedgerPresence::Exists),
        (record(closed, [1, 3]), LedgerPresence::Exists),
        (record(closed, [2, 3]), LedgerPresence::Elsewhere),
    ];
    for (record, expected) in cases {
        let key = LedgerRecord::key(record.ledger);
        let value = Bytes::from(serde_json::to_vec(&record).unwrap());
        world.metadata.put(&key, value, Expect::Any, None).await.unwrap();
        assert_eq!(ledgers.presence(LedgerId(7), me).await, expected);
        let before = world.metadata.get(&key).await.unwrap().unwrap().version;
        let released = ledgers.release(LedgerId(7), me).await;
        assert_eq!(released, expected == LedgerPresence::Elsewhere);
        let after = world.metadata.get(&key).await.unwrap().unwrap().version;
        assert_eq!(released, after > before, "whoever copies under the old version must notice");
    }
    // Every third of more ledgers than one page holds.
    for id in (9..900).step_by(3) {
        let key = LedgerRecord::key(LedgerId(id));
        world.metadata.put(&key, Bytes::from_static(b"{}"), Expect::Any, None).await.unwrap();
    }
    let asked: Vec<LedgerId> = (0..1000).map(LedgerId).collect();
    let answers = ledgers.presences(&asked, me).await;
    assert_eq!(answers.len(), asked.len());
    for (ledger, answer) in asked.iter().zip(answers) {
        let exists = ledger.0 == 5 || ((9..900).contains(&ledger.0) && ledger.0 % 3 == 0);
        let expected = match ledger.0 {
            7 => LedgerPresence::Elsewhere,
            _ if exists => LedgerPresence::Exists,
            _ => LedgerPresence::Gone,
        };
        assert_eq!(answer, expected, "{ledger}");
    }
    world.store.stop().await;
    assert_eq!(ledgers.presence(LedgerId(6), me).await, LedgerPresence::Unknown);
    assert_eq!(ledgers.presences(&asked, me).await, vec![LedgerPresence::Unknown; 1000]);
    world.end().await;
}
