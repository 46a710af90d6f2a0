//! What was seen so far, and the promises it is held against.

use std::collections::BTreeMap;
use std::sync::Arc;

use seawall::metadata::consensus::{
    Entry, Index, Machine, MemberId, Membership, Payload, Term, Ticket,
};

use super::node::{Node, mix};

/// A promise that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

fn violation<T>(detail: String) -> Result<T, Violation> {
    Err(Violation(detail))
}

/// Leaders, committed entries and answers. Index 1 is the founding state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    leaders: BTreeMap<Term, MemberId>,
    /// From index 2: the entry, the state after it, the term it was first applied in.
    committed: Vec<(Entry, u64, Term)>,
    acknowledged: Index,
    reads: BTreeMap<Ticket, Index>,
    /// Compared so far, for the report; not part of what a state is.
    pub membership_changed: bool,
}

impl History {
    pub fn new() -> Self {
        Self {
            leaders: BTreeMap::new(),
            committed: Vec::new(),
            acknowledged: 0,
            reads: BTreeMap::new(),
            membership_changed: false,
        }
    }

    pub fn leader_of(&self, term: Term) -> Option<MemberId> {
        self.leaders.get(&term).copied()
    }

    pub fn committed_entries(&self) -> usize {
        self.committed.len()
    }

    pub fn terms(&self) -> usize {
        self.leaders.len()
    }

    /// Election safety and leader completeness.
    pub fn leads(&mut self, machine: &Machine) -> Result<(), Violation> {
        let (term, id) = (machine.term(), machine.id());
        if let Some(other) = self.leaders.insert(term, id)
            && other != id
        {
            return violation(format!("election safety: {other} and {id} lead term {term}"));
        }
        for (entry, _, applied_in) in &self.committed {
            let has = machine.log().snapshot().index >= entry.index
                || machine.log().term(entry.index) == Some(entry.term);
            if *applied_in < term && !has {
                return violation(format!(
                    "leader completeness: {id} leads term {term} without entry {} of term {}",
                    entry.index, entry.term
                ));
            }
        }
        Ok(())
    }

    /// State machine safety; and what is applied is on the disks of a quorum.
    pub fn applied(
        &mut self,
        node: &Node,
        entry: &Entry,
        nodes: &BTreeMap<MemberId, Arc<Node>>,
    ) -> Result<(), Violation> {
        let id = node.machine.id();
        let place = usize::try_from(entry.index - 2).unwrap_or(usize::MAX);
        self.membership_changed |= matches!(entry.payload, Payload::Membership(_));
        if let Some((known, state, _)) = self.committed.get(place) {
            if known != entry || *state != node.state {
                return violation(format!(
                    "state machine safety: {id} applied {entry:?}, another {known:?}"
                ));
            }
            return Ok(());
        }
        if place != self.committed.len() {
            return violation(format!("{id} applied {} before what precedes it", entry.index));
        }
        let before = place.checked_sub(1).map_or(0, |place| self.committed[place].1);
        if mix(before, entry) != node.state {
            return violation(format!(
                "state machine safety: {id} diverged before {}",
                entry.index
            ));
        }
        let is_simple = !self.membership_changed && !node.machine.log().membership().is_joint();
        if is_simple {
            let holds = |member: &MemberId| {
                let at = if *member == id { node } else { &nodes[member] };
                at.holds(entry.index, entry.term)
            };
            let voters = &node.machine.log().membership().voters;
            if voters.iter().filter(|member| holds(member)).count() * 2 <= voters.len() {
                return violation(format!(
                    "durability: {id} applied entry {} of term {}, which no quorum has on disk",
                    entry.index, entry.term
                ));
            }
        }
        self.committed.push((entry.clone(), node.state, node.machine.term()));
        Ok(())
    }

    /// What is answered as done is done: the entry with this ticket's command is committed.
    pub fn committed(&mut self, ticket: Ticket, index: Index) -> Result<(), Violation> {
        let place = usize::try_from(index.saturating_sub(2)).unwrap_or(usize::MAX);
        match self.committed.get(place).map(|(entry, _, _)| &entry.payload) {
            Some(Payload::Command(command)) if command[..] == ticket.0.to_le_bytes() => {}
            Some(Payload::Membership(_)) => {}
            other => {
                return violation(format!(
                    "acknowledged loss: {ticket:?} was answered at {index}, there is {other:?}"
                ));
            }
        }
        self.acknowledged = self.acknowledged.max(index);
        Ok(())
    }

    pub fn read_began(&mut self, ticket: Ticket) {
        self.reads.insert(ticket, self.acknowledged);
    }

    /// A read sees everything acknowledged before it began.
    pub fn read_answered(&mut self, ticket: Ticket, index: Index) -> Result<(), Violation> {
        match self.reads.remove(&ticket) {
            Some(floor) if index < floor => violation(format!(
                "linearizable reads: {ticket:?} sees {index}, {floor} was acknowledged before"
            )),
            _ => Ok(()),
        }
    }

    /// A snapshot is the state the entries before it make, and knows the members at its place.
    pub fn check_installed(&self, node: &Node) -> Result<(), Violation> {
        let mark = &node.disk.snapshot;
        let Some(place) = mark.index.checked_sub(2) else { return Ok(()) };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let Some((entry, state, _)) = self.committed.get(place) else {
            return violation(format!("a snapshot of {} which nobody applied", mark.index));
        };
        if entry.term != mark.term || *state != node.state {
            return violation(format!("the snapshot at {} is not the state there", mark.index));
        }
        let members =
            self.committed[..=place].iter().rev().find_map(|(entry, _, _)| match &entry.payload {
                Payload::Membership(membership) => Some(membership),
                _ => None,
            });
        if members.is_some_and(|members: &Membership| *members != mark.membership) {
            return violation(format!("the snapshot at {} has other members", mark.index));
        }
        Ok(())
    }
}

/// Log matching: where two logs hold an entry of one term at one place, they agree in everything before.
pub fn check_logs_match(one: &Machine, other: &Machine) -> Result<(), Violation> {
    let (one_log, other_log) = (one.log(), other.log());
    let last = one_log.last_index().min(other_log.last_index());
    let first = one_log.start_index().max(other_log.start_index()) + 1;
    let mut must_agree = false;
    for index in (first..=last).rev() {
        let (left, right) = (one_log.entry(index), other_log.entry(index));
        let same_term = left.map(|entry| entry.term) == right.map(|entry| entry.term);
        if (must_agree || same_term) && left != right {
            return violation(format!(
                "log matching: at {index} {} has {left:?}, {} has {right:?}",
                one.id(),
                other.id()
            ));
        }
        must_agree |= same_term;
    }
    Ok(())
}
