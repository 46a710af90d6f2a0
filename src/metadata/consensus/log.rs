//! The part of the log held in memory: everything behind a start whose term is still known.

use std::collections::VecDeque;

use super::{Entry, Index, MemberId, Membership, Payload, SnapshotMark, Term};

/// The log of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    /// The newest snapshot; index 0 stands for the state before any entry.
    snapshot: SnapshotMark,
    /// The place before the first entry held, at or before the snapshot's.
    start: (Index, Term),
    entries: VecDeque<Entry>,
    /// Memberships in the entries held, and before them the one valid at the start.
    memberships: VecDeque<(Index, Membership)>,
}

impl Log {
    /// A log that begins at a snapshot.
    pub(super) fn behind(snapshot: SnapshotMark) -> Self {
        let start = (snapshot.index, snapshot.term);
        let memberships = VecDeque::from([(snapshot.index, snapshot.membership.clone())]);
        Self { snapshot, start, entries: VecDeque::new(), memberships }
    }

    /// Index of the last entry, or of the start.
    pub fn last_index(&self) -> Index {
        self.start.0 + self.entries.len() as u64
    }

    /// Term of the last entry, or of the start.
    pub fn last_term(&self) -> Term {
        self.entries.back().map_or(self.start.1, |entry| entry.term)
    }

    /// The place before the first entry held.
    pub fn start_index(&self) -> Index {
        self.start.0
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> &SnapshotMark {
        &self.snapshot
    }

    /// Term of the entry at `index`; `None` if it is not there any more, or not yet.
    pub fn term(&self, index: Index) -> Option<Term> {
        if index == self.start.0 {
            return Some(self.start.1);
        }
        if index == self.snapshot.index {
            return Some(self.snapshot.term);
        }
        self.entry(index).map(|entry| entry.term)
    }

    /// The entry at `index`, if it is held.
    pub fn entry(&self, index: Index) -> Option<&Entry> {
        let place = index.checked_sub(self.start.0 + 1)?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Entries from `first` to `last`, at most so many; the last one may go beyond `bytes`.
    pub(super) fn slice(
        &self,
        first: Index,
        last: Index,
        count: usize,
        bytes: usize,
    ) -> Vec<Entry> {
        let mut cost = 0;
        let mut slice = Vec::new();
        for index in first..=last {
            let Some(entry) = self.entry(index) else { break };
            if slice.len() >= count || cost >= bytes {
                break;
            }
            cost += entry.cost();
            slice.push(entry.clone());
        }
        slice
    }

    /// Appends the entry that follows the last.
    pub(super) fn push(&mut self, entry: Entry) {
        crate::invariant!(
            entry.index == self.last_index() + 1,
            "entry {} appended behind {}",
            entry.index,
            self.last_index()
        );
        if let Payload::Membership(membership) = &entry.payload {
            self.memberships.push_back((entry.index, membership.clone()));
        }
        self.entries.push_back(entry);
    }

    /// Drops `index` and everything behind it.
    pub(super) fn truncate_from(&mut self, index: Index) {
        let keep = index.saturating_sub(self.start.0 + 1);
        self.entries.truncate(usize::try_from(keep).unwrap_or(usize::MAX));
        while self.memberships.len() > 1
            && self.memberships.back().is_some_and(|(at, _)| *at >= index)
        {
            self.memberships.pop_back();
        }
    }

    /// Takes note of a newer snapshot and forgets what stands before `keep_from`.
    pub(super) fn compact(&mut self, snapshot: SnapshotMark, keep_from: Index) {
        let new_start = keep_from.min(snapshot.index + 1).saturating_sub(1);
        self.snapshot = snapshot;
        while self.start.0 < new_start {
            let Some(entry) = self.entries.pop_front() else { break };
            self.start = (entry.index, entry.term);
        }
        let start = self.start.0;
        while self.memberships.get(1).is_some_and(|(index, _)| *index <= start) {
            self.memberships.pop_front();
        }
    }

    /// The newest membership, committed or not.
    pub fn membership(&self) -> &Membership {
        &self.memberships[self.memberships.len() - 1].1
    }

    /// Where the newest membership stands.
    pub(super) fn membership_index(&self) -> Index {
        self.memberships[self.memberships.len() - 1].0
    }

    /// The newest membership at or before `index`.
    pub fn membership_at(&self, index: Index) -> &Membership {
        let found = self.memberships.iter().rev().find(|(at, _)| *at <= index);
        &found.unwrap_or(&self.memberships[0]).1
    }

    /// Whether the member votes in the membership of `index` or in any behind it.
    pub(super) fn votes_since(&self, index: Index, member: MemberId) -> bool {
        let mut later = self.memberships.iter().filter(|(at, _)| *at > index);
        self.membership_at(index).is_voter(member)
            || later.any(|(_, membership)| membership.is_voter(member))
    }

    /// Every entry held, in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The first index held of the run of entries with the term that `index` has, not before `floor`.
    pub(super) fn first_of_term(&self, index: Index, floor: Index) -> Index {
        let term = self.term(index);
        let mut first = index;
        while first > floor + 1 && first > self.start.0 + 1 && self.term(first - 1) == term {
            first -= 1;
        }
        first
    }

    /// The last index whose entry has this term, if one is held at or before `index`.
    pub(super) fn last_of_term(&self, term: Term, index: Index) -> Option<Index> {
        let mut at = index.min(self.last_index());
        while at >= self.start.0 {
            match self.term(at) {
                Some(found) if found == term => return Some(at),
                Some(found) if found < term => return None,
                _ => {}
            }
            at = at.checked_sub(1)?;
        }
        None
    }
}
