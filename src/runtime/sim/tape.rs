//! The decision tape: every fault that happened, with a key that stays the same when others are masked.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::keyed::{keyed, unit};

/// What kind of fault was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// A node's process died.
    Crash,
    /// A node lost power.
    PowerLoss,
    /// A node stopped running for a while.
    Pause,
    /// A node's disk was emptied.
    WipeDisk,
    /// Two nodes exchanged their disks.
    SwapDisks,
    /// A clock changed its rate.
    ClockDrift,
    /// A clock jumped.
    ClockStep,
    /// A clock stood still.
    ClockFreeze,
    /// A directed link stopped carrying anything.
    Cut,
    /// A directed link's settings changed.
    LinkSettings,
    /// The streams between two nodes were reset.
    ResetStreams,
    /// The streams between two nodes stopped moving.
    StallStreams,
    /// One end of the streams between two nodes was forgotten.
    HalfOpen,
    /// A segment was lost and sent again later.
    SegmentLost,
    /// A segment broke its stream.
    SegmentReset,
    /// A disk's settings changed.
    DiskSettings,
    /// A disk stopped answering.
    DiskStall,
    /// A read failed.
    ReadError,
    /// A write failed.
    WriteError,
    /// A sync failed.
    SyncError,
    /// Bits at rest flipped.
    BitRot,
    /// A write landed elsewhere.
    MisdirectedWrite,
    /// What a power loss did to one unsynced write.
    UnsyncedWrite,
    /// A power loss undid one unsynced name change.
    UnsyncedName,
    /// A crash undid unflushed index changes.
    IndexLoss,
    /// An index failed to open.
    IndexOpen,
    /// An index failed to flush.
    IndexFlush,
    /// An operator asked a node's program for something.
    Operation,
    /// A pair of an index at rest became unreadable.
    IndexRot,
}

/// How many kinds there are.
pub(super) const DECISION_KINDS: usize = DecisionKind::IndexRot as usize + 1;

/// Names one decision: kind, place and how many times that place had been asked for that kind before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DecisionKey {
    /// The kind.
    pub kind: DecisionKind,
    /// The node, by order of creation from 1.
    pub node: u32,
    /// The other node of a link; 0 if there is none.
    pub other: u32,
    /// Counted from 0 per kind and place.
    pub nth: u64,
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Position on the tape.
    pub sequence: u64,
    /// Virtual time, in nanoseconds from the start of the run.
    pub at: u64,
    /// Which decision it was.
    #[serde(flatten)]
    pub key: DecisionKey,
    /// What was decided; the meaning depends on the kind.
    pub value: u64,
}

/// Decisions that must not happen in this run. A masked fault is left out; nothing else changes its key.
pub type TapeMask = BTreeSet<DecisionKey>;

/// The tape of one run.
#[derive(Default)]
pub(super) struct Tape {
    mask: TapeMask,
    decisions: Vec<Decision>,
    dropped: u64,
    capacity: usize,
}

impl Tape {
    pub(super) fn new(mask: TapeMask, capacity: usize) -> Self {
        Self { mask, decisions: Vec::new(), dropped: 0, capacity }
    }

    /// True if the decision may happen; then it is on the tape.
    pub(super) fn admit(&mut self, at: u64, key: DecisionKey, value: u64) -> bool {
        if self.mask.contains(&key) {
            return false;
        }
        if self.decisions.len() < self.capacity {
            let sequence = self.decisions.len() as u64;
            self.decisions.push(Decision { sequence, at, key, value });
        } else {
            self.dropped += 1;
        }
        true
    }

    pub(super) fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// One JSON object a line.
    pub(super) fn to_json_lines(&self) -> String {
        let mut text = String::new();
        for decision in &self.decisions {
            let line = serde_json::to_string(decision).unwrap_or_default();
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

/// The place where decisions are drawn: counts how often each kind was asked for.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) node: u32,
    pub(super) other: u32,
    used: [u64; DECISION_KINDS],
}

impl Site {
    pub(super) fn new(node: u32, other: u32) -> Self {
        Self { node, other, used: [0; DECISION_KINDS] }
    }

    /// The key of the next decision of this kind, and its random value.
    pub(super) fn next(&mut self, seed: u64, kind: DecisionKind) -> (DecisionKey, u64) {
        let nth = self.used[kind as usize];
        self.used[kind as usize] += 1;
        let (node, other) = (self.node, self.other);
        let value = keyed(&[seed, 1, kind as u64, u64::from(node), u64::from(other), nth]);
        (DecisionKey { kind, node, other, nth }, value)
    }

    /// The key and a second random value, if the first falls under `rate`.
    pub(super) fn chance(
        &mut self,
        seed: u64,
        kind: DecisionKind,
        rate: f64,
    ) -> Option<(DecisionKey, u64)> {
        let (key, value) = self.next(seed, kind);
        (rate > 0.0 && unit(value) < rate).then(|| (key, super::keyed::mix(value)))
    }
}
