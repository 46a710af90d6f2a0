//! A cluster in one simulated node: bookies in memory, a real metadata store, real writers, and two nodes'
//! worth of auditor and replicator.

mod bookies;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use seawall::bookie::LedgerDirectory;
use seawall::domain::{BookieId, EntryId, LedgerId};
use seawall::ledger::repair::{
    DrainState, Drains, Markers, RepairConfig, RepairParts, RepairService,
};
use seawall::ledger::{
    LedgerClient, LedgerConfig, LedgerRecord, LedgerState, LedgerWriter, Quorum, WriterEnd,
    WriterEvents,
};
use seawall::metadata::{Metadata, Revision, SingleNodeConfig, SingleNodeMetadata};
use seawall::node::bookie_registry::MetadataLedgers;
use seawall::runtime::sim::{World, WorldSettings};
use seawall::runtime::{Runtime, Shutdown};

pub use bookies::{Bookies, Fake, Pool};

/// Ids of bookies to come.
const NEWCOMERS: u64 = 100;

/// What writers told.
#[derive(Default)]
struct Told(Mutex<BTreeMap<LedgerId, EntryId>>);

impl WriterEvents for Told {
    fn confirmed(&self, ledger: LedgerId, up_to: EntryId) {
        self.0.lock().unwrap().insert(ledger, up_to);
    }

    fn ended(&self, _ledger: LedgerId, _last_confirmed: EntryId, _reason: WriterEnd) {}
}

/// See the module.
pub struct Stage {
    pub runtime: Runtime,
    pub metadata: Metadata,
    pub bookies: Arc<Bookies>,
    pub client: LedgerClient,
    pub markers: Markers,
    pub drains: Drains,
    pub config: RepairConfig,
    quorum: Quorum,
    told: Arc<Told>,
    writers: Vec<LedgerWriter>,
    /// The host whose bookie may be lost or rot: copies elsewhere stay.
    pub victim: BookieId,
    is_damaged: bool,
    newcomers: u64,
    /// The furthest state and the most fragments seen of each ledger.
    seen: BTreeMap<LedgerId, (u8, usize)>,
}

/// Runs a play on a stage of its own.
#[allow(clippy::disallowed_methods, reason = "each world needs a thread of its own")]
pub fn on_stage<F, Fut>(seed: u64, quorum: Quorum, lazy: u64, config: RepairConfig, play: F)
where
    F: FnOnce(Stage) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let run = std::thread::spawn(move || {
        let settings =
            WorldSettings { time_limit: Duration::from_secs(3600), ..Default::default() };
        World::run(seed, settings, move |world| async move {
            let node = world.create_node("all", "all");
            let runtime = node.runtime();
            let started = node.spawn("play", async move {
                play(Stage::new(runtime, quorum, lazy, config).await).await;
            });
            started.await.unwrap();
        });
    });
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Stage {
    async fn new(runtime: Runtime, quorum: Quorum, lazy: u64, config: RepairConfig) -> Self {
        let store = SingleNodeConfig {
            tick: Duration::from_millis(200),
            ..SingleNodeConfig::below(Path::new("/data"))
        };
        runtime.disk.create_directory(Path::new("/data")).await.unwrap();
        let metadata: Metadata =
            Arc::new(SingleNodeMetadata::start(runtime.clone(), store).await.unwrap());
        let bookies = Bookies::new(&runtime, 6, lazy);
        let ledger_config = LedgerConfig {
            add_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(1),
            explicit_last_add_confirmed_interval: Duration::from_millis(200),
            ..LedgerConfig::default()
        };
        let pool = Arc::new(Pool(Arc::clone(&bookies)));
        let client = LedgerClient::new(
            runtime.clone(),
            Arc::clone(&metadata),
            Arc::<Pool>::clone(&pool),
            ledger_config,
        );
        Self {
            markers: Markers::new(Arc::clone(&metadata)),
            drains: Drains::new(Arc::clone(&metadata)),
            told: Arc::default(),
            writers: Vec::new(),
            victim: BookieId(1),
            is_damaged: false,
            newcomers: NEWCOMERS,
            seen: BTreeMap::new(),
            runtime,
            metadata,
            bookies,
            client,
            config,
            quorum,
        }
    }

    /// Starts repair as two nodes would, and every bookie's collection of what is elsewhere.
    pub fn start_repair(&self) {
        for holder in ["one", "two"] {
            let pool = Arc::new(Pool(Arc::clone(&self.bookies)));
            let parts = RepairParts {
                runtime: Runtime {
                    random: self.runtime.random.fork(holder),
                    ..self.runtime.clone()
                },
                metadata: Arc::clone(&self.metadata),
                ledgers: self.client.clone(),
                bookies: Arc::<Pool>::clone(&pool),
                standings: pool,
                ledger_config: LedgerConfig {
                    read_timeout: Duration::from_secs(1),
                    ..LedgerConfig::default()
                },
                config: self.config.clone(),
                holder: holder.to_owned(),
            };
            RepairService::start(parts, &Shutdown::new().signal());
        }
        let (bookies, clock) = (Arc::clone(&self.bookies), self.runtime.clock.clone());
        let directory = MetadataLedgers::new(Arc::clone(&self.metadata));
        drop(self.runtime.tasks.spawn("collect", async move {
            let directory: &dyn LedgerDirectory = &directory;
            loop {
                clock.sleep(Duration::from_millis(100)).await;
                let all: Vec<BookieId> = bookies.with(|all| all.keys().copied().collect());
                for id in all {
                    bookies.collect(id, directory).await;
                }
            }
        }));
    }

    pub async fn pass(&self, duration: Duration) {
        self.runtime.clock.sleep(duration).await;
    }

    /// A new ledger; false if there are too few bookies now.
    pub async fn create(&mut self) -> bool {
        match self.client.create(self.quorum, "model", Arc::<Told>::clone(&self.told)).await {
            Ok(writer) => {
                self.writers.push(writer);
                true
            }
            Err(_) => false,
        }
    }

    /// Appends to the ledger of this number, if its writer is alive.
    pub fn append(&self, number: usize, count: u8) {
        if self.writers.is_empty() {
            return;
        }
        let writer = &self.writers[number % self.writers.len()];
        let payload = |_| Bytes::from(format!("{:032}", self.runtime.random.next()));
        let _ = writer.append((0..count).map(payload).collect());
    }

    pub async fn close(&self, number: usize) {
        if !self.writers.is_empty() {
            let _ = self.writers[number % self.writers.len()].close().await;
        }
    }

    /// The victim's disk is gone; an empty bookie takes its place under a new name.
    pub fn lose_victim(&mut self) {
        self.is_damaged = true;
        self.newcomers += 1;
        let newcomer = BookieId(self.newcomers);
        let old = std::mem::replace(&mut self.victim, newcomer);
        self.bookies.with(|all| {
            all.remove(&old);
            all.insert(newcomer, Fake::new());
        });
    }

    /// A copy of the victim's rots.
    pub fn rot_victim(&mut self, which: usize) {
        let victim = self.victim;
        self.is_damaged |= self.bookies.with(|all| {
            let Some(fake) = all.get_mut(&victim) else { return false };
            let Some(copy) = fake.entries.keys().nth(which % fake.entries.len().max(1)).copied()
            else {
                return false;
            };
            fake.rotten.insert(copy)
        });
    }

    pub fn copies_of_victim(&self) -> usize {
        self.bookies.with(|all| all.get(&self.victim).map_or(0, |fake| fake.entries.len()))
    }

    pub fn change(&self, bookie: BookieId, change: impl FnOnce(&mut Fake)) {
        self.bookies.with(|all| {
            if let Some(fake) = all.get_mut(&bookie) {
                change(fake);
            }
        });
    }

    /// A bookie that is not the victim.
    pub fn other(&self, number: usize) -> BookieId {
        BookieId(2 + number as u64 % 5)
    }

    /// The record of the one ledger of a play.
    async fn record(&self) -> LedgerRecord {
        self.records().await.into_values().next().expect("a ledger").0
    }

    pub async fn ledger(&self) -> LedgerId {
        self.record().await.ledger
    }

    pub async fn fragments(&self) -> usize {
        self.record().await.fragments.len()
    }

    pub async fn last_ensemble(&self) -> Vec<BookieId> {
        self.record().await.fragments.pop().expect("a fragment").ensemble
    }

    async fn records(&self) -> BTreeMap<LedgerId, (LedgerRecord, Revision)> {
        let listed = self.metadata.list(LedgerRecord::PREFIX, None, 1000).await.unwrap();
        let decode = |value: &Bytes| serde_json::from_slice::<LedgerRecord>(value).unwrap();
        listed
            .into_iter()
            .map(|(_, found)| (decode(&found.value), found.version))
            .map(|(record, version)| (record.ledger, (record, version)))
            .collect()
    }

    /// What must hold at every moment: a record moves forward only; nothing confirmed is cut off; and
    /// each confirmed entry has an ack quorum of good copies where the record says, less one if the
    /// victim's were damaged.
    pub async fn check(&mut self) {
        let before = self.records().await;
        let told = self.told.0.lock().unwrap().clone();
        let lost = u32::from(self.is_damaged);
        let mut thin = Vec::new();
        for (ledger, (record, _)) in &before {
            let rank = match record.state {
                LedgerState::Open => 0,
                LedgerState::InRecovery => 1,
                LedgerState::Closed { .. } => 2,
            };
            let (rank_before, count) = self.seen.entry(*ledger).or_insert((rank, 1));
            assert!(rank >= *rank_before, "ledger {ledger} went back to {:?}", record.state);
            assert!(record.fragments.len() >= *count, "ledger {ledger} lost a fragment");
            (*rank_before, *count) = (rank, record.fragments.len());
            let mut confirmed = told.get(ledger).copied().unwrap_or(EntryId::NONE);
            if let LedgerState::Closed { last_entry, .. } = record.state {
                assert!(last_entry >= confirmed, "{ledger} closed at {last_entry} < {confirmed}");
                confirmed = last_entry;
            }
            for entry in (0..=confirmed.0).map(EntryId) {
                let copies = self.copies(record, entry);
                if copies + lost < record.quorum.ack {
                    thin.push((*ledger, format!("{ledger}:{entry} has {copies}: {record:?}")));
                }
            }
        }
        // A record that changed meanwhile says nothing.
        let after = self.records().await;
        for (ledger, what) in thin {
            assert_ne!(before.get(&ledger).map(|b| b.1), after.get(&ledger).map(|a| a.1), "{what}");
        }
    }

    fn copies(&self, record: &LedgerRecord, entry: EntryId) -> u32 {
        let write_set = record.write_set(record.fragment_of(entry).unwrap(), entry);
        let copy = (record.ledger, entry);
        self.bookies.with(|all| {
            let holds = |id: &&BookieId| all.get(id).is_some_and(|fake| fake.holds(copy));
            write_set.iter().filter(holds).count() as u32
        })
    }

    /// Why replication is not complete; `None` if it is.
    pub async fn incomplete(&self) -> Option<String> {
        let records = self.records().await;
        let gone = |id: &BookieId| self.bookies.with(|all| !all.contains_key(id));
        let leaving = |id: &BookieId| self.bookies.with(|all| all[id].is_draining);
        for (record, _) in records.values() {
            let LedgerState::Closed { last_entry, .. } = record.state else { continue };
            for entry in (0..=last_entry.0).map(EntryId) {
                if self.copies(record, entry) < record.quorum.write {
                    return Some(format!("entry {entry} of {record:?}"));
                }
            }
        }
        for (record, _) in records.values() {
            let members = record.fragments.iter().flat_map(|fragment| &fragment.ensemble);
            if let Some(id) = members.into_iter().find(|id| gone(id) || leaving(id)) {
                return Some(format!("bookie {id} is named by {record:?}"));
            }
        }
        for drain in self.drains.list().await.unwrap() {
            if drain.state != DrainState::Drained {
                return Some(format!("{drain:?}"));
            }
        }
        let marked = self.markers.list().await.unwrap();
        (!marked.is_empty()).then(|| format!("marked: {marked:?}"))
    }

    /// Everything is well from now on: repair must get there.
    pub async fn finish(&mut self) {
        self.bookies.with(|all| {
            for fake in all.values_mut() {
                (fake.is_up, fake.is_registered) = (true, true);
            }
        });
        let mut why = None;
        for _ in 0..400 {
            self.pass(Duration::from_millis(500)).await;
            self.check().await;
            why = self.incomplete().await;
            if why.is_none() {
                return;
            }
        }
        panic!("not repaired: {why:?}");
    }
}
