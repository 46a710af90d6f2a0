//! Each planted bug against the campaign: a simulator that lets one live is too weak.

mod smallness;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;

use self::smallness::{Smallness, verdict};
use super::Seeds;
use super::arguments::{jobs, parse_jobs, parse_time};
use super::child::run_apart;
use super::shrink::shrink;
use crate::cli::output::{complain, say, table};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::invariant::mutants::VARIABLE;
use crate::simulator::bug_catalogue::{Standing, rows, summary};
use crate::simulator::mutant_list::{Hunt, MUTANTS, Mutant, median};
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct MutantOptions {
    /// Seeds each planted bug must be caught within.
    #[arg(long, default_value = "0..300")]
    seeds: Seeds,
    /// Hunts for each, every one with as many seeds, behind those of the one before: what one first seed says is
    /// luck, the median of several is not.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=HUNTS_MAX))]
    hunts: u32,
    /// Each only within a few seeds more than when the table was made.
    #[arg(long)]
    proven: bool,
    /// Only these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Shrink the first run that catches each, for so long, and say how small it got.
    #[arg(long, value_parser = parse_time, value_name = "TIME")]
    shrink: Option<Duration>,
    /// Hunt nothing: print which planted bugs stand for which known bugs of other systems.
    #[arg(long)]
    catalogue: bool,
    /// Which faults there may be: what one kind alone catches, and what it does not.
    #[arg(long, value_enum, default_value = "swarm", hide_possible_values = true)]
    profile: Profile,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
    jobs: Option<usize>,
}

/// What a binary says that was built without them.
pub(super) const NO_PLANTED_BUGS: &str =
    "this binary has no planted bugs: build it with --features mutants";

/// Complains about a bug that cannot be planted.
pub(super) fn check_planted(name: Option<&str>) -> Result<(), String> {
    match name {
        Some(_) if !cfg!(feature = "mutants") => Err(NO_PLANTED_BUGS.to_owned()),
        Some(name) if MUTANTS.iter().all(|mutant| mutant.name != name) => {
            Err(format!("no planted bug is called {name:?}; `seawall sim mutants` lists them"))
        }
        _ => Ok(()),
    }
}

/// What a command does about `SEAWALL_MUTANT` that has no option of that name: exploring crashes here plants it in this
/// process; the others make trials of their own, in which it is not.
pub(super) fn check_variable(plants_here: bool) -> Result<(), String> {
    match std::env::var(VARIABLE) {
        Err(_) => Ok(()),
        Ok(name) if plants_here => check_planted(Some(&name)),
        Ok(name) => Err(format!(
            "{VARIABLE}={name} says to plant a bug, which this command does not do: unset it"
        )),
    }
}

/// Most hunts for each planted bug.
const HUNTS_MAX: i64 = 1000;

/// A planted bug that the simulator has to catch.
#[derive(Clone, Copy)]
pub(super) struct Quarry {
    pub(super) mutant: &'static Mutant,
    pub(super) topology: Topology,
    caught_after: u64,
}

/// Seeds until caught, and how.
#[derive(Clone, Debug)]
struct Catch {
    seeds: u64,
    how: String,
    report: Report,
}

/// What all hunts for one planted bug have come to.
struct Outcome {
    mutant: &'static Mutant,
    /// By the number of the hunt.
    hunts: BTreeMap<u32, Option<Catch>>,
}

impl Outcome {
    fn catches(&self) -> Vec<&Catch> {
        self.hunts.values().flatten().collect()
    }

    /// The median of seeds until caught; none if more than half of the hunts caught nothing.
    fn median(&self) -> Option<u64> {
        median(self.hunts.values().map(|catch| Some(catch.as_ref()?.seeds)).collect())
    }
}

pub(super) fn run(options: &MutantOptions) -> u8 {
    if options.catalogue {
        say(&catalogue());
        return GOOD;
    }
    match prepare(options) {
        Ok(chosen) => hunt_all(&chosen, options),
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}

/// Who is to be hunted.
fn prepare(options: &MutantOptions) -> Result<Vec<Quarry>, String> {
    let chosen = chosen(&options.only)?;
    let Range { start, end } = options.seeds.0;
    let all = (end - start).checked_mul(options.hunts.into());
    if all.and_then(|all| start.checked_add(all)).is_none() {
        return Err("so many hunts for so many seeds each: there are not so many seeds".to_owned());
    }
    Ok(chosen)
}

/// The planted bugs of these names that the simulator has to catch; all of them if none is named.
pub(super) fn chosen(only: &[String]) -> Result<Vec<Quarry>, String> {
    if !cfg!(feature = "mutants") {
        return Err(NO_PLANTED_BUGS.to_owned());
    }
    let names: Vec<&str> = quarries().map(|quarry| quarry.mutant.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(" ");
        return Err(format!(
            "no planted bug for the simulator is called {unknown:?}; known: {names}"
        ));
    }
    let is_asked_for =
        |quarry: &Quarry| only.is_empty() || only.iter().any(|name| name == quarry.mutant.name);
    Ok(quarries().filter(is_asked_for).collect())
}

fn quarries() -> impl Iterator<Item = Quarry> {
    MUTANTS.iter().filter_map(|mutant| match mutant.hunt {
        Hunt::Simulator { topology, caught_after } => {
            Some(Quarry { mutant, topology, caught_after })
        }
        Hunt::Property(_) | Hunt::Scenario(_) | Hunt::Unit(_) => None,
    })
}

fn hunt_all(chosen: &[Quarry], options: &MutantOptions) -> u8 {
    let hunts: Vec<(Quarry, u32)> = chosen
        .iter()
        .flat_map(|quarry| (0..options.hunts).map(move |number| (*quarry, number)))
        .collect();
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<BTreeMap<&str, Outcome>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                while let Some((quarry, number)) = hunts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let catch = hunt(*quarry, *number, options);
                    let mutant = quarry.mutant;
                    let mut outcomes =
                        outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    let outcome = outcomes
                        .entry(mutant.name)
                        .or_insert_with(|| Outcome { mutant, hunts: BTreeMap::new() });
                    outcome.hunts.insert(*number, catch);
                    // Hunts take long: what is known is shown at once, the table at the end.
                    if outcome.hunts.len() == options.hunts as usize {
                        let line = line(outcome);
                        let is_done =
                            |outcome: &&Outcome| outcome.hunts.len() == options.hunts as usize;
                        let done = outcomes.values().filter(is_done).count();
                        complain(&format_args!("[{done}/{}] {line}", chosen.len()));
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let outcomes: Vec<Outcome> = outcomes.into_values().collect();
    let hunted = print(&outcomes);
    match options.shrink {
        None => hunted,
        Some(budget) => hunted.max(shrink_all(&outcomes, budget, jobs(options.jobs))),
    }
}

/// One after the other, each with every processor: what a person would wait for.
fn shrink_all(outcomes: &[Outcome], budget: Duration, jobs: usize) -> u8 {
    let mut all = Vec::new();
    for outcome in outcomes {
        let Some(catch) = outcome.catches().into_iter().next() else {
            continue;
        };
        let whole = catch.report.clone();
        if let Some(shrunk) = shrink(whole.clone(), false, budget, jobs) {
            let smallness = Smallness::new(outcome.mutant.name, &whole, &shrunk);
            complain(&smallness);
            all.push(smallness);
        }
    }
    let (text, is_small) = verdict(&all);
    say(&text);
    if is_small { GOOD } else { FAILED }
}

/// The seeds of one hunt; hunts share none.
fn seeds_of(number: u32, quarry: Quarry, options: &MutantOptions) -> Range<u64> {
    let Range { start, end } = options.seeds.0;
    let length = end - start;
    let first = start.saturating_add(length * u64::from(number));
    // A change elsewhere reshuffles what a seed means: leave room, but not without end.
    let farthest = match options.proven {
        true => length.min(3 * quarry.caught_after + 10),
        false => length,
    };
    first..first.saturating_add(farthest)
}

fn hunt(quarry: Quarry, number: u32, options: &MutantOptions) -> Option<Catch> {
    let Quarry { mutant, topology, .. } = quarry;
    let seeds = seeds_of(number, quarry, options);
    let first = seeds.start;
    for seed in seeds {
        let report = run_apart(&Trial {
            profile: options.profile,
            mutant: Some(mutant.name.to_owned()),
            ..Trial::new(seed, topology)
        });
        if let Some(violation) = report.violations.first() {
            let how = format!("{} by {} (seed {seed})", violation.promise, violation.checker);
            return Some(Catch { seeds: seed - first + 1, how, report });
        }
    }
    None
}

fn line(outcome: &Outcome) -> String {
    let Mutant { name, what, .. } = outcome.mutant;
    let catches = outcome.catches();
    let how = catches.first().map_or("NOT CAUGHT", |catch| &catch.how);
    let median = outcome.median().map_or_else(|| "-".to_owned(), |median| median.to_string());
    let of = format!("{}/{}", catches.len(), outcome.hunts.len());
    format!("{name:<14} {median:>9} {of:>7}  {how:<44} {what}")
}

fn catalogue() -> String {
    let rows: Vec<Vec<String>> = rows()
        .map(|row| {
            let planted = match row.standing {
                Standing::Planted(names) => names.join(" "),
                Standing::CannotExist => "cannot exist here".to_owned(),
            };
            vec![row.id.to_owned(), planted, row.what.to_owned()]
        })
        .collect();
    format!("{}\n{}", table(&["row", "planted", "known bug"], &rows), summary())
}

fn print(outcomes: &[Outcome]) -> u8 {
    let mut lines = vec![format!(
        "{:<14} {:>9} {:>7}  {:<44} planted bug",
        "mutant", "seeds", "hunts", "caught"
    )];
    lines.extend(outcomes.iter().map(line));
    // Every test run with the feature sees them caught, so they are not hunted here.
    let mut by_tests = 0;
    for Mutant { name, what, hunt } in MUTANTS {
        if let Some((kind, tests)) = hunt.tests() {
            by_tests += 1;
            lines.push(format!("{name:<14} {kind:>9} {:>7}  {tests:<44} {what}", ""));
        }
    }
    let alive = outcomes.iter().filter(|outcome| outcome.median().is_none()).count();
    lines.push(format!(
        "{} planted bugs hunted, {} caught, {alive} alive; {by_tests} more are caught by tests",
        outcomes.len(),
        outcomes.len() - alive
    ));
    lines.push(summary());
    say(&lines.join("\n"));
    if alive > 0 { FAILED } else { GOOD }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::checkers::Violation;

    fn outcome(seeds: &[u64]) -> Outcome {
        let catch = |seeds: &u64| {
            let none =
                Violation { promise: String::new(), checker: String::new(), detail: String::new() };
            let report = Report::of_failure(Trial::new(0, Topology::Standalone), none);
            (*seeds > 0).then(|| Catch { seeds: *seeds, how: String::new(), report })
        };
        Outcome { mutant: &MUTANTS[0], hunts: (0..).zip(seeds.iter().map(catch)).collect() }
    }

    /// 0: a hunt that caught nothing.
    #[test]
    fn a_hunt_in_vain_is_longer_than_any() {
        assert_eq!(outcome(&[7]).median(), Some(7));
        assert_eq!(outcome(&[0]).median(), None);
        assert_eq!(outcome(&[9, 1, 4]).median(), Some(4));
        assert_eq!(outcome(&[9, 0, 4]).median(), Some(9));
        assert_eq!(outcome(&[9, 0, 0]).median(), None);
        assert_eq!(outcome(&[4, 0]).median(), Some(4));
        assert!(line(&outcome(&[9, 0, 4])).contains("2/3"));
    }

    #[test]
    #[cfg(feature = "mutants")]
    fn every_bug_that_is_asked_for_is_hunted() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            super::chosen(&names)
        };
        assert_eq!(chosen(&["S8", "B16"]).unwrap().len(), 2);
        assert!(chosen(&["S8", "Nope"]).err().unwrap().contains("\"Nope\""));
        assert!(chosen(&[]).unwrap().len() > 2);
    }

    #[test]
    fn hunts_share_no_seed() {
        let mut options = MutantOptions {
            seeds: Seeds(10..40),
            hunts: 3,
            proven: false,
            only: Vec::new(),
            shrink: None,
            catalogue: false,
            profile: Profile::Swarm,
            jobs: None,
        };
        let quarry =
            Quarry { mutant: &MUTANTS[0], topology: Topology::Standalone, caught_after: 2 };
        let seeds =
            |options: &MutantOptions| [0, 1, 2].map(|number| seeds_of(number, quarry, options));
        assert_eq!(seeds(&options), [10..40, 40..70, 70..100]);
        options.proven = true;
        assert_eq!(seeds(&options), [10..26, 40..56, 70..86]);
    }
}
