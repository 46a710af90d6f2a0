//! What the tasks of one bookie share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tokio::sync::Notify;

use super::BookieConfig;
use super::journal::JournalQueue;
use super::ledger_state::{LedgerFacts, LedgerState, LedgerTable};
use super::read_cache::ReadCache;
use super::space::Spaces;
use super::storage::{EntryLogs, LocationIndex, Placement};
use super::write_cache::WriteCache;
use crate::domain::{BookieId, CreatorToken, LedgerId};
use crate::runtime::{DiskLock, IndexError, Runtime, Shutdown};
use crate::{mutant, reached};

/// Figures, counted where things happen.
#[derive(Default)]
pub(super) struct Counters {
    pub entries_added: AtomicU64,
    pub bytes_added: AtomicU64,
    pub entry_log_bytes: Arc<AtomicU64>,
    pub corrupt_found: AtomicU64,
}

/// Whether the journal is poisoned, and why.
#[derive(Default)]
pub(super) struct Poison {
    reason: OnceLock<String>,
    notify: Notify,
}

impl Poison {
    /// The first reason counts.
    pub fn set(&self, reason: String) {
        let _ = self.reason.set(reason);
        self.notify.notify_waiters();
    }

    /// Why, if it is.
    pub fn reason(&self) -> Option<String> {
        self.reason.get().cloned()
    }

    /// Completes once it is.
    pub async fn wait(&self) -> String {
        let notified = self.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if self.reason.get().is_none() {
            notified.await;
        }
        self.reason().unwrap_or_default()
    }
}

/// Damaged ledgers kept until someone asks.
const DAMAGED_MAX: usize = 10_000;

/// Ledgers whose entries are about to be dropped because they are kept elsewhere.
#[derive(Default)]
pub(super) struct Leaving {
    /// Spares every add and read the lock.
    count: AtomicUsize,
    ledgers: Mutex<BTreeSet<LedgerId>>,
}

impl Leaving {
    /// From now on no copy of the ledger is taken and none is read.
    pub fn insert(&self, ledger: LedgerId) {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledgers.insert(ledger);
        self.count.store(ledgers.len(), Ordering::SeqCst);
    }

    /// Copies are welcome again.
    pub fn remove(&self, ledger: LedgerId) {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledgers.remove(&ledger);
        self.count.store(ledgers.len(), Ordering::SeqCst);
    }

    /// True while a ledger's entries are being dropped.
    pub fn contains(&self, ledger: LedgerId) -> bool {
        self.count.load(Ordering::SeqCst) > 0
            && self
                .ledgers
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .contains(&ledger)
    }
}

/// What the tasks of one bookie share.
pub(super) struct Shared {
    pub runtime: Runtime,
    pub config: BookieConfig,
    pub id: BookieId,
    /// The disks were empty and got their cookies in this start.
    pub fresh: bool,
    pub ledgers: LedgerTable,
    pub cache: WriteCache,
    pub read_cache: ReadCache,
    /// One a journal directory; at least one.
    pub journals: Vec<JournalQueue>,
    pub logs: Arc<EntryLogs>,
    pub index: LocationIndex,
    pub counters: Counters,
    pub poison: Poison,
    pub shutdown: Shutdown,
    /// Deleted ledgers whose entries are still in cache or index. Bounded by the number of ledgers.
    pub gone: Mutex<BTreeSet<LedgerId>>,
    pub leaving: Leaving,
    /// Asked to leave: no adds but recovery's and repair's.
    pub draining: AtomicBool,
    damaged: Mutex<BTreeSet<LedgerId>>,
    /// Ledgers in limbo were told to whoever asks for damage.
    pub limbo_told: AtomicBool,
    pub stopped: AtomicBool,
    /// Held until the stop, so that no second process uses the folders.
    pub locks: Mutex<Vec<Box<dyn DiskLock>>>,
    /// Callers waiting for a last add confirmed to move.
    pub waiting_readers: AtomicUsize,
    /// Free space of the folders.
    pub spaces: Arc<Spaces>,
}

/// The parts of [`Shared`] that start-up made.
pub(super) struct SharedParts {
    pub runtime: Runtime,
    pub config: BookieConfig,
    pub id: BookieId,
    pub fresh: bool,
    pub ledgers: LedgerTable,
    pub cache: WriteCache,
    /// One a journal directory; at least one.
    pub journals: Vec<JournalQueue>,
    pub logs: Arc<EntryLogs>,
    pub index: LocationIndex,
    pub counters: Counters,
    pub locks: Vec<Box<dyn DiskLock>>,
    pub spaces: Arc<Spaces>,
}

impl Shared {
    /// A bookie about to run.
    pub fn new(parts: SharedParts) -> Self {
        Self {
            read_cache: ReadCache::new(parts.config.read_cache_bytes),
            runtime: parts.runtime,
            config: parts.config,
            id: parts.id,
            fresh: parts.fresh,
            ledgers: parts.ledgers,
            cache: parts.cache,
            journals: parts.journals,
            logs: parts.logs,
            index: parts.index,
            counters: parts.counters,
            poison: Poison::default(),
            shutdown: Shutdown::new(),
            gone: Mutex::default(),
            leaving: Leaving::default(),
            draining: AtomicBool::new(false),
            damaged: Mutex::default(),
            limbo_told: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            locks: Mutex::new(parts.locks),
            waiting_readers: AtomicUsize::new(0),
            spaces: parts.spaces,
        }
    }

    /// A ledger's state; one never seen is made and gets its journal.
    pub fn find_or_create(&self, ledger: LedgerId, creator: CreatorToken) -> Arc<LedgerState> {
        if let Some(known) = self.ledgers.find(ledger) {
            return known;
        }
        let journal = self.spaces.choose_journal(ledger);
        self.ledgers.find_or_create(ledger, LedgerFacts::new(creator, journal))
    }

    /// The queue of a ledger's journal.
    pub fn journal_of(&self, ledger: &LedgerState) -> &JournalQueue {
        &self.journals[ledger.journal]
    }

    /// Where entries of a ledger go; `None` if it was deleted here.
    pub fn place(&self, ledger: LedgerId) -> Option<Placement> {
        let Some(state) = self.ledgers.find(ledger) else { return Some(Placement::default()) };
        let deleted = state.facts().deleted;
        (!deleted).then(|| self.spaces.place(&state))
    }

    /// Passes on what the index said. An index that cannot be read is made again by the next start, so the
    /// bookie takes nothing more and waits for it; reads of what the index still finds go on.
    pub fn index_said<T>(&self, result: Result<T, IndexError>) -> Result<T, IndexError> {
        if let Err(error) = &result
            && self.poison.reason().is_none()
            && !mutant!("S-index")
        {
            reached!("bookie: the index failed while running");
            tracing::error!(%error, "the index failed");
            self.poison.set(format!("the index must be made again: {error}"));
        }
        result
    }

    /// A copy of this ledger is damaged.
    pub fn note_damaged(&self, ledger: LedgerId) {
        let mut damaged = self.damaged.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if damaged.len() < DAMAGED_MAX {
            damaged.insert(ledger);
        }
    }

    /// Damaged ledgers since the last call.
    pub fn take_damaged(&self) -> BTreeSet<LedgerId> {
        let mut damaged = self.damaged.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::take(&mut *damaged)
    }

    /// Another process may use the folders now.
    pub fn release_locks(&self) {
        let locks = {
            let mut locks = self.locks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            std::mem::take(&mut *locks)
        };
        drop(locks);
    }

    /// Deleted ledgers to clean up.
    pub fn gone(&self) -> MutexGuard<'_, BTreeSet<LedgerId>> {
        self.gone.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
