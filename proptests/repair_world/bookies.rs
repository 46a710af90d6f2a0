//! Bookies in memory that are slow, lazy, damaged, unreachable or not registered, each apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use seawall::bookie::{LedgerDirectory, LedgerPresence};
use seawall::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId,
    LastAddConfirmed, LedgerId, ReadError, ReadRequest,
};
use seawall::ledger::repair::{BookieStandings, Standing};
use seawall::ledger::{BookieClient, BookiePool};
use seawall::runtime::{Random, Runtime};

pub type Copy = (LedgerId, EntryId);

/// One bookie.
#[derive(Default)]
pub struct Fake {
    /// It answers.
    pub is_up: bool,
    /// It is on the list, as far as repair and writers can see.
    pub is_registered: bool,
    pub is_draining: bool,
    pub entries: BTreeMap<Copy, Entry>,
    /// Copies that are served damaged.
    pub rotten: BTreeSet<Copy>,
    fenced: BTreeSet<LedgerId>,
    told: BTreeMap<LedgerId, EntryId>,
    leaving: BTreeSet<LedgerId>,
}

impl Fake {
    pub fn new() -> Self {
        Self { is_up: true, is_registered: true, ..Self::default() }
    }

    /// It holds a good copy.
    pub fn holds(&self, copy: Copy) -> bool {
        self.entries.contains_key(&copy) && !self.rotten.contains(&copy)
    }
}

#[derive(Default)]
struct State {
    bookies: BTreeMap<BookieId, Fake>,
    originals: BTreeMap<Copy, Entry>,
}

/// All of them.
pub struct Bookies {
    runtime: Runtime,
    random: Random,
    state: Mutex<State>,
    /// Ordinary adds in a hundred that a bookie refuses.
    lazy: u64,
}

impl Bookies {
    pub fn new(runtime: &Runtime, count: u64, lazy: u64) -> Arc<Self> {
        let bookies = (1..=count).map(|id| (BookieId(id), Fake::new())).collect();
        Arc::new(Self {
            runtime: runtime.clone(),
            random: runtime.random.fork("fake bookies"),
            state: Mutex::new(State { bookies, originals: BTreeMap::new() }),
            lazy,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<BookieId, Fake>) -> T) -> T {
        work(&mut self.lock().bookies)
    }

    async fn delay(&self) {
        let delay = Duration::from_millis(1 + self.random.below(60));
        self.runtime.clock.sleep(delay).await;
    }

    fn store(&self, id: BookieId, batch: AddBatch) -> Result<(), AddError> {
        let refuses = !batch.recovery && self.random.below(100) < self.lazy;
        let mut state = self.lock();
        let State { bookies, originals } = &mut *state;
        let Some(bookie) = bookies.get_mut(&id).filter(|bookie| bookie.is_up) else {
            return Err(AddError::Unreachable("away".to_owned()));
        };
        if bookie.leaving.contains(&batch.ledger) && batch.recovery || refuses {
            return Err(AddError::Overloaded);
        }
        if bookie.is_draining && !batch.recovery {
            return Err(AddError::ReadOnly);
        }
        if bookie.fenced.contains(&batch.ledger) && !batch.recovery {
            return Err(AddError::Fenced);
        }
        for entry in batch.entries {
            assert_eq!(entry.verify(batch.ledger, entry.entry), Ok(()), "a bad copy was sent");
            let copy = (batch.ledger, entry.entry);
            let original = originals.entry(copy).or_insert_with(|| entry.clone());
            assert_eq!(*original, entry, "copies differ");
            bookie.entries.insert(copy, entry);
            bookie.rotten.remove(&copy);
        }
        Ok(())
    }

    /// What a bookie does with ledgers that are elsewhere, in the order the real one keeps.
    pub async fn collect(&self, id: BookieId, directory: &dyn LedgerDirectory) {
        let held: BTreeSet<LedgerId> =
            self.with(|all| all[&id].entries.keys().map(|(ledger, _)| *ledger).collect());
        for ledger in held {
            if directory.presence(ledger, id).await != LedgerPresence::Elsewhere {
                continue;
            }
            self.with(|all| _ = all.get_mut(&id).unwrap().leaving.insert(ledger));
            let may_go = directory.release(ledger, id).await;
            self.delay().await;
            self.with(|all| {
                let bookie = all.get_mut(&id).unwrap();
                if may_go {
                    bookie.entries.retain(|copy, _| copy.0 != ledger);
                }
                bookie.leaving.remove(&ledger);
            });
        }
    }
}

struct Client {
    id: BookieId,
    all: Arc<Bookies>,
}

#[async_trait]
impl BookieClient for Client {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let (id, all) = (self.id, Arc::clone(&self.all));
        drop(self.all.runtime.tasks.spawn("fake add", async move {
            all.delay().await;
            let ledger = batch.ledger;
            let entries = batch.entries.iter().map(|entry| entry.entry).collect();
            let mut result = all.store(id, batch);
            all.delay().await;
            // Stored, and the answer is lost.
            if all.random.below(20) == 0 {
                result = Err(AddError::Unreachable("the answer was lost".to_owned()));
            }
            sink.answered(AddAnswer { bookie: id, ledger, entries, result });
        }));
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        self.all.delay().await;
        if self.all.random.below(20) == 0 {
            return Err(ReadError::Unreachable("lost".to_owned()));
        }
        self.all.with(|all| {
            let Some(bookie) = all.get_mut(&self.id).filter(|bookie| bookie.is_up) else {
                return Err(ReadError::Unreachable("away".to_owned()));
            };
            if bookie.leaving.contains(&request.ledger) {
                return Err(ReadError::Unknown("dropping".to_owned()));
            }
            if request.fence {
                bookie.fenced.insert(request.ledger);
            }
            let mut run = Vec::new();
            let mut next = request.first;
            while let Some(entry) = bookie.entries.get(&(request.ledger, next))
                && run.len() < request.entries_max as usize
            {
                let mut entry = entry.clone();
                if bookie.rotten.contains(&(request.ledger, next)) {
                    entry.digest ^= 1;
                }
                run.push(entry);
                next = next.next();
            }
            if run.is_empty() { Err(ReadError::Absent) } else { Ok(run) }
        })
    }

    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        self.all.delay().await;
        self.all.with(|all| {
            let Some(bookie) = all.get_mut(&self.id).filter(|bookie| bookie.is_up) else {
                return Err(ReadError::Unreachable("away".to_owned()));
            };
            if fence {
                bookie.fenced.insert(ledger);
            }
            let held = bookie.entries.range((ledger, EntryId(0))..(ledger, EntryId(i64::MAX)));
            let carried = held.map(|(_, entry)| entry.last_add_confirmed).max();
            let told = bookie.told.get(&ledger).copied();
            Ok(LastAddConfirmed {
                last_add_confirmed: carried.max(told).unwrap_or(EntryId::NONE),
                last_entry: EntryId::NONE,
                fenced: bookie.fenced.contains(&ledger),
            })
        })
    }

    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        self.all.delay().await;
        self.all.with(|all| {
            if let Some(bookie) = all.get_mut(&self.id).filter(|bookie| bookie.is_up) {
                let told = bookie.told.entry(ledger).or_insert(EntryId::NONE);
                *told = (*told).max(last_add_confirmed);
            }
        });
        Ok(())
    }
}

/// The list of bookies.
pub struct Pool(pub Arc<Bookies>);

impl BookiePool for Pool {
    fn bookie(&self, id: BookieId) -> Arc<dyn BookieClient> {
        Arc::new(Client { id, all: Arc::clone(&self.0) })
    }

    fn writable(&self) -> Vec<BookieId> {
        let takes = |fake: &Fake| fake.is_registered && !fake.is_draining;
        self.0.with(|all| all.iter().filter(|(_, fake)| takes(fake)).map(|(id, _)| *id).collect())
    }
}

impl BookieStandings for Pool {
    fn standing(&self, bookie: BookieId) -> Standing {
        self.0.with(|all| match all.get(&bookie) {
            Some(fake) if !fake.is_registered => Standing::Missing,
            Some(fake) if fake.is_draining => Standing::Draining,
            Some(_) => Standing::Serving,
            None => Standing::Missing,
        })
    }
}
