//! `seawall sim`: campaigns of seeds, each in a process of its own, since hash order, statics and
//! counters of libraries differ on a second run within one process.
#![allow(
    clippy::disallowed_methods,
    reason = "a campaign starts processes and waits for them; the simulated world itself is in the child"
)]

mod campaign;
mod child;
mod mutants;
mod seeds;
mod table;

use clap::{Args, Subcommand};

pub use seeds::Seeds;

use crate::simulator::plan::Topology;
use crate::simulator::report::Report;

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
    ///   seawall sim run --seeds 0..50 --topology standalone --twice
    Run(campaign::RunOptions),
    /// Run one seed again and print its events.
    ///
    /// Example: seawall sim replay 42 --topology cluster
    Replay(ReplayOptions),
    /// Plant each known bug and see after how many seeds it is caught (needs the feature `mutants`).
    Mutants(mutants::MutantOptions),
    /// Run one seed in this process and print its report as one JSON line.
    #[command(hide = true)]
    One(OneOptions),
}

#[derive(Debug, Args)]
struct ReplayOptions {
    /// The seed.
    seed: u64,
    /// The shape of the cluster.
    #[arg(long, value_enum, default_value = "cluster")]
    topology: Topology,
    /// Plant this bug (needs the feature `mutants`).
    #[arg(long)]
    mutant: Option<String>,
}

#[derive(Debug, Args)]
struct OneOptions {
    /// The seed.
    #[arg(long)]
    seed: u64,
    /// The shape of the cluster.
    #[arg(long, value_enum)]
    topology: Topology,
    /// Plant this bug.
    #[arg(long)]
    mutant: Option<String>,
    /// Print the run's events to standard error.
    #[arg(long)]
    trace: bool,
}

/// Performs the command; the answer is the exit code: 0 good, 1 a promise was broken, 2 usage.
pub fn simulate(command: SimulateCommand) -> u8 {
    match command.action {
        Action::Run(options) => campaign::run(&options),
        Action::Mutants(options) => mutants::run(&options),
        Action::One(options) => {
            one(options.seed, options.topology, options.mutant, options.trace, |report| {
                println!("{}", serde_json::to_string(report).unwrap_or_default());
            })
        }
        Action::Replay(options) => {
            one(options.seed, options.topology, options.mutant, true, table::print_report)
        }
    }
}

/// Runs one seed here and shows its report.
fn one(
    seed: u64,
    topology: Topology,
    mutant: Option<String>,
    trace: bool,
    show: impl FnOnce(&Report),
) -> u8 {
    match child::run_here(seed, topology, mutant.as_deref(), trace) {
        Ok(report) => {
            show(&report);
            u8::from(!report.violations.is_empty())
        }
        Err(error) => {
            eprintln!("{error}");
            2
        }
    }
}
