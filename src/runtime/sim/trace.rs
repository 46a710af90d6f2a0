//! The rolling hash over all events of a run, and the last of them for a timeline.

use std::collections::VecDeque;

use serde::Serialize;

use super::keyed::mix;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A node started: node, start number.
    Start,
    /// A node's process died: node, start number.
    Crash,
    /// A node lost power: node, start number.
    PowerLoss,
    /// A node was paused: node.
    Pause,
    /// A node went on: node.
    Resume,
    /// A task panicked: node.
    Panic,
    /// A clock changed: node, reading.
    Clock,
    /// Timers of a node fired: node, how many.
    Timer,
    /// A connection was asked for: connection, from, to.
    Connect,
    /// A segment arrived: connection, kind and direction, bytes.
    Deliver,
    /// A link was cut or healed: from, to, cut.
    Link,
    /// Streams were disturbed: from, to, how.
    Streams,
    /// A disk operation: node and operation, file, bytes.
    Disk,
    /// A file's content changed without an operation: node, file.
    DiskFault,
    /// An index operation: node, operation, changes.
    Index,
    /// The run's own marks: three free values.
    Mark,
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraceEvent {
    /// Virtual time, in nanoseconds from the start of the run.
    pub at: u64,
    /// What happened.
    pub kind: EventKind,
    /// Facts, by kind.
    pub facts: [u64; 3],
}

/// Hash, count and ring of the last events.
pub(super) struct Trace {
    hash: u64,
    count: u64,
    ring: VecDeque<TraceEvent>,
    capacity: usize,
}

impl Trace {
    pub(super) fn new(capacity: usize) -> Self {
        Self { hash: 0, count: 0, ring: VecDeque::new(), capacity }
    }

    pub(super) fn record(&mut self, at: u64, kind: EventKind, facts: [u64; 3]) {
        let mut hash = mix(self.hash ^ at);
        hash = mix(hash ^ (kind as u64) ^ facts[0].rotate_left(8));
        self.hash = mix(hash ^ facts[1].rotate_left(24) ^ facts[2].rotate_left(48));
        self.count += 1;
        if self.capacity > 0 {
            if self.ring.len() == self.capacity {
                self.ring.pop_front();
            }
            self.ring.push_back(TraceEvent { at, kind, facts });
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn events(&self) -> Vec<TraceEvent> {
        self.ring.iter().copied().collect()
    }
}
