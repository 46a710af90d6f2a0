//! What each kind of record is called on the page, which group it is filtered with, and what its facts are.

use serde::Serialize;

use crate::runtime::sim::Happening;
use crate::simulator::noted::Noted;

/// One kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::simulator) struct Kind {
    pub(in crate::simulator) number: u8,
    /// As a person reads it.
    pub(in crate::simulator) name: &'static str,
    /// What it is shown or hidden with.
    pub(in crate::simulator) group: &'static str,
    /// How its facts are called, in their order; those named `to`, `from` and `other` are nodes.
    pub(in crate::simulator) facts: &'static [&'static str],
}

/// Groups in the order of the page, and whether they are shown at first.
pub(super) const GROUPS: &[(&str, bool)] = &[
    ("run", true),
    ("node", true),
    ("fault", true),
    ("client", true),
    ("log", true),
    ("message", true),
    ("storage", false),
    ("timer", false),
];

const fn world(
    kind: Happening,
    name: &'static str,
    group: &'static str,
    facts: &'static [&'static str],
) -> Kind {
    Kind { number: kind as u8, name, group, facts }
}

const fn noted(
    kind: Noted,
    name: &'static str,
    group: &'static str,
    facts: &'static [&'static str],
) -> Kind {
    Kind { number: kind as u8, name, group, facts }
}

/// Every kind.
pub(in crate::simulator) const KINDS: &[Kind] = &[
    world(Happening::Start, "started", "node", &["start"]),
    world(Happening::Crash, "process died", "node", &["start"]),
    world(Happening::PowerLoss, "power lost", "node", &["start"]),
    world(Happening::Pause, "paused", "node", &[]),
    world(Happening::Resume, "went on", "node", &[]),
    world(Happening::Panic, "panicked", "node", &[]),
    world(Happening::ClockWrong, "clock wrong", "fault", &[]),
    world(Happening::ClockRight, "clock right", "fault", &[]),
    world(Happening::Timer, "timers fired", "timer", &["timers"]),
    world(Happening::Connect, "connects", "message", &["to", "connection"]),
    world(Happening::Send, "sends", "message", &["to", "connection", "bytes"]),
    world(Happening::Arrive, "arrived", "message", &["from", "connection", "bytes"]),
    world(Happening::Cut, "link cut", "fault", &["to"]),
    world(Happening::LinkHealed, "link healed", "fault", &["to"]),
    world(Happening::LinkWorse, "link made worse", "fault", &["to"]),
    world(Happening::LinkBetter, "link as usual", "fault", &["to"]),
    world(Happening::AllHealed, "all links healed", "fault", &[]),
    world(Happening::Streams, "streams disturbed", "fault", &["other"]),
    world(Happening::Disk, "disk", "storage", &["bytes", "offset"]),
    world(Happening::DiskWorse, "disk made worse", "fault", &[]),
    world(Happening::DiskBetter, "disk sound", "fault", &[]),
    world(Happening::DiskStalled, "disk stalls", "fault", &[]),
    world(Happening::DiskReleased, "disk answers again", "fault", &[]),
    world(Happening::Rot, "bit flipped at rest", "fault", &["offset", "bit"]),
    world(Happening::Wiped, "disk emptied", "fault", &[]),
    world(Happening::Swapped, "disks exchanged", "fault", &["other"]),
    world(Happening::Index, "index", "storage", &["changes"]),
    world(Happening::Injected, "fault", "fault", &["other"]),
    noted(Noted::Phase, "phase", "run", &[]),
    noted(Noted::Strike, "strike", "run", &["number"]),
    noted(Noted::Serves, "serves", "node", &[]),
    noted(Noted::GaveUp, "gave up", "node", &[]),
    noted(Noted::Leads, "leads the metadata group", "node", &["term"]),
    noted(Noted::LeadsNoMore, "leads no longer", "node", &[]),
    noted(Noted::Owns, "serves topics", "node", &["topics"]),
    noted(Noted::Log, "log", "log", &["severity"]),
    noted(Noted::Publish, "publishes", "client", &["message", "producer"]),
    noted(Noted::Committed, "committed", "client", &["message", "ledger", "entry"]),
    noted(Noted::Rejected, "rejected", "client", &["message"]),
    noted(Noted::Delivered, "delivered", "client", &["message", "ledger", "entry"]),
    noted(Noted::Acknowledge, "acknowledges", "client", &["ack", "ledger", "entry"]),
    noted(Noted::Acknowledged, "acknowledgement stored", "client", &["ack", "ledger", "entry"]),
    noted(Noted::Ask, "asks metadata", "client", &["call", "register"]),
    noted(Noted::Answered, "metadata answered", "client", &["call", "register"]),
    noted(Noted::SessionEnded, "session ended", "client", &[]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_named_once_in_a_known_group() {
        let numbers: BTreeSet<u8> = KINDS.iter().map(|kind| kind.number).collect();
        assert_eq!(numbers.len(), KINDS.len());
        let wanted = Happening::ALL.iter().map(|kind| *kind as u8);
        let wanted: BTreeSet<u8> =
            wanted.chain(Noted::ALL.iter().map(|kind| *kind as u8)).collect();
        assert_eq!(numbers, wanted);
        assert!(KINDS.iter().all(|kind| GROUPS.iter().any(|(name, _)| *name == kind.group)));
    }
}
