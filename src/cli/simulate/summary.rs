//! A campaign as one JSON value, for scripts and for comparing one night with another.

use std::collections::BTreeMap;

use serde::Serialize;

use super::verdict::Verdict;
use crate::simulator::checkers::Violation;
use crate::simulator::coverage::Coverage;
use crate::simulator::plan::FaultKind;

#[derive(Serialize)]
struct Summary<'a> {
    topology: &'static str,
    profile: &'static str,
    mutant: Option<&'a str>,
    /// Each seed was run twice.
    twice: bool,
    passed: bool,
    seeds: Seeds,
    failed: u64,
    /// At most a thousand, by seed.
    failures: Vec<Failure<'a>>,
    /// What is wrong with the campaign as a whole.
    complaints: Vec<String>,
    publishes: Publishes,
    compared: &'a BTreeMap<String, u64>,
    faults: &'a BTreeMap<String, u64>,
    marks: &'a BTreeMap<String, u64>,
    /// Runs by state and by kind of fault that has met it.
    pairs: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
    /// Those that a longer campaign on swarms must reach, included.
    marks_not_reached: Vec<&'static str>,
    virtual_seconds: f64,
    real_seconds: f64,
    cpu_seconds: f64,
    events: u64,
}

#[derive(Serialize)]
struct Seeds {
    first: u64,
    last: u64,
    count: usize,
}

#[derive(Serialize)]
struct Failure<'a> {
    seed: u64,
    replay: String,
    violations: &'a [Violation],
}

#[derive(Serialize)]
struct Publishes {
    committed: u64,
    rejected: u64,
    unknown: u64,
}

/// The file's text.
pub(super) fn summary(verdict: &Verdict<'_>) -> String {
    let (options, totals) = (verdict.options, &verdict.totals);
    let seeds = || totals.lines.iter().map(|line| line.seed);
    let failures = totals.failures.iter().map(|(seed, failure)| Failure {
        seed: *seed,
        replay: failure.trial.replay_command(),
        violations: &failure.violations,
    });
    let [committed, rejected, unknown] = totals.publishes;
    let summary = Summary {
        topology: options.topology.as_str(),
        profile: options.profile.as_str(),
        mutant: options.mutant.as_deref(),
        twice: verdict.twice,
        passed: verdict.passed(),
        seeds: Seeds {
            first: seeds().min().unwrap_or_default(),
            last: seeds().max().unwrap_or_default(),
            count: totals.lines.len(),
        },
        failed: totals.failed,
        failures: failures.collect(),
        complaints: verdict.complaints(),
        publishes: Publishes { committed, rejected, unknown },
        compared: &totals.compared,
        faults: &totals.faults,
        marks: &totals.marks,
        pairs: pairs(&totals.coverage),
        marks_not_reached: verdict.marks_not_reached(),
        virtual_seconds: totals.virtual_ms as f64 / 1000.0,
        real_seconds: verdict.real.as_secs_f64(),
        cpu_seconds: totals.cpu_ms as f64 / 1000.0,
        events: totals.events,
    };
    let mut text = serde_json::to_string_pretty(&summary).unwrap_or_default();
    text.push('\n');
    text
}

fn pairs(coverage: &Coverage) -> BTreeMap<&str, BTreeMap<&'static str, u64>> {
    let of = |state: &str| {
        let runs = FaultKind::ALL.iter().map(|kind| (kind.as_str(), coverage.runs(*kind, state)));
        runs.filter(|(_, runs)| *runs > 0).collect()
    };
    coverage.states().keys().map(|state| (state.as_str(), of(state))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::simulate::totals::tests::two_runs;
    use crate::cli::simulate::verdict::tests::verdict_of;

    #[test]
    fn a_campaign_is_summed_up() {
        let text = verdict_of(two_runs(), summary);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["passed"], json!(false));
        assert_eq!(value["seeds"], json!({"first": 6, "last": 7, "count": 2}));
        assert_eq!(value["failures"][0]["seed"], json!(7));
        assert_eq!(value["failures"][0]["violations"][0]["promise"], json!("P1"));
        let replay = value["failures"][0]["replay"].as_str().unwrap();
        assert!(replay.ends_with("replay 7 --topology swarm --profile swarm"), "{replay}");
        assert_eq!(value["compared"]["order"], json!(6));
        assert_eq!(value["marks"]["bookie: ledger buried"], json!(4));
        assert_eq!(value["virtual_seconds"], json!(3.0));
        assert_eq!(
            value["complaints"],
            json!(["checker no_ghost compared nothing in the whole campaign"])
        );
    }
}
