//! The envelope of clocks: for each way in which they can be wrong, and each size, whether anything is lost by it and what it
//! costs, against the same seeds with clocks that are right.

use std::time::Duration;

use clap::Args;

use super::arguments::parse_jobs;
use super::campaign::{RunOptions, run_all};
use super::filter::Filter;
use super::seeds::Seeds;
use super::stop::Stop;
use super::trial_options::TrialOptions;
use super::verdict::Verdict;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::runtime::sim::ClockFace;
use crate::simulator::clock_fault::{ClockError, ClockFault};
use crate::simulator::liveness::{ELECTION_TIMEOUT_MS, Milestone, Spread};
use crate::simulator::plan::{FaultKind, Topology};
use crate::simulator::profile::Profile;

#[derive(Debug, Args)]
pub(super) struct ClockOptions {
    /// Seeds of each row.
    #[arg(long, default_value = "0..40")]
    seeds: Seeds,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
    jobs: Option<usize>,
}

/// A row suffers if it commits this much less than clocks that are right, percent …
const LESS_PERCENT: u64 = 10;
/// … or if its slowest tenth is writable so many election time-outs later.
const LATER_TIMEOUTS: u64 = 2;

/// Parts per million: a bad oscillator, a broken one, virtual machines gone wrong, absurd.
const DRIFTS: [i64; 12] = [
    200, -200, 20_000, -20_000, 200_000, -200_000, 1_000_000, -500_000, 4_000_000, -800_000,
    19_000_000, -950_000,
];
const HOUR_MS: i64 = 3_600_000;
const STEPS_MS: [i64; 10] = [
    1_000,
    -1_000,
    60_000,
    -60_000,
    3 * HOUR_MS,
    -3 * HOUR_MS,
    24 * 365 * HOUR_MS,
    -24 * 365 * HOUR_MS,
    24 * 365 * 50 * HOUR_MS,
    -24 * 365 * 50 * HOUR_MS,
];
const FREEZES_MS: [u64; 6] = [100, 500, 1_000, 3_000, 10_000, 30_000];

fn rows() -> Vec<ClockFault> {
    let drifts = |face| DRIFTS.map(|ppm| ClockFault { face, how: ClockError::Drift(ppm) });
    let freezes = |face| {
        FREEZES_MS.map(|ms| ClockFault { face, how: ClockError::Freeze(Duration::from_millis(ms)) })
    };
    let steps = STEPS_MS.map(|ms| ClockFault { face: ClockFace::Wall, how: ClockError::Step(ms) });
    let mut rows = Vec::new();
    rows.extend(drifts(ClockFace::Monotonic));
    rows.extend(freezes(ClockFace::Monotonic));
    rows.extend(drifts(ClockFace::Wall));
    rows.extend(freezes(ClockFace::Wall));
    rows.extend(steps);
    rows
}

/// What a row of the table says.
struct Row {
    failed: u64,
    committed: u64,
    unknown: u64,
    writable: Option<Spread>,
    replicated: Option<Spread>,
    recovered: Option<Spread>,
}

impl Row {
    fn of(verdict: &Verdict<'_>) -> Self {
        let mut spreads = verdict.totals.spreads();
        let [committed, _, unknown] = verdict.totals.publishes;
        Self {
            failed: verdict.totals.failed,
            committed,
            unknown,
            writable: spreads.remove(&Milestone::Writable),
            replicated: spreads.remove(&Milestone::Replicated),
            recovered: spreads.remove(&Milestone::Recovered),
        }
    }

    /// It is slower than with clocks that are right, by more than luck.
    fn suffers(&self, right: &Self) -> bool {
        let slow = |row: &Self| row.writable.as_ref().map_or(u64::MAX, |spread| spread.ms[1]);
        self.committed * 100 < right.committed * (100 - LESS_PERCENT)
            || slow(self) > slow(right).saturating_add(LATER_TIMEOUTS * ELECTION_TIMEOUT_MS)
    }

    fn line(&self, what: &str, right: &Self) -> String {
        let timeouts = |spread: &Option<Spread>| {
            let at = |ms: u64| ms as f64 / ELECTION_TIMEOUT_MS as f64;
            let text = spread
                .as_ref()
                .map(|spread| format!("{:.1} / {:.1}", at(spread.ms[0]), at(spread.ms[1])));
            text.unwrap_or_else(|| "-".to_owned())
        };
        let verdict = match (self.failed, self.suffers(right)) {
            (0, false) => "safe, live",
            (0, true) => "safe, slower",
            _ => "BROKEN",
        };
        format!(
            "| {what} | {verdict} | {:.1} % | {} | {} | {} | {} |",
            self.committed as f64 * 100.0 / right.committed.max(1) as f64,
            self.unknown,
            timeouts(&self.writable),
            timeouts(&self.replicated),
            timeouts(&self.recovered)
        )
    }
}

pub(super) fn run(options: &ClockOptions) -> u8 {
    let right = match measure(options, None) {
        Ok(row) => row,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    let mut lines = vec![
        "| clock | verdict | committed | unknown | writable 50 / 90 % | replicated 50 / 90 % | recovered 50 / 90 % |".to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
        right.line("right", &right),
    ];
    let mut failed = right.failed;
    for fault in rows() {
        match measure(options, Some(fault)) {
            Ok(row) => {
                failed += row.failed;
                let line = row.line(&String::from(fault), &right);
                complain(&line);
                lines.push(line);
            }
            Err(error) => {
                complain(&error);
                return USAGE;
            }
        }
    }
    say(&lines.join("\n"));
    if failed > 0 { FAILED } else { GOOD }
}

/// The seeds with this fault of clocks alone; with none at all for those that are right.
fn measure(options: &ClockOptions, fault: Option<ClockFault>) -> Result<Row, String> {
    let profile = match fault {
        Some(_) => Profile::Only(FaultKind::Clock),
        None => Profile::Calm,
    };
    let trial = TrialOptions { profile, clock: fault, ..TrialOptions::on(Topology::Swarm) };
    let campaign = RunOptions::plain(options.seeds.clone(), trial, options.jobs);
    let verdict = run_all(&campaign, &Filter::default(), None, &Stop::default())?;
    Ok(Row::of(&verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(committed: u64, writable_ms: u64) -> Row {
        Row {
            failed: 0,
            committed,
            unknown: 0,
            writable: Spread::of(vec![writable_ms; 20]),
            replicated: None,
            recovered: None,
        }
    }

    #[test]
    fn a_row_suffers_if_it_commits_less_or_comes_back_later() {
        let right = row(1000, 100);
        assert!(!row(950, 1_000).suffers(&right));
        assert!(row(890, 100).suffers(&right));
        assert!(row(1000, 1_200).suffers(&right));
        let nothing = Row { writable: None, ..row(1000, 0) };
        assert!(nothing.suffers(&right));
        let broken = Row { failed: 1, ..row(1000, 100) };
        assert!(broken.line("x", &right).contains("BROKEN"));
    }

    #[test]
    fn every_row_can_be_asked_for() {
        for fault in rows() {
            assert_eq!(String::from(fault).parse(), Ok(fault));
        }
    }
}
