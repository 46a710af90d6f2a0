//! Which kinds of fault catch which planted bugs: each bug that runs of the simulator catch is hunted again with one kind of
//! fault after the other switched off. A kind without which nothing escapes is dead weight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use super::arguments::{jobs, parse_jobs};
use super::child::run_apart;
use super::mutants::chosen;
use super::seeds::Seeds;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::cuts::Cuts;
use crate::simulator::plan::{FaultKind, Plan};
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct AblationOptions {
    /// Seeds of a hunt: a bug that these do not catch without a kind of fault needs it.
    #[arg(long, default_value = "0..60")]
    seeds: Seeds,
    /// Only these planted bugs.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
    jobs: Option<usize>,
}

/// What became of one planted bug.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Seeds until it was caught with every kind of fault; none if it was not.
    caught_after: Option<u64>,
    /// By kind, seeds until it was caught without it; kinds that are not here are needed.
    without: BTreeMap<FaultKind, u64>,
}

impl Needs {
    fn needed(&self) -> Vec<FaultKind> {
        match self.caught_after {
            None => Vec::new(),
            Some(_) => {
                let needed = FaultKind::ALL.iter().filter(|kind| !self.without.contains_key(kind));
                needed.copied().collect()
            }
        }
    }
}

pub(super) fn run(options: &AblationOptions) -> u8 {
    let chosen = match chosen(&options.only) {
        Ok(chosen) => chosen,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    let next = AtomicUsize::new(0);
    let found: Mutex<BTreeMap<&str, Needs>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                while let Some(quarry) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let needs = look(options, |seed, without| {
                        let cuts = Cuts { without, ..Cuts::default() };
                        let mutant = Some(quarry.mutant.name.to_owned());
                        let trial = Trial { mutant, cuts, ..Trial::new(seed, quarry.topology) };
                        (Plan::of(&trial).faults, !run_apart(&trial).violations.is_empty())
                    });
                    let mut found = found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    complain(&line(quarry.mutant.name, &needs));
                    found.insert(quarry.mutant.name, needs);
                }
            });
        }
    });
    let found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    print(&found);
    if found.values().any(|needs| needs.caught_after.is_none()) { FAILED } else { GOOD }
}

/// Hunts with all kinds of fault, and at each seed that catches the bug again without each kind that has not proved
/// needless yet. A run that could not have had a kind is the same without it.
fn look(
    options: &AblationOptions,
    run: impl Fn(u64, BTreeSet<FaultKind>) -> (Vec<FaultKind>, bool),
) -> Needs {
    let mut needs = Needs::default();
    let first = options.seeds.0.start;
    for seed in options.seeds.0.clone() {
        let (kinds, is_caught) = run(seed, BTreeSet::new());
        let seeds = seed - first + 1;
        if is_caught {
            needs.caught_after.get_or_insert(seeds);
        }
        for kind in FaultKind::ALL {
            if needs.without.contains_key(kind) {
                continue;
            }
            let still = match kinds.contains(kind) {
                true => run(seed, [*kind].into()).1,
                false => is_caught,
            };
            if still {
                needs.without.insert(*kind, seeds);
            }
        }
        if needs.without.len() == FaultKind::ALL.len() {
            break;
        }
    }
    needs
}

fn line(name: &str, needs: &Needs) -> String {
    let Some(seeds) = needs.caught_after else { return format!("{name:<16} not caught") };
    let needed: Vec<&str> = needs.needed().iter().map(|kind| kind.as_str()).collect();
    let needed = if needed.is_empty() { "no kind alone".to_owned() } else { needed.join(" ") };
    format!("{name:<16} caught after {seeds:>3}; needs {needed}")
}

/// Rows: planted bugs; columns: the kind that is switched off; cells: seeds until caught all the same.
fn print(found: &BTreeMap<&str, Needs>) {
    let mut lines = vec!["seeds until caught without a kind of fault (x: not caught)".to_owned()];
    for (number, kind) in FaultKind::ALL.iter().enumerate() {
        lines.push(format!("  {number:>2} {}", kind.as_str()));
    }
    let heads: String = (0..FaultKind::ALL.len()).map(|number| format!("{number:>4}")).collect();
    lines.push(format!("{:<16} {:>4}{heads}", "planted bug", "all"));
    for (name, needs) in found {
        let all = needs.caught_after.map_or_else(|| "x".to_owned(), |seeds| seeds.to_string());
        let cell = |kind| match needs.without.get(kind) {
            Some(seeds) => format!("{seeds:>4}"),
            None => format!("{:>4}", "x"),
        };
        let cells: String = FaultKind::ALL.iter().map(cell).collect();
        lines.push(format!("{name:<16} {all:>4}{cells}"));
    }
    for kind in FaultKind::ALL {
        let caught: Vec<&str> = found
            .iter()
            .filter(|(_, needs)| needs.needed().contains(kind))
            .map(|(name, _)| *name)
            .collect();
        lines.push(match caught.is_empty() {
            true => format!("{}: nothing escapes without it", kind.as_str()),
            false => format!("{}: only with it {}", kind.as_str(), caught.join(" ")),
        });
    }
    say(&lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_needed_if_nothing_is_caught_without_it() {
        let options =
            AblationOptions { seeds: "5..25".parse().unwrap(), only: Vec::new(), jobs: None };
        // Caught by a crash, and only where there are pauses as well; every other seed has no partition.
        let needs = look(&options, |seed, without| {
            let mut kinds = vec![FaultKind::Crash, FaultKind::Pause];
            if seed % 2 == 0 {
                kinds.push(FaultKind::Partition);
            }
            kinds.retain(|kind| !without.contains(kind));
            let is_caught =
                seed >= 8 && kinds.contains(&FaultKind::Crash) && kinds.contains(&FaultKind::Pause);
            (kinds, is_caught)
        });
        assert_eq!(needs.caught_after, Some(4));
        assert_eq!(needs.needed(), [FaultKind::Crash, FaultKind::Pause]);
        assert_eq!(needs.without[&FaultKind::Partition], 4);
        let nothing = look(&options, |_, _| (Vec::new(), false));
        assert_eq!((nothing.caught_after, nothing.needed()), (None, Vec::new()));
    }
}
