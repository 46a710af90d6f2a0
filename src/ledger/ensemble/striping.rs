//! Round-robin striping: which positions of an ensemble hold an entry.

use crate::domain::EntryId;
use crate::ledger::Quorum;

/// Widest ensemble: positions are kept in 64-bit masks.
pub const ENSEMBLE_MAX: u32 = 64;

/// The striping of one ledger. Entry `e` is on positions `(e + k) mod E` for `k` in `0..Qw`; the
/// position depends on the entry's id, not on its place in the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    ensemble: i64,
    write: i64,
}

impl Striping {
    /// The striping of a quorum.
    pub fn new(quorum: Quorum) -> Self {
        Self { ensemble: i64::from(quorum.ensemble), write: i64::from(quorum.write) }
    }

    /// The write set of an entry, as positions, in striping order.
    pub fn positions(self, entry: EntryId) -> impl Iterator<Item = usize> + Clone {
        (0..self.write).map(move |k| (entry.0 + k).rem_euclid(self.ensemble) as usize)
    }

    /// True if the position is in the entry's write set.
    pub fn holds(self, position: usize, entry: EntryId) -> bool {
        if self.ensemble == self.write {
            return (position as i64) < self.ensemble;
        }
        (position as i64 - entry.0).rem_euclid(self.ensemble) < self.write
    }

    /// The write set as a mask of positions.
    pub fn mask(self, entry: EntryId) -> u64 {
        if self.ensemble == self.write {
            return u64::MAX >> (64 - self.ensemble);
        }
        self.positions(entry).fold(0, |mask, position| mask | (1 << position))
    }

    /// How many entries from `entry` on lie on `position` without a gap; 0 if `entry` does not.
    pub fn run_length(self, position: usize, entry: EntryId) -> u32 {
        if self.ensemble == self.write {
            return u32::MAX;
        }
        let offset = (position as i64 - entry.0).rem_euclid(self.ensemble);
        if offset < self.write { offset as u32 + 1 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn striping_is_round_robin_by_entry_id() {
        let striping = Striping::new(Quorum::new(5, 3, 2).unwrap());
        assert_eq!(striping.positions(EntryId(4)).collect::<Vec<_>>(), vec![4, 0, 1]);
        for entry in (0..20).map(EntryId) {
            for position in 0..5 {
                let held = striping.positions(entry).any(|p| p == position);
                assert_eq!(striping.holds(position, entry), held);
                assert_eq!(striping.mask(entry) >> position & 1 == 1, held);
                let run = striping.run_length(position, entry);
                for k in 0..i64::from(run) {
                    assert!(striping.holds(position, EntryId(entry.0 + k)));
                }
                assert!(!striping.holds(position, EntryId(entry.0 + i64::from(run))));
            }
        }
    }

    #[test]
    fn a_full_ensemble_holds_everything() {
        let striping = Striping::new(Quorum::new(3, 3, 2).unwrap());
        assert_eq!(striping.mask(EntryId(7)), 0b111);
        assert!(striping.holds(2, EntryId(7)) && !striping.holds(3, EntryId(7)));
    }
}
