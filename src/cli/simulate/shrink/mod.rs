//! `sim shrink`: leaves out of a failed run whatever it does not need to fail: strikes of the nemesis, time, clients,
//! what clients do. What is left is printed as a test.

mod delta;
mod test_text;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;

use self::delta::{fewest, lowest};
use self::test_text::test_text;
use super::campaign::jobs;
use super::child::run_apart;
use super::trial_options::TrialOptions;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::checkers::Violation;
use crate::simulator::cuts::Cuts;
use crate::simulator::plan::Plan;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct ShrinkOptions {
    /// A seed that breaks a promise.
    seed: u64,
    #[command(flatten)]
    trial: TrialOptions,
    /// Try for so long after the first run; runs under way are finished.
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration, value_name = "TIME")]
    budget: Duration,
    /// Processes at a time; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
}

/// A run that breaks the promise, the smallest so far.
struct Shrinking {
    trial: Trial,
    report: Report,
    /// The first violation of the whole run: a smaller one must break the same promise for the same checker.
    wanted: Violation,
    end: Instant,
    jobs: usize,
    runs: u64,
}

/// Tells, and does, the command.
pub(super) fn run(options: &ShrinkOptions) -> u8 {
    if let Err(error) = options.trial.check() {
        complain(&error);
        return USAGE;
    }
    let trial = options.trial.trial(options.seed);
    let report = run_apart(&trial);
    let Some(wanted) = report.violations.first().cloned() else {
        complain(&format_args!(
            "seed {} breaks no promise: there is nothing to shrink",
            trial.seed
        ));
        return FAILED;
    };
    complain(&format_args!("seed {}: {}", trial.seed, size(&report)));
    complain(&wanted);
    let (end, jobs) = (Instant::now() + options.budget, jobs(options.jobs));
    let mut shrinking = Shrinking { trial, report, wanted, end, jobs, runs: 1 };
    while shrinking.pass() {}
    let why = match shrinking.has_time() {
        true => "nothing more can be left out",
        false => "the time is over",
    };
    complain(&format_args!("{why}, after {} runs: {}", shrinking.runs, size(&shrinking.report)));
    say(&test_text(&shrinking.report, &shrinking.wanted));
    GOOD
}

/// How large a run is.
fn size(report: &Report) -> String {
    let plan = Plan::of(&report.trial);
    format!(
        "{} strikes in {} ms of storm, {} messages, {} topics with {} producers and {} shared consumers each, \
         {} clients of metadata, {} events",
        report.strikes.len(),
        plan.safety_phase.as_millis(),
        report.publishes.iter().sum::<u64>(),
        plan.topics,
        plan.producers,
        plan.shared_consumers,
        plan.register_clients,
        report.events,
    )
}

impl Shrinking {
    fn has_time(&self) -> bool {
        Instant::now() < self.end
    }

    /// Tries everything once; true if another time may help.
    fn pass(&mut self) -> bool {
        let before = self.trial.cuts.clone();
        let plan = Plan::of(&self.trial);
        let storm_ms = u64::try_from(plan.safety_phase.as_millis()).unwrap_or(u64::MAX);
        self.lower(storm_ms, 0, |cuts, to| cuts.storm_ms = Some(to));
        self.leave_out_strikes();
        let count = |to: u64| u32::try_from(to).ok();
        self.lower(plan.topics.into(), 1, |cuts, to| cuts.topics = count(to));
        self.lower(plan.producers.into(), 1, |cuts, to| cuts.producers = count(to));
        self.lower(plan.shared_consumers.into(), 1, |cuts, to| cuts.consumers = count(to));
        let clients = plan.register_clients.into();
        self.lower(clients, 0, |cuts, to| cuts.register_clients = count(to));
        // No producer has sent more than all together.
        let messages = plan.messages_max.min(self.report.publishes.iter().sum());
        self.lower(messages, 0, |cuts, to| cuts.messages = Some(to));
        if Plan::of(&self.trial).register_clients > 0 {
            let compared = self.report.compared.get("linearizable_registers").copied();
            let calls = plan.register_calls_max.min(compared.unwrap_or_default());
            self.lower(calls, 0, |cuts, to| cuts.register_calls = Some(to));
        }
        self.trial.cuts != before && self.has_time()
    }

    fn leave_out_strikes(&mut self) {
        let numbers: Vec<u64> = self.report.strikes.iter().map(|strike| strike.number).collect();
        fewest(numbers, |candidates| {
            self.first(candidates, |cuts, kept| {
                cuts.strikes = Some(kept.iter().copied().collect::<BTreeSet<u64>>());
            })
        });
    }

    fn lower(&mut self, value: u64, low: u64, set: impl Fn(&mut Cuts, u64)) {
        lowest(value, low, |candidates| self.first(candidates, |cuts, to| set(cuts, *to)));
    }

    /// The first candidate that still breaks the promise, which becomes the smallest run so far.
    fn first<T>(&mut self, candidates: &[T], set: impl Fn(&mut Cuts, &T)) -> Option<usize> {
        let trials: Vec<Trial> = candidates
            .iter()
            .map(|candidate| {
                let mut trial = self.trial.clone();
                set(&mut trial.cuts, candidate);
                trial
            })
            .collect();
        for (batch, trials) in trials.chunks(self.jobs).enumerate() {
            if !self.has_time() {
                return None;
            }
            self.runs += trials.len() as u64;
            let reports: Vec<Report> = std::thread::scope(|scope| {
                let runs: Vec<_> =
                    trials.iter().map(|trial| scope.spawn(|| run_apart(trial))).collect();
                runs.into_iter().filter_map(|run| run.join().ok()).collect()
            });
            let found = reports.into_iter().enumerate().find(|(_, report)| self.is_wanted(report));
            if let Some((place, report)) = found {
                self.trial = report.trial.clone();
                self.report = report;
                return Some(batch * self.jobs + place);
            }
        }
        None
    }

    fn is_wanted(&self, report: &Report) -> bool {
        let is_it = |violation: &Violation| {
            violation.promise == self.wanted.promise && violation.checker == self.wanted.checker
        };
        report.violations.iter().any(is_it)
    }
}
