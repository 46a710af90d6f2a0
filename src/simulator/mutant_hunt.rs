//! Hunting planted bugs with tests. A planted bug lives as long as its process, so each is hunted in a child
//! of the test binary that runs: the same binary again, with the bug's name in its environment, asked for
//! the tests that have to fail.
#![allow(
    clippy::disallowed_methods,
    reason = "planted bugs are in no binary that serves, and a test has to start itself again"
)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::invariant::mutants::VARIABLE;

/// A planted bug and the tests of the running binary that have to catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quarry {
    /// Its name in the code.
    pub mutant: &'static str,
    /// A part of the names of tests.
    pub tests: &'static str,
}

/// Whether the tests of such names pass in a child with this planted bug (none, if empty) and these
/// variables. Also when there are none: running nothing is a pass.
pub fn tests_pass(tests: &str, mutant: &str, variables: &[(&str, &str)]) -> bool {
    complaint(tests, mutant, variables).is_none()
}

/// What those tests say when they do not pass.
pub fn complaint(tests: &str, mutant: &str, variables: &[(&str, &str)]) -> Option<String> {
    let binary = std::env::current_exe().map_err(|error| error.to_string());
    let output = binary.and_then(|binary| {
        Command::new(binary)
            .args([tests, "--quiet"])
            .env(VARIABLE, mutant)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())
    });
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => Some(error),
    }
}

/// Hunts each, and runs each test once without any planted bug, in as many processes at a time as there are
/// cores. What is wrong: bugs that live, tests that fail by themselves.
pub fn hunt(quarries: &[Quarry]) -> Vec<String> {
    let sound: BTreeSet<&str> = quarries.iter().map(|quarry| quarry.tests).collect();
    let without = sound.into_iter().map(|tests| Quarry { mutant: "", tests });
    let trials: Vec<Quarry> = without.chain(quarries.iter().copied()).collect();
    let wrong = Mutex::new(Vec::new());
    spread(&trials, |Quarry { mutant, tests }| {
        let passed = tests_pass(tests, mutant, &[]);
        let found = match (mutant.is_empty(), passed) {
            (true, false) => format!("{tests} fails without a planted bug"),
            (false, true) => format!("{mutant} is not caught by {tests}"),
            _ => return,
        };
        wrong.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(found);
    });
    wrong.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does the work for each, for as many at a time as there are cores.
pub(super) fn spread<T: Sync>(all: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(one);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::mutant_list::{Hunt, MUTANTS};

    #[test]
    fn each_planted_bug_is_caught_by_its_unit_test() {
        let quarries: Vec<Quarry> = MUTANTS
            .iter()
            .filter_map(|mutant| match mutant.hunt {
                Hunt::Unit(tests) => Some(Quarry { mutant: mutant.name, tests }),
                _ => None,
            })
            .collect();
        assert!(!quarries.is_empty());
        let wrong = hunt(&quarries);
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
