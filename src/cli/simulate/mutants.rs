//! Each planted bug against the campaign: a simulator that lets one live is too weak.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use super::Seeds;
use super::campaign::jobs;
use super::child::run_apart;
use crate::simulator::mutant_list::{Hunt, MUTANTS, Mutant};
use crate::simulator::plan::Topology;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct MutantOptions {
    /// Seeds each planted bug must be caught within.
    #[arg(long, default_value = "0..300")]
    seeds: Seeds,
    /// Each only within a few seeds more than when the table was made.
    #[arg(long)]
    proven: bool,
    /// Only these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Processes at a time; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
}

struct Outcome {
    mutant: &'static Mutant,
    /// Number of seeds until caught, and how.
    caught: Option<(u64, String)>,
}

/// A planted bug that the simulator has to catch.
#[derive(Clone, Copy)]
struct Quarry {
    mutant: &'static Mutant,
    topology: Topology,
    caught_after: u64,
}

pub(super) fn run(options: &MutantOptions) -> u8 {
    if !cfg!(feature = "mutants") {
        eprintln!("this binary has no planted bugs: build it with --features mutants");
        return 2;
    }
    let chosen: Vec<Quarry> = quarries()
        .filter(|quarry| {
            options.only.is_empty() || options.only.contains(&quarry.mutant.name.to_owned())
        })
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = quarries().map(|quarry| quarry.mutant.name).collect();
        eprintln!("no planted bug of that name for the simulator; known: {}", names.join(" "));
        return 2;
    }
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                while let Some(quarry) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = hunt(*quarry, options);
                    let mut outcomes =
                        outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    // A hunt takes long: what is known is shown at once, the table at the end.
                    eprintln!("[{}/{}] {}", outcomes.len() + 1, chosen.len(), line(&outcome));
                    outcomes.push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcomes.sort_by_key(|outcome| outcome.mutant.name);
    print(&outcomes)
}

fn quarries() -> impl Iterator<Item = Quarry> {
    MUTANTS.iter().filter_map(|mutant| match mutant.hunt {
        Hunt::Simulator { topology, caught_after } => {
            Some(Quarry { mutant, topology, caught_after })
        }
        Hunt::Property(_) | Hunt::Scenario(_) | Hunt::Unit(_) => None,
    })
}

fn hunt(quarry: Quarry, options: &MutantOptions) -> Outcome {
    let Quarry { mutant, topology, caught_after } = quarry;
    let mut seeds = options.seeds.0.clone();
    if options.proven {
        // A change elsewhere reshuffles what a seed means: leave room, but not without end.
        seeds.end = seeds.end.min(seeds.start + 3 * caught_after + 10);
    }
    for seed in seeds {
        let planted = Some(mutant.name.to_owned());
        let report = run_apart(&Trial { mutant: planted, ..Trial::new(seed, topology) });
        if let Some(violation) = report.violations.first() {
            let how = format!("{} by {} (seed {seed})", violation.promise, violation.checker);
            return Outcome { mutant, caught: Some((seed - options.seeds.0.start + 1, how)) };
        }
    }
    Outcome { mutant, caught: None }
}

fn line(outcome: &Outcome) -> String {
    let Mutant { name, what, .. } = outcome.mutant;
    match &outcome.caught {
        Some((seeds, how)) => format!("{name:<14} {seeds:>9}  {how:<44} {what}"),
        None => format!("{name:<14} {:>9}  {:<44} {what}", "-", "NOT CAUGHT"),
    }
}

fn print(outcomes: &[Outcome]) -> u8 {
    println!("{:<14} {:>9}  {:<44} planted bug", "mutant", "seeds", "caught");
    for outcome in outcomes {
        println!("{}", line(outcome));
    }
    // Every test run with the feature sees them caught, so they are not hunted here.
    let mut by_tests = 0;
    for Mutant { name, what, hunt } in MUTANTS {
        if let Some((kind, tests)) = hunt.tests() {
            by_tests += 1;
            println!("{name:<14} {kind:>9}  {tests:<44} {what}");
        }
    }
    let alive = outcomes.iter().filter(|outcome| outcome.caught.is_none()).count();
    println!(
        "{} planted bugs hunted, {} caught, {alive} alive; {by_tests} more are caught by tests",
        outcomes.len(),
        outcomes.len() - alive
    );
    u8::from(alive > 0)
}
