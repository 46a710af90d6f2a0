//! Many seeds over a few processes at a time, failures shown as they come.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::child::run_apart;
use super::{Seeds, table};
use crate::simulator::checkers::Violation;
use crate::simulator::plan::Topology;
use crate::simulator::report::Report;

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Seeds to run: A..B, or one.
    #[arg(long, default_value = "0..100")]
    seeds: Seeds,
    /// The shape of the cluster.
    #[arg(long, value_enum, default_value = "cluster")]
    topology: Topology,
    /// Run each seed twice and demand equal hashes.
    #[arg(long)]
    twice: bool,
    /// Processes at a time; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Plant this bug in every run (needs the feature `mutants`).
    #[arg(long)]
    mutant: Option<String>,
    /// `json` prints one report a line and nothing else.
    #[arg(short, long, value_parser = ["text", "json"], default_value = "text")]
    output: String,
}

pub(super) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

pub(super) fn run(options: &RunOptions) -> u8 {
    let is_json = options.output == "json";
    let count = options.seeds.0.end - options.seeds.0.start;
    let bar = ProgressBar::new(count);
    if is_json || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} seeds, {elapsed} {msg}") {
        bar.set_style(style);
    }
    let next = AtomicU64::new(options.seeds.0.start);
    let reports: Mutex<BTreeMap<u64, Report>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= options.seeds.0.end {
                        return;
                    }
                    let report = run_seed(seed, options);
                    if is_json {
                        println!("{}", serde_json::to_string(&report).unwrap_or_default());
                    } else if !report.violations.is_empty() {
                        bar.suspend(|| table::print_failure(&report));
                    }
                    bar.inc(1);
                    let mut reports =
                        reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    reports.insert(seed, report);
                }
            });
        }
    });
    bar.finish_and_clear();
    let reports = reports.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let reports: Vec<Report> = reports.into_values().collect();
    let idle = checkers_that_compared_nothing(&reports);
    if !is_json {
        table::print_summary(&reports, options.topology);
        for name in &idle {
            println!("checker {name} compared nothing in the whole campaign");
        }
    }
    u8::from(!idle.is_empty() || reports.iter().any(|report| !report.violations.is_empty()))
}

fn run_seed(seed: u64, options: &RunOptions) -> Report {
    let mutant = options.mutant.as_deref();
    let mut report = run_apart(seed, options.topology, mutant);
    if options.twice {
        let second = run_apart(seed, options.topology, mutant);
        if (&second.hash, second.events) != (&report.hash, report.events) {
            report.violations.push(Violation {
                promise: "same seed, same trace".to_owned(),
                checker: "determinism".to_owned(),
                detail: format!(
                    "first run {} after {} events, second {} after {}",
                    report.hash, report.events, second.hash, second.events
                ),
            });
        }
    }
    report
}

/// A campaign in which a checker had nothing to compare proves nothing about its promise.
fn checkers_that_compared_nothing(reports: &[Report]) -> Vec<String> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for report in reports {
        for (name, compared) in &report.compared {
            *totals.entry(name).or_default() += compared;
        }
    }
    totals.into_iter().filter(|(_, total)| *total == 0).map(|(name, _)| name.to_owned()).collect()
}
