//! One member of the world: its machine, its disk, its state machine.

use std::hash::{Hash, Hasher};

use bytes::Bytes;
use seawall::metadata::consensus::{
    Entry, Event, HardState, Index, Machine, MemberId, Restored, Settings, SnapshotMark, Term,
    Write,
};

/// One member. Its state machine is a number that every applied entry is mixed into.
#[derive(Clone)]
pub struct Node {
    pub machine: Machine,
    pub disk: Restored,
    pub snapshot_state: u64,
    pub state: u64,
    pub applied: Index,
    incoming: Vec<u8>,
    /// Of everything above.
    pub hash: u128,
}

/// The state after `entry`.
pub fn mix(state: u64, entry: &Entry) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (state, &entry.payload, entry.index).hash(&mut hasher);
    hasher.finish()
}

impl Node {
    pub fn new(id: MemberId, settings: Settings, disk: Restored) -> Self {
        let machine = Machine::restore(id, settings, disk.clone());
        let applied = disk.snapshot.index;
        let mut node = Self {
            machine,
            disk,
            snapshot_state: 0,
            state: 0,
            applied,
            incoming: Vec::new(),
            hash: 0,
        };
        node.rehash();
        node
    }

    pub fn rehash(&mut self) {
        let half = |salt: u64| {
            let mut hasher = std::hash::DefaultHasher::new();
            salt.hash(&mut hasher);
            self.machine.hash(&mut hasher);
            self.disk.hard_state.hash(&mut hasher);
            self.disk.snapshot.hash(&mut hasher);
            self.disk.entries.hash(&mut hasher);
            (self.snapshot_state, self.state, self.applied, &self.incoming).hash(&mut hasher);
            hasher.finish()
        };
        self.hash = (u128::from(half(1)) << 64) | u128::from(half(2));
    }

    pub fn restart(&mut self, settings: Settings) {
        self.machine = Machine::restore(self.machine.id(), settings, self.disk.clone());
        self.state = self.snapshot_state;
        self.applied = self.disk.snapshot.index;
        self.incoming.clear();
    }

    pub fn persist(&mut self, write: Write) -> Option<Event> {
        if let Some(hard_state) = write.hard_state {
            self.disk.hard_state = hard_state;
        }
        let first = write.entries.first()?.index;
        self.disk.entries.retain(|entry| entry.index < first);
        self.disk.entries.extend(write.entries);
        let last = self.disk.entries.last()?;
        Some(Event::Persisted { index: last.index, term: last.term })
    }

    /// True if this entry, or a snapshot of it, is on the disk.
    pub fn holds(&self, index: Index, term: Term) -> bool {
        self.disk.snapshot.index >= index
            || self.disk.entries.iter().any(|entry| (entry.index, entry.term) == (index, term))
    }

    pub fn apply(&mut self, entry: &Entry) {
        self.state = mix(self.state, entry);
        self.applied = entry.index;
    }

    /// Takes a snapshot of the state of now and keeps `keep` entries before it in the log.
    pub fn take_snapshot(&mut self, keep: u64) -> Option<Event> {
        if self.applied <= self.disk.snapshot.index {
            return None;
        }
        let mark = self.machine.mark_at(self.applied)?;
        self.disk.entries.retain(|entry| entry.index > mark.index);
        self.disk.snapshot = mark.clone();
        self.snapshot_state = self.state;
        let keep_from = (mark.index + 1).saturating_sub(keep);
        Some(Event::SnapshotTaken { mark, keep_from })
    }

    pub fn snapshot_part(
        &self,
        mark: &SnapshotMark,
        offset: u64,
    ) -> Option<seawall::metadata::consensus::SnapshotPart> {
        (*mark == self.disk.snapshot).then(|| super::part_of(mark, self.snapshot_state, offset))
    }

    pub fn store_part(&mut self, offset: u64, data: &Bytes) {
        if offset == 0 {
            self.incoming.clear();
        }
        assert_eq!(self.incoming.len() as u64, offset, "a hole in a snapshot");
        self.incoming.extend_from_slice(data);
    }

    pub fn install(&mut self, mark: SnapshotMark, hard_state: HardState, entries: Vec<Entry>) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.incoming);
        self.snapshot_state = u64::from_le_bytes(bytes);
        self.state = self.snapshot_state;
        self.applied = mark.index;
        self.disk = Restored { hard_state, snapshot: mark, entries };
        self.incoming.clear();
    }
}
