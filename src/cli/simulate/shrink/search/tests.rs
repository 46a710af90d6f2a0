//! The search on runs that are made up.

use super::*;
use crate::simulator::plan::Topology;

fn late(trial: &Trial, fails: bool) -> Report {
    let (promise, checker) = ("P6".to_owned(), "liveness".to_owned());
    let violation = Violation { promise, checker, detail: String::new() };
    let mut report = Report::of_failure(trial.clone(), violation);
    report.violations.retain(|_| fails);
    report
}

/// Fails whatever is left out but its second topic: without that only those fail that do not wait long enough.
fn needs_both_topics(trial: &Trial) -> Report {
    late(trial, trial.cuts.topics.is_none() || trial.cuts.patience_ms.is_some())
}

#[test]
fn what_fails_only_without_patience_is_not_what_was_looked_for() {
    let whole = (0..).map(|seed| Trial::new(seed, Topology::Swarm));
    let whole = whole.into_iter().find(|trial| Plan::of(trial).topics > 1).unwrap();
    let report = needs_both_topics(&whole);
    let budget = Duration::from_secs(60);
    let shrunk = shrink_by(needs_both_topics, report, false, budget, 2).unwrap();
    let cuts = &shrunk.report.trial.cuts;
    assert!(shrunk.is_done && !shrunk.report.violations.is_empty());
    assert_eq!((cuts.topics, cuts.patience_ms), (None, None));
    assert_eq!(cuts.storm_ms, Some(0), "the rest is made small all the same: {cuts:?}");
}

#[test]
fn what_passes_cannot_be_shrunk() {
    let passed = late(&Trial::new(1, Topology::Cluster), false);
    let shrunk = shrink_by(needs_both_topics, passed, false, Duration::from_secs(1), 1);
    assert!(shrunk.is_none());
}
