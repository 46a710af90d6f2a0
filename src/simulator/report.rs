//! What one run found: one JSON line from the child process that ran the seed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::checkers::Violation;
use super::nemesis::Strike;
use super::trial::Trial;

/// What one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What was asked for.
    #[serde(flatten)]
    pub trial: Trial,
    /// Promises broken; empty is a pass.
    pub violations: Vec<Violation>,
    /// Facts compared, by checker.
    pub compared: BTreeMap<String, u64>,
    /// When the nemesis struck.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strikes: Vec<Strike>,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Marks visited.
    pub marks: BTreeMap<String, u64>,
    /// By state of a protocol that was entered: the kinds of fault that have met it, and how often.
    #[serde(default)]
    pub pairs: BTreeMap<String, BTreeMap<String, u64>>,
    /// Publishes: committed, rejected, unknown.
    pub publishes: [u64; 3],
    /// Deliveries to consumers.
    pub deliveries: u64,
    /// Acknowledgements with a receipt.
    pub acks: u64,
    /// Virtual milliseconds from the heal until every topic took a message.
    #[serde(default)]
    pub writable_after_ms: Option<u64>,
    /// Virtual milliseconds from the heal until every copy was where it must be.
    #[serde(default)]
    pub replicated_after_ms: Option<u64>,
    /// Virtual milliseconds from the heal until everything was read and delivered, without the wait for
    /// publishers to end.
    pub recovered_after_ms: Option<u64>,
    /// Virtual milliseconds of the run.
    pub virtual_ms: u64,
    /// Real milliseconds of the run.
    pub real_ms: u64,
    /// Milliseconds of one core's work.
    #[serde(default)]
    pub cpu_ms: u64,
    /// Events of the run.
    pub events: u64,
    /// Rolling hash over all of them, hexadecimal.
    pub hash: String,
}

impl Report {
    /// A run that could not give a report of its own.
    pub fn of_failure(trial: Trial, violation: Violation) -> Self {
        Self {
            trial,
            violations: vec![violation],
            compared: BTreeMap::new(),
            strikes: Vec::new(),
            faults: BTreeMap::new(),
            marks: BTreeMap::new(),
            pairs: BTreeMap::new(),
            publishes: [0; 3],
            deliveries: 0,
            acks: 0,
            writable_after_ms: None,
            replicated_after_ms: None,
            recovered_after_ms: None,
            virtual_ms: 0,
            real_ms: 0,
            cpu_ms: 0,
            events: 0,
            hash: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::cuts::Cuts;
    use crate::simulator::plan::{FaultKind, Topology};
    use crate::simulator::workloads::Workload;

    /// Campaigns and shrinking read it from a process of its own: whatever may be left out must come back.
    #[test]
    fn a_report_is_written_and_read() {
        let cuts = Cuts {
            strikes: Some([1, 12].into()),
            without: [FaultKind::Crash].into(),
            idle: [Workload::Rewind].into(),
            messages: Some(3),
            sends: Some([(1, 0), (1, 1), (20, 4)].into_iter().collect()),
            calls: Some([(0, 7)].into_iter().collect()),
            ..Cuts::default()
        };
        let trial = Trial { cuts, settings: Some(9), ..Trial::new(4, Topology::Swarm) };
        let (promise, checker) = ("P6".to_owned(), "liveness".to_owned());
        let violation = Violation { promise, checker, detail: "it hangs".to_owned() };
        let report = Report::of_failure(trial, violation);
        let text = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(read.trial, report.trial);
        assert_eq!(read.violations, report.violations);
    }
}
