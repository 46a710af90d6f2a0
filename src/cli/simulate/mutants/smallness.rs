//! How small the runs get that catch planted bugs, and whether that is small enough to be read.

use std::fmt;
use std::time::Duration;

use crate::cli::output::table;
use crate::cli::simulate::shrink::{Shrunk, operations};
use crate::simulator::mutant_list::median;
use crate::simulator::report::Report;

/// Half of all shrunk runs have at most so many faults.
const STRIKES_MAX: u64 = 3;
/// Half of all shrunk runs have at most so many operations that clients asked for.
const OPERATIONS_MAX: u64 = 10;

/// A run before and after.
#[derive(Clone, Debug)]
pub(super) struct Smallness {
    name: &'static str,
    strikes: (u64, u64),
    operations: (u64, u64),
    took: Duration,
    is_done: bool,
}

impl Smallness {
    pub(super) fn new(name: &'static str, whole: &Report, shrunk: &Shrunk) -> Self {
        let strikes = |report: &Report| report.strikes.len() as u64;
        Self {
            name,
            strikes: (strikes(whole), strikes(&shrunk.report)),
            operations: (operations(whole), operations(&shrunk.report)),
            took: shrunk.took,
            is_done: shrunk.is_done,
        }
    }
}

impl fmt::Display for Smallness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, strikes, operations, took, is_done } = self;
        let cut = if *is_done { "" } else { ", cut off" };
        write!(
            formatter,
            "{name:<14} faults {:>3} -> {:<3} operations {:>5} -> {:<4} in {} s{cut}",
            strikes.0,
            strikes.1,
            operations.0,
            operations.1,
            took.as_secs(),
        )
    }
}

/// All of them as a table with medians, and whether these are small enough.
pub(super) fn verdict(all: &[Smallness]) -> (String, bool) {
    let middle = |value: fn(&Smallness) -> u64| {
        median(all.iter().map(|one| Some(value(one))).collect()).unwrap_or_default()
    };
    let strikes = (middle(|one| one.strikes.0), middle(|one| one.strikes.1));
    let operations = (middle(|one| one.operations.0), middle(|one| one.operations.1));
    let row = |name: &str, strikes: (u64, u64), operations: (u64, u64), seconds: u64| {
        let change = |(before, after): (u64, u64)| format!("{before} -> {after}");
        vec![name.to_owned(), change(strikes), change(operations), seconds.to_string()]
    };
    let mut rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| row(one.name, one.strikes, one.operations, one.took.as_secs()))
        .collect();
    rows.push(row("median", strikes, operations, middle(|one| one.took.as_secs())));
    let is_small = !all.is_empty() && strikes.1 <= STRIKES_MAX && operations.1 <= OPERATIONS_MAX;
    let judged = if is_small { "small enough" } else { "TOO LARGE" };
    let text = format!(
        "{}\n{} runs made small; the median has {} faults and {} operations of clients, at most {STRIKES_MAX} and \
         {OPERATIONS_MAX} are wanted: {judged}",
        table(&["mutant", "faults", "operations", "s"], &rows),
        all.len(),
        strikes.1,
        operations.1,
    );
    (text, is_small)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(strikes: u64, operations: u64) -> Smallness {
        Smallness {
            name: "S1",
            strikes: (20, strikes),
            operations: (300, operations),
            took: Duration::from_secs(7),
            is_done: true,
        }
    }

    #[test]
    fn the_median_decides() {
        let (text, is_small) = verdict(&[one(1, 2), one(3, 10), one(20, 300)]);
        assert!(is_small && text.contains("small enough"), "{text}");
        assert!(text.contains("20 -> 3"), "{text}");
        assert!(!verdict(&[one(1, 2), one(4, 10), one(20, 300)]).1);
        assert!(!verdict(&[one(1, 2), one(3, 11), one(20, 300)]).1);
        assert!(!verdict(&[]).1, "nothing was made small");
    }
}
