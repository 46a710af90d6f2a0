//! `seawall sim`: campaigns of seeds, each in a process of its own, since hash order, statics and
//! counters of libraries differ on a second run within one process.
#![allow(
    clippy::disallowed_methods,
    reason = "a campaign starts processes and waits for them; the simulated world itself is in the child"
)]

mod ablation;
mod arguments;
mod campaign;
mod child;
mod clocks;
mod course;
mod crash_states;
mod filter;
mod junit;
mod kept;
mod liveness;
mod mutants;
mod output_file;
mod pace;
mod program;
mod seeds;
mod shrink;
mod speed;
mod stop;
mod summary;
mod table;
mod totals;
mod trial_options;
mod verdict;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use output_file::OutputFile;
use seeds::Seeds;
use trial_options::TrialOptions;

use super::output::{complain, say, say_json};
use super::{FAILED, GOOD, USAGE};
use crate::simulator::page::page;
use crate::simulator::report::Report;
use crate::simulator::timeline::timeline;

/// The simulator.
#[derive(Debug, Args)]
pub struct SimulateCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run many seeds and report every broken promise.
    ///
    /// Examples:
    ///   seawall sim run --seeds 0..300 --topology cluster
    ///   seawall sim run --for 10m --topology swarm --profile storm
    ///   seawall sim run --seeds 0..50 --topology standalone --twice
    #[command(verbatim_doc_comment)]
    Run(campaign::RunOptions),
    /// Run one seed again and print what happened to its nodes, links, disks and clocks, then its report; or make a
    /// page of all of it.
    ///
    /// Examples:
    ///   seawall sim replay 42 --topology cluster
    ///   seawall sim replay 42 --topology cluster --report seed-42.html
    #[command(verbatim_doc_comment)]
    Replay(ReplayOptions),
    /// Leave out of a failed run what it does not need to fail, and print the rest as a test.
    ///
    /// Example: seawall sim shrink 42 --topology cluster --budget 5m
    Shrink(shrink::ShrinkOptions),
    /// Plant each known bug and see after how many seeds it is caught (needs the feature `mutants`).
    Mutants(mutants::MutantOptions),
    /// Hunt each planted bug with one kind of fault after the other switched off (needs the feature `mutants`).
    Ablation(ablation::AblationOptions),
    /// What wrong clocks cost, for each way in which they are wrong and each size.
    Clocks(clocks::ClockOptions),
    /// How long a healed cluster takes, for each kind of fault, against the recorded baseline.
    Liveness(liveness::LivenessOptions),
    /// How fast the simulator is on the loaded cluster, against fixed work.
    Speed(speed::SpeedOptions),
    /// Start from every state that a power loss may leave, within a bound, and see that promises hold.
    ///
    /// Examples:
    ///   seawall sim crash-states
    ///   seawall sim crash-states --subject bookie --states 5000
    ///   seawall sim crash-states --state bookie/12/34
    #[command(verbatim_doc_comment)]
    CrashStates(crash_states::CrashStatesOptions),
    /// Run one seed in this process and print its report as one JSON line.
    #[command(hide = true)]
    One(OneOptions),
}

impl Action {
    fn check_variable(&self) -> Result<(), String> {
        match self {
            // Where there is --mutant, the variable is another way to say it.
            Self::Run(_) | Self::Replay(_) | Self::Shrink(_) | Self::One(_) => Ok(()),
            Self::CrashStates(_) => mutants::check_variable(true),
            Self::Mutants(_)
            | Self::Ablation(_)
            | Self::Clocks(_)
            | Self::Liveness(_)
            | Self::Speed(_) => mutants::check_variable(false),
        }
    }
}

#[derive(Debug, Args)]
struct ReplayOptions {
    /// The seed.
    seed: u64,
    #[command(flatten)]
    trial: TrialOptions,
    /// Write the run as one HTML page instead of printing its faults: what happened where, and what led to it.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct OneOptions {
    /// The seed.
    seed: u64,
    #[command(flatten)]
    trial: TrialOptions,
    /// Print every decision of the run to standard error, as the simulator keeps it.
    #[arg(long)]
    trace: bool,
}

/// Performs the command; the answer is the exit code: 0 good, 1 a promise was broken, 2 usage.
pub fn simulate(command: SimulateCommand) -> u8 {
    if let Err(error) = command.action.check_variable() {
        complain(&error);
        return USAGE;
    }
    match command.action {
        Action::Run(options) => campaign::run(&options),
        Action::Shrink(options) => shrink::run(&options),
        Action::Mutants(options) => mutants::run(&options),
        Action::Ablation(options) => ablation::run(&options),
        Action::Clocks(options) => clocks::run(&options),
        Action::Liveness(options) => liveness::run(&options),
        Action::Speed(options) => speed::run(&options),
        Action::CrashStates(options) => crash_states::run(&options),
        Action::One(options) => one(options.seed, &options.trial, options.trace, |report| {
            // A parent that is gone reads nothing.
            say_json(report);
        }),
        Action::Replay(options) => match &options.report {
            None => told_in_lines(options.seed, &options.trial),
            Some(path) => told_on_a_page(options.seed, &options.trial, path),
        },
    }
}

/// Runs one seed here, and shows what happened and its report.
fn told_in_lines(seed: u64, options: &TrialOptions) -> u8 {
    let watched = options.check().and_then(|()| child::watch_here(options.trial(seed)));
    match watched {
        Ok((report, recording)) => {
            say(&timeline(&recording).join("\n"));
            table::print_report(&report);
            if report.violations.is_empty() { GOOD } else { FAILED }
        }
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}

/// Runs one seed here, shows its report and makes a page of it.
fn told_on_a_page(seed: u64, options: &TrialOptions, path: &Path) -> u8 {
    let begun = options.check().and_then(|()| OutputFile::begin(path));
    let file = match begun {
        Ok(file) => file,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    let told = child::record_here(options.trial(seed)).and_then(|(report, recording)| {
        table::print_report(&report);
        let page = page(&report, &recording).map_err(|error| format!("no page: {error}"))?;
        file.finish(&page)?;
        complain(&format_args!("page: {}", path.display()));
        Ok(report.violations.is_empty())
    });
    match told {
        Ok(true) => GOOD,
        Ok(false) => FAILED,
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

/// Runs one seed here and shows its report.
fn one(seed: u64, options: &TrialOptions, trace: bool, show: impl FnOnce(&Report)) -> u8 {
    let ran = options.check().and_then(|()| child::run_here(options.trial(seed), trace));
    match ran {
        Ok(report) => {
            show(&report);
            if report.violations.is_empty() { GOOD } else { FAILED }
        }
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}
