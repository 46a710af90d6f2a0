//! Each planted bug against the campaign: a simulator that lets one live is too weak.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use super::Seeds;
use super::campaign::jobs;
use super::child::run_apart;
use crate::simulator::mutant_list::{MUTANTS, Mutant};

#[derive(Debug, Args)]
pub(super) struct MutantOptions {
    /// Seeds each planted bug must be caught within.
    #[arg(long, default_value = "0..300")]
    seeds: Seeds,
    /// Only those that were caught when the table was made, each within a few seeds more than then.
    #[arg(long)]
    proven: bool,
    /// Only this one.
    #[arg(long)]
    only: Option<String>,
    /// Processes at a time; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
}

struct Outcome {
    mutant: &'static Mutant,
    /// Number of seeds until caught, and how.
    caught: Option<(u64, String)>,
}

pub(super) fn run(options: &MutantOptions) -> u8 {
    if !cfg!(feature = "mutants") {
        eprintln!("this binary has no planted bugs: build it with --features mutants");
        return 2;
    }
    let chosen: Vec<&'static Mutant> = MUTANTS
        .iter()
        .filter(|mutant| options.only.as_ref().is_none_or(|only| only == mutant.name))
        .filter(|mutant| !options.proven || mutant.caught_after > 0)
        .collect();
    if chosen.is_empty() {
        eprintln!("no planted bug of that name; known: {}", names().join(" "));
        return 2;
    }
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                while let Some(mutant) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = hunt(mutant, options);
                    outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    outcomes.sort_by_key(|outcome| outcome.mutant.name);
    print(&outcomes)
}

fn names() -> Vec<&'static str> {
    MUTANTS.iter().map(|mutant| mutant.name).collect()
}

fn hunt(mutant: &'static Mutant, options: &MutantOptions) -> Outcome {
    let mut seeds = options.seeds.0.clone();
    if options.proven {
        // A change elsewhere reshuffles what a seed means: leave room, but not without end.
        seeds.end = seeds.end.min(seeds.start + 3 * mutant.caught_after + 10);
    }
    for seed in seeds {
        let report = run_apart(seed, mutant.topology, Some(mutant.name));
        if let Some(violation) = report.violations.first() {
            let how = format!("{} by {} (seed {seed})", violation.promise, violation.checker);
            return Outcome { mutant, caught: Some((seed - options.seeds.0.start + 1, how)) };
        }
    }
    Outcome { mutant, caught: None }
}

fn print(outcomes: &[Outcome]) -> u8 {
    println!("{:<14} {:>6}  {:<44} planted bug", "mutant", "seeds", "caught");
    let mut alive = 0;
    for outcome in outcomes {
        let (seeds, how) = match &outcome.caught {
            Some((seeds, how)) => (seeds.to_string(), how.as_str()),
            None => {
                alive += 1;
                ("-".to_owned(), "NOT CAUGHT")
            }
        };
        println!("{:<14} {seeds:>6}  {how:<44} {}", outcome.mutant.name, outcome.mutant.what);
    }
    println!("{} planted bugs, {} caught, {alive} alive", outcomes.len(), outcomes.len() - alive);
    u8::from(alive > 0)
}
