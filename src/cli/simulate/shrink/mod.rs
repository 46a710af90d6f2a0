//! `sim shrink`: leaves out of a failed run whatever it does not need to fail: strikes of the nemesis, time, nodes,
//! clients, what clients do. What is left is printed as a test.

mod delta;
mod search;
mod small;
mod test_text;

use std::time::Duration;

use clap::Args;

pub(super) use self::search::{Shrunk, operations, shrink};
use self::test_text::{FILE, test_text};
use super::arguments::{jobs, parse_jobs, parse_time};
use super::child::run_apart;
use super::program::typed;
use super::trial_options::TrialOptions;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::plan::Plan;
use crate::simulator::report::Report;

#[derive(Debug, Args)]
pub(super) struct ShrinkOptions {
    /// A seed that breaks a promise.
    seed: u64,
    #[command(flatten)]
    trial: TrialOptions,
    /// A smaller run may break any promise, for any checker: one bug shows in many ways, but so may another one.
    #[arg(long)]
    any: bool,
    /// Try for so long after the first run; runs under way are finished.
    #[arg(long, default_value = "60s", value_parser = parse_time, value_name = "TIME")]
    budget: Duration,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
    jobs: Option<usize>,
}

/// Tells, and does, the command.
pub(super) fn run(options: &ShrinkOptions) -> u8 {
    if let Err(error) = options.trial.check() {
        complain(&error);
        return USAGE;
    }
    let trial = options.trial.trial(options.seed);
    let report = run_apart(&trial);
    complain(&format_args!("seed {}: {}", trial.seed, size(&report)));
    if let Some(wanted) = report.violations.first() {
        complain(wanted);
    }
    let Some(shrunk) = shrink(report, options.any, options.budget, jobs(options.jobs)) else {
        complain(&format_args!(
            "seed {} breaks no promise: there is nothing to shrink",
            trial.seed
        ));
        return FAILED;
    };
    let why = match shrunk.is_done {
        true => "nothing more can be left out",
        false => "the time is over",
    };
    complain(&format_args!("{why}, after {} runs: {}", shrunk.runs, size(&shrunk.report)));
    let trial = &shrunk.report.trial;
    complain(&format_args!("replay: {}", typed(&trial.replay_command())));
    complain(&format_args!("page:   {}", typed(&trial.page_command())));
    complain(&format_args!("the test below is for {FILE}, which has keeps_every_promise"));
    say(&test_text(&shrunk.report, &shrunk.wanted));
    GOOD
}

/// How large a run is.
fn size(report: &Report) -> String {
    let plan = Plan::of(&report.trial);
    format!(
        "{} strikes in {} ms of storm, {} nodes, {} messages, {} topics with {} producers and {} shared consumers each, \
         {} clients of metadata, {} events",
        report.strikes.len(),
        plan.safety_phase.as_millis(),
        plan.shape.nodes(),
        report.publishes.iter().sum::<u64>(),
        plan.topics,
        plan.producers,
        plan.shared_consumers,
        plan.register_clients,
        report.events,
    )
}
