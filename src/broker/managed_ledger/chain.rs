//! The chain of ledgers as known in memory: where positions lie and what comes after them. Every record
//! written to metadata is made from it.

use super::stream::StreamState;
use crate::domain::{EntryId, LedgerId, Position, WallTime};

/// One ledger of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLedger {
    /// The ledger.
    pub id: LedgerId,
    /// Committed entries.
    pub entries: u64,
    /// Bytes of payload in them.
    pub bytes: u64,
    /// Index in the topic of its first message.
    pub first_index: u64,
    /// Entries ever committed to the topic before it: the sequence number of its first entry.
    pub first_number: u64,
    /// The smallest publish time in it, if known.
    pub publish_min: Option<WallTime>,
    /// Its end is decided.
    pub closed: bool,
    /// The topic's epoch when it was listed: of the one owner who wrote it.
    pub epoch: u64,
}

/// Ledgers in order; only the last may be open.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The ledgers, by rising id.
    pub ledgers: Vec<ChainLedger>,
    /// What it is told as a stream, if it is one.
    pub stream: Option<StreamState>,
    /// The number of the next entry to be committed; kept when ledgers leave the list.
    next_number: u64,
    /// The end before the ledgers here were written, so that it never goes back in memory.
    last_confirmed: Option<Position>,
}

/// The position before everything.
pub const BEFORE_ALL: Position = Position::new(LedgerId(0), EntryId::NONE);

impl Chain {
    /// A chain of these ledgers.
    pub fn new(ledgers: Vec<ChainLedger>) -> Self {
        let mut chain = Self { ledgers, ..Self::default() };
        chain.note_end();
        chain
    }

    fn note_end(&mut self) {
        if let Some(last) = self.ledgers.last() {
            self.next_number = self.next_number.max(last.first_number + last.entries);
        }
        let filled = self.ledgers.iter().rev().find(|ledger| ledger.entries > 0);
        if let Some(ledger) = filled {
            let end = Position::new(ledger.id, EntryId(ledger.entries as i64 - 1));
            self.last_confirmed = self.last_confirmed.max(Some(end));
        } else if self.last_confirmed.is_none() {
            self.last_confirmed =
                self.ledgers.last().map(|ledger| Position::new(ledger.id, EntryId::NONE));
        }
    }

    /// The last committed position.
    pub fn last_confirmed(&self) -> Position {
        self.last_confirmed.unwrap_or(BEFORE_ALL)
    }

    /// The last ledger grew, or its end was decided.
    pub fn update_last(&mut self, change: impl FnOnce(&mut ChainLedger)) {
        if let Some(last) = self.ledgers.last_mut() {
            change(last);
        }
        self.note_end();
    }

    /// A new, empty ledger at the end.
    pub fn push(&mut self, id: LedgerId, first_index: u64, epoch: u64) {
        self.ledgers.push(ChainLedger {
            id,
            entries: 0,
            bytes: 0,
            first_index,
            first_number: self.next_number,
            publish_min: None,
            closed: false,
            epoch,
        });
    }

    /// The sequence number the next committed entry gets.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The first sequence number that may be read as one of the stream.
    pub fn first_number(&self) -> u64 {
        let first = self.ledgers.first().map_or(self.next_number, |ledger| ledger.first_number);
        self.stream.map_or(first, |stream| first.max(stream.kept_from))
    }

    /// Where the committed entry of this number is, if it is kept.
    pub fn position_of(&self, number: u64) -> Option<Position> {
        let behind = self.ledgers.partition_point(|ledger| ledger.first_number <= number);
        // Ledgers without entries begin where the next one does.
        let holder = self.ledgers[..behind].iter().rev().find(|ledger| ledger.entries > 0)?;
        let entry = number - holder.first_number;
        (entry < holder.entries).then(|| Position::new(holder.id, EntryId(entry as i64)))
    }

    /// The number of the entry at a position of a ledger that is kept.
    pub fn number_of(&self, position: Position) -> Option<u64> {
        let ledger = self.get(position.ledger)?;
        u64::try_from(position.entry.0).ok().map(|entry| ledger.first_number + entry)
    }

    /// The ledger of this id.
    pub fn get(&self, id: LedgerId) -> Option<&ChainLedger> {
        let at = self.ledgers.binary_search_by_key(&id, |ledger| ledger.id).ok()?;
        self.ledgers.get(at)
    }

    /// The first entry kept, or where the first will be.
    pub fn first_position(&self) -> Position {
        match self.ledgers.first() {
            Some(_) => self.next_position(Position::new(LedgerId(0), EntryId::NONE)),
            None => {
                let last = self.last_confirmed();
                Position::new(last.ledger, last.entry.next())
            }
        }
    }

    /// The first committed entry after `position`.
    pub fn next_entry(&self, position: Position) -> Option<Position> {
        let start = self.ledgers.partition_point(|ledger| ledger.id < position.ledger);
        for ledger in self.ledgers.iter().skip(start) {
            let entry =
                if ledger.id == position.ledger { position.entry.next() } else { EntryId(0) };
            if entry.0 < ledger.entries as i64 {
                return Some(Position::new(ledger.id, entry.max(EntryId(0))));
            }
        }
        None
    }

    /// The place after `position`: the next entry, or where it will be.
    pub fn next_position(&self, position: Position) -> Position {
        if let Some(next) = self.next_entry(position) {
            return next;
        }
        match self.ledgers.last() {
            Some(last) if !last.closed && last.id > position.ledger => {
                Position::new(last.id, EntryId(last.entries as i64))
            }
            _ => Position::new(position.ledger, position.entry.next()),
        }
    }

    /// The last committed entry before `position`, or a place just before what is kept.
    pub fn previous_position(&self, position: Position) -> Position {
        for ledger in self.ledgers.iter().rev().filter(|ledger| ledger.id <= position.ledger) {
            let last = ledger.entries as i64 - 1;
            let entry =
                if ledger.id == position.ledger { last.min(position.entry.0 - 1) } else { last };
            if entry >= 0 {
                return Position::new(ledger.id, EntryId(entry));
            }
        }
        match self.ledgers.first() {
            Some(first) => Position::new(first.id, EntryId::NONE).min(self.last_confirmed()),
            None => self.last_confirmed(),
        }
    }

    /// Whether a committed entry is at `position`.
    pub fn contains(&self, position: Position) -> bool {
        position.entry.0 >= 0
            && self.get(position.ledger).is_some_and(|l| position.entry.0 < l.entries as i64)
    }

    /// Committed entries up to and including `position`.
    fn rank(&self, position: Position) -> u64 {
        self.ledgers
            .iter()
            .take_while(|ledger| ledger.id <= position.ledger)
            .map(|ledger| {
                if ledger.id < position.ledger {
                    ledger.entries
                } else {
                    ledger.entries.min(u64::try_from(position.entry.0 + 1).unwrap_or(0))
                }
            })
            .sum()
    }

    /// Committed entries in `(after, up_to]`.
    pub fn entries_between(&self, after: Position, up_to: Position) -> u64 {
        self.rank(up_to).saturating_sub(self.rank(after))
    }

    /// How many ledgers at the front a stream has given up; all of them if it is none.
    pub fn given_up(&self) -> usize {
        let Some(stream) = self.stream else { return self.ledgers.len() };
        let is_below =
            |ledger: &&ChainLedger| ledger.first_number + ledger.entries <= stream.kept_from;
        self.ledgers.iter().take_while(is_below).count()
    }

    /// How many ledgers at the front hold nothing above `limit`. Never the last.
    pub fn consumed(&self, limit: Position) -> usize {
        let candidates = self.ledgers.len().saturating_sub(1);
        self.ledgers
            .iter()
            .take(candidates)
            .take_while(|l| {
                l.entries == 0 || limit >= Position::new(l.id, EntryId(l.entries as i64 - 1))
            })
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ledger: u64, entry: i64) -> Position {
        Position::new(LedgerId(ledger), EntryId(entry))
    }

    #[test]
    fn positions_move_over_borders() {
        let mut chain = Chain::default();
        assert_eq!(chain.last_confirmed(), BEFORE_ALL);
        for (id, entries) in [(3, 2), (5, 0), (8, 4)] {
            chain.push(LedgerId(id), 0, 1);
            chain.update_last(|last| last.entries = entries);
        }
        assert_eq!(chain.last_confirmed(), at(8, 3));
        assert_eq!(chain.first_position(), at(3, 0));
        assert_eq!(chain.next_position(at(3, 1)), at(8, 0));
        assert_eq!(chain.next_position(at(8, 3)), at(8, 4));
        assert_eq!(chain.previous_position(at(8, 0)), at(3, 1));
        assert_eq!(chain.previous_position(at(3, 0)), at(3, -1));
        assert_eq!(chain.entries_between(at(3, 0), at(8, 1)), 3);
        assert_eq!(chain.entries_between(at(0, -1), at(8, 3)), 6);
        assert_eq!((chain.consumed(at(3, 0)), chain.consumed(at(3, 1))), (0, 2));
        let places: Vec<_> = (0..7).map(|number| chain.position_of(number)).collect();
        let held = [at(3, 0), at(3, 1), at(8, 0), at(8, 1), at(8, 2), at(8, 3)];
        assert!(held.iter().eq(places.iter().flatten()) && places[6].is_none());
        assert_eq!((chain.first_number(), chain.next_number()), (0, 6));
        assert_eq!(chain.number_of(at(8, 1)), Some(3));
        assert!(
            chain.contains(at(8, 3)) && !chain.contains(at(8, 4)) && !chain.contains(at(8, -1))
        );
        chain.ledgers.remove(0);
        assert_eq!((chain.first_number(), chain.position_of(1)), (2, None));
        chain.ledgers.clear();
        chain.push(LedgerId(9), 0, 1);
        assert_eq!((chain.first_number(), chain.next_number()), (6, 6));
    }
}
