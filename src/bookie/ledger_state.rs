//! What the bookie remembers of each ledger, and the one lock per ledger that fence checks and admissions
//! share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

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
    /// The highest told.
    pub last_add_confirmed: EntryId,
    /// The highest entry stored and synced.
    pub last_entry: EntryId,
}

impl LedgerFacts {
    /// A ledger nothing is known of but its creator.
    pub const fn new(creator: CreatorToken) -> Self {
        Self {
            creator,
            bind_logged: false,
            fence: FenceState::Open,
            deleted: false,
            limbo: false,
            last_add_confirmed: EntryId::NONE,
            last_entry: EntryId::NONE,
        }
    }
}

/// One ledger and its lock.
pub(super) struct LedgerState {
    /// Its id.
    pub id: LedgerId,
    facts: Mutex<LedgerFacts>,
}

impl LedgerState {
    /// Locks the facts. Never held across a suspension point.
    pub fn facts(&self) -> MutexGuard<'_, LedgerFacts> {
        self.facts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// All ledgers. States are never dropped, so there is exactly one lock per ledger, and neither a fence nor
/// a tombstone can be forgotten.
#[derive(Default)]
pub(super) struct LedgerTable {
    ledgers: RwLock<BTreeMap<LedgerId, Arc<LedgerState>>>,
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
        let create = || Arc::new(LedgerState { id: ledger, facts: Mutex::new(facts) });
        Arc::clone(ledgers.entry(ledger).or_insert_with(create))
    }

    /// All ledgers, in id order.
    pub fn all(&self) -> Vec<Arc<LedgerState>> {
        let ledgers = self.ledgers.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        ledgers.values().cloned().collect()
    }
}
