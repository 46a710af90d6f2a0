//! What of a topic one cursor has acknowledged. Pure: told of acknowledgements, asked about entries.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;

use super::snapshot::CursorSnapshot;
use crate::broker::managed_ledger::Chain;
use crate::broker::messages::{AckRequest, AckTarget, AckType};
use crate::domain::{EntryId, LedgerId, Position};
use crate::mutant;

/// Whether an entry still needs delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// Not acknowledged at all.
    Unacknowledged,
    /// Part of the batch: bit set = not yet acknowledged.
    Partly(Vec<u64>),
    /// Acknowledged.
    Acknowledged,
}

/// The state. Everything beyond mark-delete lies at or below the log's end.
#[derive(Clone, Debug)]
pub struct CursorState {
    mark_delete: Position,
    /// Entries acknowledged beyond mark-delete. A ledger's bitmap is never empty.
    acknowledged: BTreeMap<LedgerId, RoaringBitmap>,
    acknowledged_count: u64,
    /// Batches acknowledged in part: bit set = not yet.
    partial: BTreeMap<Position, Vec<u64>>,
    recent: Recent,
}

/// What came to a state since it was last asked; nothing of it lies at or below mark-delete.
#[derive(Clone, Debug, Default)]
struct Recent {
    acknowledged: BTreeMap<LedgerId, RoaringBitmap>,
    partial: BTreeSet<Position>,
    is_reset: bool,
}

/// Leaves what is beyond a position.
fn cut(acknowledged: &mut BTreeMap<LedgerId, RoaringBitmap>, position: Position) {
    let mut kept = acknowledged.split_off(&position.ledger);
    if let Some(bitmap) = kept.get_mut(&position.ledger) {
        if let Ok(entry) = u32::try_from(position.entry.0) {
            bitmap.remove_range(..=entry);
        }
        if bitmap.is_empty() {
            kept.remove(&position.ledger);
        }
    }
    *acknowledged = kept;
}

impl CursorState {
    /// Nothing acknowledged after `mark_delete`.
    pub fn new(mark_delete: Position) -> Self {
        Self {
            mark_delete,
            acknowledged: BTreeMap::new(),
            acknowledged_count: 0,
            partial: BTreeMap::new(),
            recent: Recent::default(),
        }
    }

    /// Everything up to here is acknowledged.
    pub fn mark_delete(&self) -> Position {
        self.mark_delete
    }

    /// Takes an acknowledgement. Positions that hold no committed entry are ignored. Answers whether
    /// anything changed.
    pub fn acknowledge(&mut self, chain: &Chain, request: &AckRequest) -> bool {
        let mut changed = false;
        for target in &request.targets {
            changed |= match request.ack_type {
                AckType::Individual => self.individual(chain, target),
                AckType::Cumulative => self.cumulative(chain, target),
            };
        }
        if changed {
            self.advance(chain);
        }
        changed
    }

    fn individual(&mut self, chain: &Chain, target: &AckTarget) -> bool {
        let position = target.position;
        let Ok(entry) = u32::try_from(position.entry.0) else { return false };
        if position <= self.mark_delete || !chain.contains(position) || self.holds(position) {
            return false;
        }
        if let Some(set) = &target.ack_set {
            let merged = match self.partial.get(&position) {
                Some(_) if mutant!("B16") => trimmed(set.clone()),
                Some(before) => {
                    trimmed(before.iter().zip(set).map(|(one, two)| one & two).collect())
                }
                None => trimmed(set.clone()),
            };
            if !merged.is_empty() {
                self.partial.insert(position, merged);
                self.recent.partial.insert(position);
                return true;
            }
        }
        self.partial.remove(&position);
        self.acknowledged.entry(position.ledger).or_default().insert(entry);
        self.recent.acknowledged.entry(position.ledger).or_default().insert(entry);
        self.acknowledged_count += 1;
        true
    }

    fn cumulative(&mut self, chain: &Chain, target: &AckTarget) -> bool {
        // Beyond the end there is nothing: the end is meant.
        let position = target.position.min(chain.last_confirmed());
        let set = target.ack_set.clone().map(trimmed).filter(|set| !set.is_empty());
        let up_to = if set.is_some() { chain.previous_position(position) } else { position };
        let mut changed = false;
        if up_to > self.mark_delete {
            self.set_mark_delete(up_to);
            changed = true;
        }
        if set.is_some() && position == target.position {
            changed |= self.individual(chain, target);
        }
        changed
    }

    fn set_mark_delete(&mut self, position: Position) {
        self.mark_delete = position;
        if mutant!("B7") {
            return;
        }
        let beyond = Position::new(position.ledger, position.entry.next());
        self.partial = self.partial.split_off(&beyond);
        self.recent.partial = self.recent.partial.split_off(&beyond);
        cut(&mut self.acknowledged, position);
        cut(&mut self.recent.acknowledged, position);
        self.acknowledged_count = self.acknowledged.values().map(RoaringBitmap::len).sum();
    }

    /// Moves mark-delete over what is acknowledged without a hole, over ledgers' borders.
    pub fn advance(&mut self, chain: &Chain) {
        while let Some((ledger, bitmap)) = self.acknowledged.first_key_value() {
            let Some(mut next) = chain.next_entry(self.mark_delete) else { return };
            if mutant!("B8") {
                next = Position::new(self.mark_delete.ledger, self.mark_delete.entry.next());
            }
            let Some(lowest) = bitmap.min() else { return };
            if next != Position::new(*ledger, EntryId(i64::from(lowest))) {
                return;
            }
            let mut last = lowest;
            while last < u32::MAX && bitmap.contains(last + 1) {
                last += 1;
            }
            self.set_mark_delete(Position::new(*ledger, EntryId(i64::from(last))));
        }
    }

    /// Starts over so that `next` is the first entry to deliver; with a bit set, only those messages of it.
    pub fn reset(&mut self, chain: &Chain, next: Position, ack_set: Option<Vec<u64>>) {
        let end = chain.next_position(chain.last_confirmed());
        let asked = next;
        let next = next.clamp(chain.first_position().min(end), end);
        *self = Self::new(chain.previous_position(next));
        self.recent.is_reset = true;
        if let Some(ack_set) = ack_set
            && next == asked
        {
            self.individual(chain, &AckTarget { position: next, ack_set: Some(ack_set) });
            self.advance(chain);
        }
    }

    fn holds(&self, position: Position) -> bool {
        u32::try_from(position.entry.0).is_ok_and(|entry| {
            self.acknowledged.get(&position.ledger).is_some_and(|bitmap| bitmap.contains(entry))
        })
    }

    /// Whether an entry still needs delivery.
    pub fn entry_state(&self, position: Position) -> EntryState {
        if position <= self.mark_delete || self.holds(position) {
            return EntryState::Acknowledged;
        }
        match self.partial.get(&position) {
            Some(set) => EntryState::Partly(set.clone()),
            None => EntryState::Unacknowledged,
        }
    }

    /// Entries committed and not wholly acknowledged.
    pub fn backlog(&self, chain: &Chain) -> u64 {
        chain
            .entries_between(self.mark_delete, chain.last_confirmed())
            .saturating_sub(self.acknowledged_count)
    }

    /// The state as it is stored, with at most `max` ranges and `max` partial batches: the lowest; the
    /// rest is delivered again after a restart. Also tells whether all of it fitted.
    pub fn snapshot(&self, max: usize) -> (CursorSnapshot, bool) {
        let mut ranges = Vec::new();
        let mut complete = true;
        'all: for (ledger, bitmap) in &self.acknowledged {
            let mut runs = bitmap.iter();
            while let Some(run) = runs.next_range() {
                if ranges.len() >= max {
                    complete = false;
                    break 'all;
                }
                ranges.push((*ledger, *run.start(), *run.end()));
            }
        }
        complete &= self.partial.len() <= max;
        let partial = self.partial.iter().take(max).map(|(at, set)| (*at, set.clone())).collect();
        (CursorSnapshot { mark_delete: self.stored_mark_delete(), ranges, partial }, complete)
    }

    fn stored_mark_delete(&self) -> Position {
        match self.acknowledged.last_key_value() {
            Some((ledger, bitmap)) if mutant!("B22") => {
                Position::new(*ledger, EntryId(bitmap.max().map_or(0, i64::from)))
            }
            _ => self.mark_delete,
        }
    }

    /// Entries acknowledged beyond mark-delete and batches acknowledged in part: how much there is to store.
    pub fn beyond_mark_delete(&self) -> u64 {
        self.acknowledged_count + self.partial.len() as u64
    }

    /// What came to this state since the last call, or `None` if something also went from it (a reset): then
    /// only the whole state says it.
    pub fn take_change(&mut self) -> Option<CursorSnapshot> {
        let recent = std::mem::take(&mut self.recent);
        if recent.is_reset {
            return None;
        }
        let mut ranges = Vec::new();
        for (ledger, bitmap) in &recent.acknowledged {
            let mut runs = bitmap.iter();
            while let Some(run) = runs.next_range() {
                ranges.push((*ledger, *run.start(), *run.end()));
            }
        }
        let now = |at: &Position| Some((*at, self.partial.get(at)?.clone()));
        let partial = recent.partial.iter().filter_map(now).collect();
        Some(CursorSnapshot { mark_delete: self.stored_mark_delete(), ranges, partial })
    }

    /// The state from what was stored, clamped to the log as it is: what is acknowledged never grows by
    /// it. Also tells whether it pointed beyond the log's end.
    pub fn restore(chain: &Chain, snapshot: &CursorSnapshot) -> (Self, bool) {
        let end = chain.last_confirmed();
        let beyond = snapshot.mark_delete > end && snapshot.mark_delete.entry != EntryId::NONE;
        let mut state = Self::new(snapshot.mark_delete.min(end));
        for (ledger, first, last) in &snapshot.ranges {
            let Some(kept) = chain.get(*ledger).filter(|kept| kept.entries > 0) else { continue };
            let last = (*last).min(u32::try_from(kept.entries - 1).unwrap_or(u32::MAX));
            if *first <= last {
                state.acknowledged.entry(*ledger).or_default().insert_range(*first..=last);
            }
        }
        for (position, set) in &snapshot.partial {
            if *position > state.mark_delete && chain.contains(*position) && !state.holds(*position)
            {
                state.partial.insert(*position, set.clone());
            }
        }
        state.set_mark_delete(state.mark_delete);
        state.advance(chain);
        (state, beyond)
    }
}

/// Without trailing empty words: clients leave them out, so a missing word is an acknowledged one.
fn trimmed(mut set: Vec<u64>) -> Vec<u64> {
    while set.last() == Some(&0) {
        set.pop();
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ledger: u64, entry: i64) -> Position {
        Position::new(LedgerId(ledger), EntryId(entry))
    }

    fn chain() -> Chain {
        let mut chain = Chain::default();
        for (id, entries) in [(3, 2), (5, 0), (8, 4)] {
            chain.push(LedgerId(id), 0, 1);
            chain.update_last(|last| last.entries = entries);
        }
        chain
    }

    fn ack(state: &mut CursorState, position: Position, ack_set: Option<Vec<u64>>) {
        let targets = vec![AckTarget { position, ack_set }];
        state.acknowledge(&chain(), &AckRequest { ack_type: AckType::Individual, targets });
    }

    #[test]
    fn mark_delete_moves_over_borders_and_ranges_survive_storage() {
        let mut state = CursorState::new(at(0, -1));
        assert_eq!(state.backlog(&chain()), 6);
        ack(&mut state, at(8, 0), None);
        ack(&mut state, at(8, 2), None);
        ack(&mut state, at(3, 1), None);
        ack(&mut state, at(8, 9), None);
        assert_eq!((state.mark_delete(), state.backlog(&chain())), (at(0, -1), 3));
        let (stored, complete) = state.snapshot(10);
        assert!(complete);
        assert_eq!(CursorState::restore(&chain(), &stored).0.snapshot(10).0, stored);
        assert_eq!(state.snapshot(1).0.ranges, vec![(LedgerId(3), 1, 1)]);
        assert!(!state.snapshot(1).1);
        ack(&mut state, at(3, 0), None);
        assert_eq!((state.mark_delete(), state.backlog(&chain())), (at(8, 0), 2));
        assert_eq!(state.entry_state(at(8, 2)), EntryState::Acknowledged);
    }

    #[test]
    fn bit_sets_are_combined() {
        let mut state = CursorState::new(at(3, -1));
        ack(&mut state, at(3, 0), Some(vec![0b0110]));
        ack(&mut state, at(3, 0), Some(vec![0b1011]));
        assert_eq!(state.entry_state(at(3, 0)), EntryState::Partly(vec![0b0010]));
        ack(&mut state, at(3, 0), Some(vec![0b1101]));
        assert_eq!(state.mark_delete(), at(3, 0));
        state.reset(&chain(), at(8, 1), Some(vec![0b11]));
        assert_eq!(state.mark_delete(), at(8, 0));
        assert_eq!(state.entry_state(at(8, 1)), EntryState::Partly(vec![0b11]));
    }

    fn ack_up_to(state: &mut CursorState, position: Position, ack_set: Option<Vec<u64>>) -> bool {
        let targets = vec![AckTarget { position, ack_set }];
        state.acknowledge(&chain(), &AckRequest { ack_type: AckType::Cumulative, targets })
    }

    /// What changed is written, so nothing may be said to have changed for ever.
    #[test]
    fn what_was_acknowledged_before_changes_nothing() {
        let mut state = CursorState::new(at(3, -1));
        assert!(ack_up_to(&mut state, at(8, 1), None));
        assert!(!ack_up_to(&mut state, at(8, 1), None));
        assert!(!ack_up_to(&mut state, at(3, 1), None));
        assert_eq!(state.mark_delete(), at(8, 1));
        assert!(ack_up_to(&mut state, at(8, 9), None), "beyond the end, the end is meant");
        assert_eq!((state.mark_delete(), state.backlog(&chain())), (at(8, 3), 0));
        assert!(!ack_up_to(&mut state, at(9, 0), None));
    }

    #[test]
    fn a_batch_acknowledged_in_part_stops_what_goes_up_to_it() {
        let mut state = CursorState::new(at(3, -1));
        assert!(ack_up_to(&mut state, at(8, 1), Some(vec![0b10])));
        assert_eq!(state.mark_delete(), at(8, 0));
        assert_eq!(state.entry_state(at(8, 1)), EntryState::Partly(vec![0b10]));
        assert!(ack_up_to(&mut state, at(8, 9), Some(vec![0b10])));
        assert_eq!(state.mark_delete(), at(8, 2), "the bits are of an entry that is not there");
        assert_eq!(state.entry_state(at(8, 3)), EntryState::Unacknowledged);
    }

    #[test]
    fn what_there_is_to_store_is_counted_and_limited() {
        let mut state = CursorState::new(at(3, -1));
        ack(&mut state, at(3, 1), None);
        ack(&mut state, at(8, 1), None);
        ack(&mut state, at(8, 0), Some(vec![0b10]));
        ack(&mut state, at(8, 3), Some(vec![0b1]));
        assert_eq!(state.beyond_mark_delete(), 4);
        let (stored, complete) = state.snapshot(2);
        assert!(complete && (stored.ranges.len(), stored.partial.len()) == (2, 2));
        let (stored, complete) = state.snapshot(1);
        assert!(!complete && (stored.ranges.len(), stored.partial.len()) == (1, 1));
        ack(&mut state, at(3, 0), None);
        assert_eq!((state.mark_delete(), state.beyond_mark_delete()), (at(3, 1), 3));
        assert!(!state.snapshot(1).1, "two batches in one place");
    }

    #[test]
    fn a_position_at_the_end_is_not_beyond_it() {
        for (mark_delete, is_beyond) in [(at(8, 3), false), (at(8, 4), true), (at(9, -1), false)] {
            let stored = CursorSnapshot { mark_delete, ranges: Vec::new(), partial: Vec::new() };
            let (state, beyond) = CursorState::restore(&chain(), &stored);
            assert_eq!((beyond, state.mark_delete()), (is_beyond, at(8, 3)));
        }
    }

    #[test]
    fn a_position_beyond_the_end_is_repaired() {
        let stored = CursorSnapshot {
            mark_delete: at(8, 7),
            ranges: vec![(LedgerId(8), 9, 12), (LedgerId(4), 0, 3)],
            // What comes there later is something else.
            partial: vec![(at(4, 0), vec![1]), (at(8, 9), vec![1])],
        };
        let (state, beyond) = CursorState::restore(&chain(), &stored);
        assert!(beyond);
        assert_eq!((state.mark_delete(), state.backlog(&chain())), (at(8, 3), 0));
        assert_eq!(state.snapshot(10).0.partial, []);
        assert_eq!(state.entry_state(at(8, 9)), EntryState::Unacknowledged);
    }
}
