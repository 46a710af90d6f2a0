//! What a campaign adds up, seed by seed, without keeping every report: a night has many.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::simulator::checkers::Violation;
use crate::simulator::coverage::Coverage;
use crate::simulator::liveness::{Milestone, Spread, Spreads};
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

/// Failed runs told at length in the files; more are counted, and printed as they come.
pub(super) const FAILURES_MAX: usize = 1000;

/// A run in which a promise was broken.
pub(super) struct Failure {
    pub(super) trial: Trial,
    pub(super) violations: Vec<Violation>,
}

/// One run, as short as can be.
pub(super) struct Line {
    pub(super) seed: u64,
    pub(super) failed: bool,
    /// With the settings of another seed.
    pub(super) leaned: bool,
    pub(super) real: Duration,
    pub(super) virtual_ms: u64,
    pub(super) cpu_ms: u64,
    pub(super) writable_after_ms: Option<u64>,
    pub(super) replicated_after_ms: Option<u64>,
    pub(super) recovered_after_ms: Option<u64>,
}

/// Sums over the runs of a campaign.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) lines: Vec<Line>,
    /// The first ones, by seed.
    pub(super) failures: BTreeMap<u64, Failure>,
    pub(super) failed: u64,
    /// Facts compared, by checker.
    pub(super) compared: BTreeMap<String, u64>,
    /// Faults that happened, by kind.
    pub(super) faults: BTreeMap<String, u64>,
    /// Visits, by mark.
    pub(super) marks: BTreeMap<String, u64>,
    /// Runs by what they have reached.
    pub(super) coverage: Coverage,
    /// Committed, rejected, unknown.
    pub(super) publishes: [u64; 3],
    pub(super) virtual_ms: u64,
    pub(super) cpu_ms: u64,
    pub(super) events: u64,
}

impl Totals {
    /// Adds a run that took so much real time.
    pub(super) fn add(&mut self, report: Report, real: Duration) {
        let seed = report.trial.seed;
        let failed = !report.violations.is_empty();
        let add_all = |sums: &mut BTreeMap<String, u64>, counts: BTreeMap<String, u64>| {
            for (name, count) in counts {
                *sums.entry(name).or_default() += count;
            }
        };
        self.coverage.add(&report);
        add_all(&mut self.compared, report.compared);
        add_all(&mut self.faults, report.faults);
        add_all(&mut self.marks, report.marks);
        self.publishes.iter_mut().zip(report.publishes).for_each(|(sum, count)| *sum += count);
        self.virtual_ms += report.virtual_ms;
        self.cpu_ms += report.cpu_ms;
        self.events += report.events;
        self.lines.push(Line {
            seed,
            failed,
            leaned: report.trial.settings.is_some(),
            real,
            virtual_ms: report.virtual_ms,
            cpu_ms: report.cpu_ms,
            writable_after_ms: report.writable_after_ms,
            replicated_after_ms: report.replicated_after_ms,
            recovered_after_ms: report.recovered_after_ms,
        });
        if failed {
            self.failed += 1;
            if self.failures.len() < FAILURES_MAX {
                let failure = Failure { trial: report.trial, violations: report.violations };
                self.failures.insert(seed, failure);
            }
        }
    }

    /// How long runs took after the heal; those that leaned towards rare settings are no measure.
    pub(super) fn spreads(&self) -> Spreads {
        let times = |milestone: Milestone| {
            let plain = self.lines.iter().filter(|line| !line.leaned);
            let time = |line: &Line| match milestone {
                Milestone::Writable => line.writable_after_ms,
                Milestone::Replicated => line.replicated_after_ms,
                Milestone::Recovered => line.recovered_after_ms,
            };
            Some((milestone, Spread::of(plain.filter_map(time).collect())?))
        };
        Milestone::ALL.into_iter().filter_map(times).collect()
    }

    /// A campaign in which a checker had nothing to compare proves nothing about its promise.
    pub(super) fn idle_checkers(&self) -> Vec<&str> {
        let idle = self.compared.iter().filter(|(_, compared)| **compared == 0);
        idle.map(|(name, _)| name.as_str()).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::simulator::plan::Topology;

    /// Two runs, the second of which broke a promise.
    pub(in crate::cli::simulate) fn two_runs() -> Totals {
        let mut totals = Totals::default();
        let violation = Violation {
            promise: "P1".to_owned(),
            checker: "no_acknowledged_loss".to_owned(),
            detail: "<entry> & \"body\"\u{1}".to_owned(),
        };
        let mut report = Report::of_failure(Trial::new(7, Topology::Swarm), violation);
        report.compared = [("order".to_owned(), 3), ("no_ghost".to_owned(), 0)].into();
        report.marks = [("bookie: ledger buried".to_owned(), 2)].into();
        report.virtual_ms = 1500;
        let mut passed = report.clone();
        passed.violations.clear();
        passed.trial.seed = 6;
        totals.add(passed, Duration::from_millis(250));
        totals.add(report, Duration::from_millis(500));
        totals
    }

    #[test]
    fn runs_are_added_up() {
        let totals = two_runs();
        assert_eq!((totals.lines.len(), totals.failed), (2, 1));
        assert_eq!(totals.compared["order"], 6);
        assert_eq!(totals.idle_checkers(), ["no_ghost"]);
        assert_eq!(totals.marks["bookie: ledger buried"], 4);
        assert_eq!(totals.failures.keys().copied().collect::<Vec<_>>(), [7]);
    }
}
