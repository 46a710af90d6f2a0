//! Free space of each folder: which journal and which ledger directory take which ledger, and what the bookie
//! still takes.
//!
//! A ledger is stored in one directory, chosen when its first entries leave the write cache: by its id, among
//! the directories with room. It stays there, also when the directory takes no new ledgers any more, and goes
//! on in another one only when next to nothing is left.

use std::sync::atomic::{AtomicU8, Ordering};

use super::ledger_state::LedgerState;
use super::storage::Placement;
use crate::domain::LedgerId;
use crate::reached;

/// How much a folder, or the bookie, can still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    /// Everything.
    Enough,
    /// Fences, and what recovery and repair add; of a ledger directory: the ledgers it has.
    Low,
    /// Fences only; of a ledger directory: nothing.
    Reserve,
}

impl Space {
    /// With this much free now. Writes are welcome again only a quarter above the limit.
    const fn next(self, free: u64, low: u64) -> Self {
        if free < low / 4 {
            Self::Reserve
        } else if free < low || (!matches!(self, Self::Enough) && free < low + low / 4) {
            Self::Low
        } else {
            Self::Enough
        }
    }
}

struct Cell(AtomicU8);

impl Cell {
    fn get(&self) -> Space {
        match self.0.load(Ordering::Relaxed) {
            0 => Space::Enough,
            1 => Space::Low,
            _ => Space::Reserve,
        }
    }

    fn note(&self, free: u64, low: u64) {
        self.0.store(self.get().next(free, low) as u8, Ordering::Relaxed);
    }
}

/// The free space of all folders, as last looked at.
pub(super) struct Spaces {
    journals: Vec<Cell>,
    ledgers: Vec<Cell>,
    low: u64,
}

impl Spaces {
    /// Enough everywhere until somebody looks.
    pub fn new(journals: usize, ledger_directories: usize, low: u64) -> Self {
        let enough = |count: usize| (0..count.max(1)).map(|_| Cell(AtomicU8::new(0))).collect();
        Self { journals: enough(journals), ledgers: enough(ledger_directories), low }
    }

    /// Takes note of the free bytes of each journal folder and of each ledger directory.
    pub fn note(&self, journals: &[u64], ledgers: &[u64]) {
        let before = self.bookie();
        let cells = self.journals.iter().chain(&self.ledgers);
        for (cell, free) in cells.zip(journals.iter().chain(ledgers)) {
            cell.note(*free, self.low);
        }
        let space = self.bookie();
        if before != space {
            tracing::warn!(?journals, ?ledgers, ?space, "free disk space");
        }
    }

    /// What the bookie takes: as much as the best ledger directory and the best journal allow. The first
    /// directory must not run full altogether, index and checkpoint file are there.
    pub fn bookie(&self) -> Space {
        let best_of = |cells: &[Cell]| cells.iter().map(Cell::get).min().unwrap_or(Space::Enough);
        let first = match self.ledgers[0].get() {
            Space::Reserve => Space::Low,
            Space::Low | Space::Enough => Space::Enough,
        };
        best_of(&self.ledgers).max(first).max(best_of(&self.journals))
    }

    /// What a journal takes of the ledgers it has.
    pub fn of_journal(&self, journal: usize) -> Space {
        self.journals[journal].get()
    }

    /// The journal of a ledger that was never seen.
    pub fn choose_journal(&self, ledger: LedgerId) -> u8 {
        let chosen = choose(ledger, &self.journals);
        u8::try_from(chosen).unwrap_or(0)
    }

    /// Where entries of this ledger go. Remembers it in the ledger's facts.
    pub fn place(&self, ledger: &LedgerState) -> Placement {
        let known = ledger.facts().directory.map(usize::from);
        let directory = match known {
            Some(known) if self.takes_more(known) => known,
            _ => choose(ledger.id, &self.ledgers),
        };
        let moved = known.is_some_and(|known| known != directory);
        if moved {
            reached!("bookie: a ledger goes on in another directory");
        }
        if known != Some(directory) {
            ledger.facts().directory = u8::try_from(directory).ok();
        }
        Placement { directory, moved }
    }

    /// True if the directory takes more of its own ledgers, or no other one would.
    fn takes_more(&self, directory: usize) -> bool {
        let is_spent = |cell: &Cell| cell.get() == Space::Reserve;
        self.ledgers.get(directory).is_some_and(|cell| !is_spent(cell))
            || self.ledgers.iter().all(is_spent)
    }
}

/// The folder of a new ledger: beginning with the one its id falls on, the first of those with the most room.
fn choose(ledger: LedgerId, folders: &[Cell]) -> usize {
    let count = folders.len();
    let first = spread(ledger, count);
    let in_turn = (0..count).map(|step| (first + step) % count);
    // Of equal ones the first is found.
    let chosen = in_turn.min_by_key(|at| folders[*at].get()).unwrap_or(0);
    if chosen != first {
        reached!("bookie: a new ledger passes by a directory that is nearly full");
    }
    chosen
}

/// Ids follow one another: mixed, so that ledgers opened together do not fall on one place.
fn spread(ledger: LedgerId, places: usize) -> usize {
    let mixed = ledger.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(mixed % places.max(1) as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bookie::ledger_state::{LedgerFacts, LedgerTable};
    use crate::domain::CreatorToken;

    const LOW: u64 = 1000;

    fn ledger(table: &LedgerTable, id: u64) -> std::sync::Arc<LedgerState> {
        table.find_or_create(LedgerId(id), LedgerFacts::new(CreatorToken(1), 0))
    }

    #[test]
    fn a_ledger_stays_and_new_ones_go_where_there_is_room() {
        let (spaces, table) = (Spaces::new(1, 2, LOW), LedgerTable::default());
        spaces.note(&[5000], &[5000, 5000]);
        let places: Vec<Placement> =
            (1..=100).map(|id| spaces.place(&ledger(&table, id))).collect();
        let firsts = places.iter().filter(|place| place.directory == 0).count();
        assert!((30..70).contains(&firsts), "{firsts} of 100");
        // Nearly full: those that are there stay, no new one comes, the bookie is writable.
        spaces.note(&[5000], &[5000, 900]);
        assert_eq!(spaces.bookie(), Space::Enough);
        for (id, place) in (1..=100).zip(&places) {
            assert_eq!(spaces.place(&ledger(&table, id)), *place);
        }
        assert!((101..200).all(|id| spaces.place(&ledger(&table, id)).directory == 0));
        // Hysteresis.
        spaces.note(&[5000], &[5000, 1100]);
        assert_eq!(spaces.place(&ledger(&table, 200)).directory, 0);
        // Next to nothing: its ledgers go on in the other one, once.
        spaces.note(&[5000], &[5000, 200]);
        for id in 1..=100 {
            assert_eq!(spaces.place(&ledger(&table, id)).directory, 0);
            assert!(!spaces.place(&ledger(&table, id)).moved);
        }
        spaces.note(&[5000], &[900, 900]);
        assert_eq!(spaces.bookie(), Space::Low);
        spaces.note(&[5000], &[200, 5000]);
        assert_eq!(spaces.bookie(), Space::Low, "index and checkpoint file are in the first");
        spaces.note(&[200], &[5000, 5000]);
        assert_eq!(spaces.bookie(), Space::Reserve);
        spaces.note(&[5000], &[200, 200]);
        assert_eq!(spaces.bookie(), Space::Reserve);
        assert!(!spaces.place(&ledger(&table, 1)).moved, "nowhere to go");
    }
}
