//! The search for a smaller run that breaks the same promise.
//!
//! What makes runs cheaper is left out first. A bug that needs two things to happen at the same moment is often gone with the
//! first message that is left out, although it does not need that message: only the moments have moved. So a candidate
//! is tried with other latencies as well, the more of them the longer nothing else helps. And as there are many small runs in
//! the time of a large one, other seeds are tried, with the same settings and with their own, few messages and few
//! strikes: one that breaks the same promise is a better beginning.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::delta::{fewest, lowest};
use super::small::{SMALL, small_trial};
use crate::cli::simulate::child::run_apart;
use crate::simulator::checkers::Violation;
use crate::simulator::cuts::Cuts;
use crate::simulator::plan::{FaultKind, Plan};
use crate::simulator::report::Report;
use crate::simulator::steps::Steps;
use crate::simulator::trial::Trial;
use crate::simulator::workloads::Workload;

/// How hard it is tried.
#[derive(Clone, Copy)]
struct Effort {
    /// Latencies that each candidate is tried with.
    timings: usize,
    /// Parts of a list that are left out one by one.
    parts: usize,
}

const EFFORTS: [Effort; 3] = [
    Effort { timings: 1, parts: 8 },
    Effort { timings: 3, parts: 16 },
    Effort { timings: 8, parts: usize::MAX },
];

/// A run with at most so many strikes and operations is small enough to go on from.
const SMALL_ENOUGH: (usize, u64) = (3, 10);

/// What windows of consumers and ledgers are made: a bug at their end needs no more messages than that.
const WINDOWS: [u32; 2] = [2, 10];

/// A cluster that is healed is sound again far sooner than a run waits for; what is broken for good needs no more than that.
const PATIENCE_MS: u64 = 60_000;

/// What a failed run was made.
pub(in crate::cli::simulate) struct Shrunk {
    /// The smallest run that breaks the promise.
    pub(in crate::cli::simulate) report: Report,
    /// The first violation of the whole run.
    pub(super) wanted: Violation,
    /// Runs that were tried.
    pub(super) runs: u64,
    /// False if the time was over before everything was tried.
    pub(in crate::cli::simulate) is_done: bool,
    /// Real time that it took.
    pub(in crate::cli::simulate) took: Duration,
}

/// Leaves out of a failed run what it does not need; none if it did not fail. A smaller one must break the same promise
/// for the same checker or, with `any`, some promise; of a planted bug any will do that is not broken without it.
pub(in crate::cli::simulate) fn shrink(
    report: Report,
    any: bool,
    budget: Duration,
    jobs: usize,
) -> Option<Shrunk> {
    shrink_by(run_apart, report, any, budget, jobs)
}

fn shrink_by(
    run: fn(&Trial) -> Report,
    report: Report,
    any: bool,
    budget: Duration,
    jobs: usize,
) -> Option<Shrunk> {
    let wanted = report.violations.first().cloned()?;
    let (trial, started) = (report.trial.clone(), Instant::now());
    let proven = report.clone();
    let mut shrinking = Shrinking {
        run,
        trial,
        report,
        wanted,
        any,
        end: started + budget / 4,
        jobs,
        runs: 1,
        effort: EFFORTS[0],
        timings: 0,
        is_hasty: false,
        proven,
    };
    shrinking.is_hasty = shrinking.grow_impatient();
    shrinking.coarse_pass();
    shrinking.prove();
    shrinking.end = started + budget;
    shrinking.begin_anew();
    for effort in &EFFORTS {
        shrinking.effort = *effort;
        while shrinking.pass() {}
    }
    let (is_done, took) = (shrinking.has_time(), started.elapsed());
    let Shrinking { proven: report, wanted, runs, .. } = shrinking;
    Some(Shrunk { report, wanted, runs, is_done, took })
}

/// What clients asked for: publishes and calls on metadata. Acknowledgements follow from deliveries and are not counted.
pub(in crate::cli::simulate) fn operations(report: &Report) -> u64 {
    report.publishes.iter().sum::<u64>() + calls(report)
}

/// Calls on metadata's registers.
fn calls(report: &Report) -> u64 {
    report.compared.get("linearizable_registers").copied().unwrap_or_default()
}

/// A run that breaks the promise, the smallest so far.
struct Shrinking {
    run: fn(&Trial) -> Report,
    trial: Trial,
    report: Report,
    /// The first violation of the whole run.
    wanted: Violation,
    /// Others will do.
    any: bool,
    end: Instant,
    jobs: usize,
    runs: u64,
    effort: Effort,
    /// Other latencies that were drawn so far.
    timings: u64,
    /// Runs wait less than they should, to save time …
    is_hasty: bool,
    /// … and this is the smallest that is known to break the promise however long it waits: a sound cluster may have too
    /// little time, too.
    proven: Report,
}

impl Shrinking {
    fn has_time(&self) -> bool {
        Instant::now() < self.end
    }

    /// Looks for a small run of another seed, with the same settings or with its own, for half of the time that is left, with
    /// the kinds of fault that are still there.
    fn begin_anew(&mut self) {
        let is_small = self.report.strikes.len() <= SMALL_ENOUGH.0
            && operations(&self.report) <= SMALL_ENOUGH.1;
        let now = Instant::now();
        if is_small || now >= self.end {
            return;
        }
        let until = now + (self.end - now) / 2;
        let kinds: BTreeSet<FaultKind> =
            self.report.strikes.iter().map(|strike| strike.kind).collect();
        let mut base = self.trial.clone();
        base.cuts.without =
            FaultKind::ALL.iter().copied().filter(|kind| !kinds.contains(kind)).collect();
        for seed in self.trial.seed + 1.. {
            if Instant::now() >= until {
                return;
            }
            let same = base.settings.unwrap_or(base.seed);
            let of_settings = |settings| {
                let base = Trial { seed, settings, ..base.clone() };
                SMALL.map(|size| (0, small_trial(&base, size)))
            };
            let trials: Vec<(usize, Trial)> =
                [of_settings(Some(same)), of_settings(None)].into_iter().flatten().collect();
            // Few messages may become many when clients have to try again.
            let has_fewer = |one: &Report, than: &Report| operations(one) < operations(than);
            if self.first_of(trials, has_fewer).is_some() {
                return;
            }
        }
    }

    /// Tries everything once; true if another time may help.
    fn pass(&mut self) -> bool {
        let before = self.trial.cuts.clone();
        self.coarse_pass();
        self.leave_out_steps();
        self.prove();
        // Other latencies alone are no progress.
        let timing = self.trial.cuts.timing;
        self.trial.cuts != Cuts { timing, ..before } && self.has_time()
    }

    /// Waits less for what should come back, if it does not come back in that time either.
    fn grow_impatient(&mut self) -> bool {
        self.wanted.promise == "P6"
            && self.trial.cuts.patience_ms.is_none()
            && self.first(&[PATIENCE_MS], |cuts, to| cuts.patience_ms = Some(*to)).is_some()
    }

    /// Takes the smallest run so far for a proven one, if it breaks the promise with all its patience; else goes back to
    /// the last that did, and hurries no more.
    fn prove(&mut self) {
        if !self.is_hasty {
            self.proven = self.report.clone();
            return;
        }
        let mut patient = self.trial.clone();
        patient.cuts.patience_ms = None;
        if patient == self.proven.trial {
            return;
        }
        self.runs += 1;
        let report = (self.run)(&patient);
        if self.is_wanted(&report) {
            self.proven = report;
        } else {
            self.report = self.proven.clone();
            self.trial = self.report.trial.clone();
            self.is_hasty = false;
        }
    }

    /// Everything but single messages and calls.
    fn coarse_pass(&mut self) {
        self.leave_out_workloads();
        self.narrow();
        self.leave_out_nodes_and_clients();
        let plan = Plan::of(&self.trial);
        let storm_ms = u64::try_from(plan.safety_phase.as_millis()).unwrap_or(u64::MAX);
        self.lower(storm_ms, 0, |cuts, to| cuts.storm_ms = Some(to));
        self.leave_out_strikes();
        // Nobody has sent more than all together.
        let messages = plan.messages_max.min(self.report.publishes.iter().sum());
        self.lower(messages, 0, |cuts, to| cuts.messages = Some(to));
        if plan.register_clients > 0 {
            let calls = plan.register_calls_max.min(calls(&self.report));
            self.lower(calls, 0, |cuts, to| cuts.register_calls = Some(to));
        }
    }

    fn leave_out_workloads(&mut self) {
        let all = Plan::of(&self.trial).workloads;
        let can_be = |workload: &Workload| *workload != Workload::Messages;
        self.fewest(all.into_iter().filter(can_be).collect(), |cuts, kept| {
            let is_idle = |workload: &Workload| can_be(workload) && !kept.contains(workload);
            cuts.idle = Workload::ALL.iter().copied().filter(is_idle).collect();
        });
    }

    /// Few messages fill a small window.
    fn narrow(&mut self) {
        let plan = Plan::of(&self.trial);
        let smaller = |than: u64| -> Vec<u32> {
            WINDOWS.iter().copied().filter(|window| u64::from(*window) < than).collect()
        };
        self.first(&smaller(plan.receiver_queue.into()), |cuts, to| {
            cuts.receiver_queue = Some(*to)
        });
        self.first(&smaller(plan.ledger_entries_max), |cuts, to| cuts.ledger_entries = Some(*to));
    }

    fn leave_out_nodes_and_clients(&mut self) {
        let plan = Plan::of(&self.trial);
        let count = |to: u64| u32::try_from(to).ok();
        let shape = plan.shape;
        let least = shape.quorum.ensemble.max(1).into();
        self.lower(plan.register_clients.into(), 0, |cuts, to| cuts.register_clients = count(to));
        self.lower(plan.topics.into(), 1, |cuts, to| cuts.topics = count(to));
        self.lower(plan.producers.into(), 1, |cuts, to| cuts.producers = count(to));
        if !self.trial.cuts.consumes_late {
            self.first(&[true], |cuts, late| cuts.consumes_late = *late);
        }
        self.lower(plan.shared_consumers.into(), 1, |cuts, to| cuts.consumers = count(to));
        self.lower(shape.metadata as u64, 1, |cuts, to| cuts.metadata = count(to));
        self.lower(shape.bookies as u64, least, |cuts, to| cuts.bookies = count(to));
        self.lower(shape.brokers as u64, 1, |cuts, to| cuts.brokers = count(to));
    }

    fn leave_out_strikes(&mut self) {
        let numbers: Vec<u64> = self.report.strikes.iter().map(|strike| strike.number).collect();
        self.fewest(numbers, |cuts, kept| {
            cuts.strikes = Some(kept.iter().copied().collect::<BTreeSet<u64>>());
        });
    }

    /// Single messages and single calls on metadata.
    fn leave_out_steps(&mut self) {
        let plan = Plan::of(&self.trial);
        let messages = plan.messages_max.min(self.report.publishes.iter().sum());
        let producers = u64::from(plan.topics) * u64::from(plan.producers);
        let sends = plan.sends.unwrap_or_else(|| Steps::first(1..producers + 1, messages));
        self.fewest(sends.each().collect(), |cuts, kept| {
            cuts.sends = Some(kept.iter().copied().collect());
        });
        let calls = plan.register_calls_max.min(calls(&self.report));
        let clients = 0..plan.register_clients.into();
        let calls = plan.register_calls.unwrap_or_else(|| Steps::first(clients, calls));
        self.fewest(calls.each().collect(), |cuts, kept| {
            cuts.calls = Some(kept.iter().copied().collect());
        });
    }

    fn fewest<T: Clone>(&mut self, all: Vec<T>, set: impl Fn(&mut Cuts, &[T])) {
        fewest(all, self.effort.parts, |candidates: &[Vec<T>]| {
            self.first(candidates, |cuts, kept| set(cuts, kept))
        });
    }

    fn lower(&mut self, value: u64, low: u64, set: impl Fn(&mut Cuts, u64)) {
        lowest(value, low, |candidates| self.first(candidates, |cuts, to| set(cuts, *to)));
    }

    /// The first candidate that still breaks the promise, which becomes the smallest run so far.
    fn first<T>(&mut self, candidates: &[T], set: impl Fn(&mut Cuts, &T)) -> Option<usize> {
        let mut trials: Vec<(usize, Trial)> = Vec::new();
        for round in 0..self.effort.timings {
            for (place, candidate) in candidates.iter().enumerate() {
                let mut trial = self.trial.clone();
                set(&mut trial.cuts, candidate);
                if round > 0 {
                    self.timings += 1;
                    trial.cuts.timing = Some(self.timings);
                }
                trials.push((place, trial));
            }
        }
        self.first_of(trials, |_, _| true)
    }

    /// The first that breaks the promise, with its place.
    fn first_of(
        &mut self,
        trials: Vec<(usize, Trial)>,
        is_better: fn(&Report, &Report) -> bool,
    ) -> Option<usize> {
        for trials in trials.chunks(self.jobs) {
            if !self.has_time() {
                return None;
            }
            self.runs += trials.len() as u64;
            let run = self.run;
            let reports: Vec<(usize, Report)> = std::thread::scope(|scope| {
                let run = |(place, trial): &(usize, Trial)| (*place, run(trial));
                let runs: Vec<_> =
                    trials.iter().map(|trial| scope.spawn(move || run(trial))).collect();
                runs.into_iter().filter_map(|run| run.join().ok()).collect()
            });
            let found = reports
                .into_iter()
                .find(|(_, report)| is_better(report, &self.report) && self.is_wanted(report));
            if let Some((place, report)) = found {
                self.trial = report.trial.clone();
                self.report = report;
                return Some(place);
            }
        }
        None
    }

    fn is_wanted(&mut self, report: &Report) -> bool {
        let is_it = |violation: &Violation| {
            violation.promise == self.wanted.promise && violation.checker == self.wanted.checker
        };
        if report.violations.iter().any(is_it) {
            return true;
        }
        // A run that hangs or is killed says nothing about what was looked for.
        if report.violations.first().is_none_or(|violation| violation.checker == "process") {
            return false;
        }
        if report.trial.mutant.is_none() {
            return self.any;
        }
        // The bug shows in another way, unless the run fails without it.
        self.runs += 1;
        (self.run)(&Trial { mutant: None, ..report.trial.clone() }).violations.is_empty()
    }
}
