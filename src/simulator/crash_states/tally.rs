//! What exploring found: states by the kind of file, and the promises broken.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::StateName;

/// What stands before the command that starts from a state again.
pub const REPLAY: &str = "  replay: ";

/// What was looked at around the syncs of one kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindTally {
    /// Moments at which the power may go.
    pub moments: u64,
    /// States started from.
    pub states: u64,
    /// States equal to one that was started from a moment before, with the same promises.
    pub equal: u64,
    /// States left out by the bound; the highest number if there are more.
    pub left_out: u128,
    /// States started from after the power went a second time, while starting.
    pub again: u64,
    /// Single promises looked at after a start.
    pub compared: u64,
}

/// A start from a state that did not keep what was promised.
#[derive(Clone, Debug, Serialize)]
pub struct BrokenState {
    /// Names it for a replay.
    pub state: StateName,
    /// The kind of file synced at that moment.
    pub kind: &'static str,
    /// What happened at that moment.
    pub occasion: String,
    /// What became of everything unsynced; of a second power loss behind that of the first.
    pub fates: Vec<String>,
    /// What was not kept.
    pub what: String,
}

/// What exploring one subject found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// By kind of file.
    pub kinds: BTreeMap<&'static str, KindTally>,
    /// Promises broken, one a moment at most.
    pub broken: Vec<BrokenState>,
    /// Why the work could not be done at all.
    pub failed: Option<String>,
}

impl KindTally {
    fn add(&mut self, other: &Self) {
        self.moments += other.moments;
        self.states += other.states;
        self.equal += other.equal;
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.again += other.again;
        self.compared += other.compared;
    }
}

impl Tally {
    /// Takes in what another one counted.
    pub fn add(&mut self, other: Self) {
        for (kind, tally) in other.kinds {
            self.kinds.entry(kind).or_default().add(&tally);
        }
        self.broken.extend(other.broken);
        self.failed = self.failed.take().or(other.failed);
    }

    /// All kinds together.
    pub fn total(&self) -> KindTally {
        let mut total = KindTally::default();
        self.kinds.values().for_each(|kind| total.add(kind));
        total
    }

    /// Why this proves nothing or a promise does not hold; `None` if all is well. Nothing explored is no proof.
    pub fn complaint(&self) -> Option<String> {
        if let Some(failed) = &self.failed {
            return Some(failed.clone());
        }
        if let Some(broken) = self.broken.first() {
            let more = self.broken.len() - 1;
            return Some(format!("{broken}\n({more} more moments)"));
        }
        let empty = |kind: &KindTally| kind.states + kind.equal == 0 || kind.moments == 0;
        let total = self.total();
        if total.states == 0 || total.compared == 0 {
            return Some("no state was started from".to_owned());
        }
        let mut idle = self.kinds.iter().filter(|(_, kind)| empty(kind));
        idle.next().map(|(kind, _)| format!("no state was started from around a sync of: {kind}"))
    }
}

impl fmt::Display for BrokenState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "BROKEN {} ({}, {})", self.what, self.kind, self.occasion)?;
        for fate in &self.fates {
            writeln!(formatter, "  {fate}")?;
        }
        write!(formatter, "{REPLAY}seawall sim crash-states --state {}", self.state)
    }
}
