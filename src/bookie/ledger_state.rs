//! What the bookie remembers of each ledger, and the one lock per ledger that fence checks and admissions
//! share.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::domain::{CreatorToken, EntryId, LedgerId};

/// How far a fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceState {
    /// Adds are welcome.
    Open,
    /// Adds are refused; the record is on its way to the journal.
    Pending,
    /// Adds are refused for ever.
    Durable,
}

/// What is known of one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LedgerFacts {
    /// Whose it is.
    pub creator: CreatorToken,
    /// The journal (or the checkpoint file) names the creator already.
    pub bind_logged: bool,
    /// Fenced or not.
    pub fence: FenceState,
    /// Deleted for ever.
    pub deleted: bool,
    /// Part of this ledger's data may be lost to damage: a missing entry is unknown, not absent.
    pub limbo: bool,
    /// Which journal all its records go to, counted from 0. Chosen when the ledger is first seen and never
    /// changed: its records keep their order.
    pub journal: u8,
    /// Which ledger directory its entries go to, counted from 0; `None` before the first were stored.
    pub directory: Option<u8>,
    /// The highest told.
    pub last_add_confirmed: EntryId,
    /// The highest entry stored and synced.
    pub last_entry: EntryId,
}

impl LedgerFacts {
    /// A ledger nothing is known of but its creator and its journal.
    pub const fn new(creator: CreatorToken, journal: u8) -> Self {
        Self {
            creator,
            bind_logged: false,
            fence: FenceState::Open,
            deleted: false,
            limbo: false,
            journal,
            directory: None,
            last_add_confirmed: EntryId::NONE,
            last_entry: EntryId::NONE,
        }
    }
}

/// One ledger and its lock.
pub(super) struct LedgerState {
    /// Its id.
    pub id: LedgerId,
    /// Its journal, told without the lock.
    pub journal: usize,
    facts: Mutex<Tracked>,
    changed: Arc<Mutex<Vec<LedgerId>>>,
    /// Wakes whoever waits for the facts to change.
    news: Notify,
}

struct Tracked {
    facts: LedgerFacts,
    /// The ledger is in the list of changed ones.
    listed: bool,
}

/// The facts, locked. Whoever takes them to change them puts the ledger on the list of changed ones, under
/// the same lock.
pub(super) struct FactsGuard<'a> {
    tracked: MutexGuard<'a, Tracked>,
    state: &'a LedgerState,
    touched: bool,
}

impl Drop for FactsGuard<'_> {
    fn drop(&mut self) {
        if self.touched {
            self.state.news.notify_waiters();
        }
    }
}

impl Deref for FactsGuard<'_> {
    type Target = LedgerFacts;

    fn deref(&self) -> &LedgerFacts {
        &self.tracked.facts
    }
}

impl DerefMut for FactsGuard<'_> {
    fn deref_mut(&mut self) -> &mut LedgerFacts {
        self.touched = true;
        if !self.tracked.listed {
            self.tracked.listed = true;
            locked(&self.state.changed).push(self.state.id);
        }
        &mut self.tracked.facts
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl LedgerState {
    /// Locks the facts. Never held across a suspension point.
    pub fn facts(&self) -> FactsGuard<'_> {
        FactsGuard { tracked: locked(&self.facts), state: self, touched: false }
    }

    /// Completes at the next change of the facts after the call that made this future.
    pub fn changed(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// The facts, to be written down: a change after this lists the ledger again.
    fn take(&self) -> (LedgerId, LedgerFacts) {
        let mut tracked = locked(&self.facts);
        tracked.listed = false;
        (self.id, tracked.facts)
    }
}

/// All ledgers. States are never dropped, so there is exactly one lock per ledger, and neither a fence nor
/// a tombstone can be forgotten.
#[derive(Default)]
pub(super) struct LedgerTable {
    ledgers: RwLock<BTreeMap<LedgerId, Arc<LedgerState>>>,
    /// Ledgers whose facts changed since they were last taken; each is in it once.
    changed: Arc<Mutex<Vec<LedgerId>>>,
}

impl LedgerTable {
    /// A ledger's state, if it was ever seen.
    pub fn find(&self, ledger: LedgerId) -> Option<Arc<LedgerState>> {
        let ledgers = self.ledgers.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledgers.get(&ledger).cloned()
    }

    /// A ledger's state, created with these facts if it was never seen.
    pub fn find_or_create(&self, ledger: LedgerId, facts: LedgerFacts) -> Arc<LedgerState> {
        if let Some(state) = self.find(ledger) {
            return state;
        }
        let mut ledgers = self.ledgers.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let create = || {
            locked(&self.changed).push(ledger);
            let journal = usize::from(facts.journal);
            let facts = Mutex::new(Tracked { facts, listed: true });
            let changed = Arc::clone(&self.changed);
            Arc::new(LedgerState { id: ledger, journal, facts, changed, news: Notify::new() })
        };
        Arc::clone(ledgers.entry(ledger).or_insert_with(create))
    }

    /// All ledgers, in id order.
    pub fn all(&self) -> Vec<Arc<LedgerState>> {
        let ledgers = self.ledgers.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledgers.values().cloned().collect()
    }

    /// How many ledgers there are.
    pub fn len(&self) -> usize {
        self.ledgers.read().unwrap_or_else(|poisoned| poisoned.into_inner()).len()
    }

    /// The facts that changed since they were last taken, in id order.
    pub fn take_changed(&self) -> Vec<(LedgerId, LedgerFacts)> {
        let mut changed = std::mem::take(&mut *locked(&self.changed));
        changed.sort_unstable();
        changed.iter().filter_map(|id| Some(self.find(*id)?.take())).collect()
    }

    /// The facts of all ledgers, in id order; none counts as changed then.
    pub fn take_all(&self) -> Vec<(LedgerId, LedgerFacts)> {
        locked(&self.changed).clear();
        self.all().iter().map(|ledger| ledger.take()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_listed_once_a_change_and_never_for_a_look() {
        let table = LedgerTable::default();
        let ids = |facts: Vec<(LedgerId, LedgerFacts)>| -> Vec<u64> {
            facts.iter().map(|(ledger, _)| ledger.0).collect()
        };
        let one = table.find_or_create(LedgerId(1), LedgerFacts::new(CreatorToken(5), 0));
        let two = table.find_or_create(LedgerId(2), LedgerFacts::new(CreatorToken(5), 0));
        assert_eq!(ids(table.take_changed()), [1, 2]);
        two.facts().deleted = true;
        two.facts().limbo = true;
        assert!(!one.facts().deleted);
        assert_eq!(ids(table.take_changed()), [2]);
        one.facts().deleted = true;
        assert_eq!(ids(table.take_all()), [1, 2]);
        assert_eq!(ids(table.take_changed()), [0; 0]);
        one.facts().limbo = true;
        assert_eq!(ids(table.take_changed()), [1]);
    }
}
