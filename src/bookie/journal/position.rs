//! A place in a journal, and a place in each of several.

/// Where a group begins: all groups before it are behind this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bookie) struct JournalPosition {
    /// Sequence number of the group that begins here; grows by one a group, across files and restarts.
    pub sequence: u64,
    /// The file.
    pub file: u64,
    /// Offset in it.
    pub offset: u64,
}

/// A place in each of a bookie's journals, in the order of the configuration. Without an order of its own on
/// purpose: of two, each can be ahead of the other in some journal, and what holds has to hold in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookie) struct JournalPositions(Vec<JournalPosition>);

impl JournalPositions {
    /// These places, the first journal's first.
    pub const fn new(positions: Vec<JournalPosition>) -> Self {
        Self(positions)
    }

    /// How many journals there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The place in each journal.
    pub fn iter(&self) -> impl Iterator<Item = JournalPosition> {
        self.0.iter().copied()
    }

    /// One journal goes on; the others stay where they are.
    pub fn set(&mut self, journal: usize, position: JournalPosition) {
        if let Some(known) = self.0.get_mut(journal) {
            *known = position;
        }
    }

    /// Another journal, after the others.
    pub fn push(&mut self, position: JournalPosition) {
        self.0.push(position);
    }

    /// Planted bug S7: the first journal's place of one moment, the others' of a later one.
    pub fn with_later_others(&self, later: &Self) -> Self {
        let later = later.iter().skip(1);
        Self(self.iter().take(1).chain(later).collect())
    }

    /// True if in no journal this place is before the other one.
    pub fn is_nowhere_behind(&self, other: &Self) -> bool {
        self.len() == other.len() && self.0.iter().zip(&other.0).all(|(mine, other)| mine >= other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_journal_is_compared_on_its_own() {
        let at = |sequences: &[u64]| {
            let position =
                |sequence: &u64| JournalPosition { sequence: *sequence, file: 1, offset: 0 };
            JournalPositions::new(sequences.iter().map(position).collect())
        };
        assert!(at(&[2, 2]).is_nowhere_behind(&at(&[2, 1])));
        assert!(at(&[2, 2]).is_nowhere_behind(&at(&[2, 2])));
        assert!(!at(&[2, 1]).is_nowhere_behind(&at(&[1, 2])));
        assert!(!at(&[1, 2]).is_nowhere_behind(&at(&[2, 1])));
        assert!(!at(&[2]).is_nowhere_behind(&at(&[2, 1])));
        let mut moved = at(&[2, 1]);
        moved.set(1, JournalPosition { sequence: 5, file: 1, offset: 0 });
        assert_eq!(moved, at(&[2, 5]));
    }
}
