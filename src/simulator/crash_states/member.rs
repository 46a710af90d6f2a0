//! What a member has promised, and which states of its files keep it: one after some write of those it began,
//! not before the last write that a promise rests on.

use std::collections::BTreeMap;

use super::group::Fact;
use crate::metadata::consensus::{Entry, HardState, Index, Machine, MemberId, Term};

/// Term, vote and log, as a machine holds them.
#[derive(Clone, Default)]
pub(super) struct MemberState {
    hard_state: HardState,
    /// Everything up to here is in the snapshot, or was when this began.
    base: Index,
    entries: BTreeMap<Index, Entry>,
}

impl MemberState {
    pub(super) fn of(machine: &Machine) -> Self {
        let log = machine.log();
        let entries = log.entries().map(|entry| (entry.index, entry.clone())).collect();
        Self { hard_state: machine.hard_state(), base: log.start_index(), entries }
    }

    fn last(&self) -> Index {
        self.entries.last_key_value().map_or(self.base, |(index, _)| (*index).max(self.base))
    }

    fn put(&mut self, entries: &[Entry]) {
        if let Some(first) = entries.first() {
            self.entries.split_off(&first.index);
            self.entries.extend(entries.iter().map(|entry| (entry.index, entry.clone())));
        }
    }

    /// The same but for what a snapshot stands for.
    fn is(&self, other: &Self) -> bool {
        let base = self.base.max(other.base);
        let above = |state: &Self| -> Vec<Entry> {
            state.entries.range(base + 1..).map(|(_, entry)| entry.clone()).collect()
        };
        self.hard_state == other.hard_state
            && self.last() == other.last()
            && self.last() >= base
            && above(self) == above(other)
    }

    fn has(&self, index: Index, term: Option<Term>) -> bool {
        match self.entries.get(&index) {
            Some(entry) => term.is_none_or(|term| term == entry.term),
            None => index <= self.base,
        }
    }
}

/// A member's promises.
#[derive(Default)]
pub(super) struct Member {
    /// Its state after each write it began; none before its first start.
    states: Vec<MemberState>,
    /// No state before this one keeps all promises about entries.
    floor: usize,
    term: Term,
    votes: BTreeMap<Term, MemberId>,
    /// It said that it has an entry that it had never begun to write.
    unwritten: Option<Index>,
}

impl Member {
    pub(super) fn of(id: MemberId, facts: &[Fact]) -> Self {
        let mut member = Self::default();
        facts.iter().filter(|fact| fact.member() == id).for_each(|fact| member.take(fact));
        member
    }

    fn take(&mut self, fact: &Fact) {
        let mut state = self.states.last().cloned().unwrap_or_default();
        match fact {
            Fact::Restored(_, found) => self.states.push(found.clone()),
            Fact::Writes(_, write) => {
                state.hard_state = write.hard_state.unwrap_or(state.hard_state);
                state.put(&write.entries);
                self.states.push(state);
            }
            Fact::Installs(_, index, hard_state, entries) => {
                let mut installed =
                    MemberState { hard_state: *hard_state, base: *index, ..Default::default() };
                installed.put(entries);
                self.states.push(installed);
            }
            Fact::InTerm(_, term) => self.term = self.term.max(*term),
            Fact::Voted(_, term, to) => _ = self.votes.insert(*term, *to),
            Fact::Matched(_, index) => {
                let term = state.entries.get(index).map(|entry| entry.term);
                let mut from = self.states.iter().skip(self.floor);
                match from.position(|state| state.has(*index, term)) {
                    Some(later) => self.floor += later,
                    None => self.unwritten = self.unwritten.or(Some(*index)),
                }
            }
        }
    }

    pub(super) fn hold(&self, found: &MemberState) -> Result<u64, String> {
        if let Some(index) = self.unwritten {
            return Err(format!("it said that it has entry {index}, which it had not written"));
        }
        let HardState { term, vote } = found.hard_state;
        if term < self.term {
            return Err(format!("it is in term {term} and was in term {}", self.term));
        }
        if let Some(voted) = self.votes.get(&term)
            && vote != Some(*voted)
        {
            return Err(format!("in term {term} it voted for {voted}, its vote is {vote:?}"));
        }
        if self.states.is_empty() {
            return Ok(1);
        }
        let keeps = self.states[self.floor..].iter().any(|state| state.is(found));
        if !keeps {
            let (last, count) = (found.last(), self.states.len() - self.floor);
            return Err(format!(
                "its log ends at {last} in term {term}: that is none of the {count} states it may have"
            ));
        }
        Ok(found.entries.len() as u64 + 2)
    }
}
