//! Looking whether tests reach the marks that the list says they do: each test once more, in a child of the test binary
//! that runs, which writes down the marks it comes to.
#![allow(
    clippy::disallowed_methods,
    reason = "in no binary that serves: a test has to start itself again and to read what its child wrote"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use super::mark_list::{MARKS, Reach};
use super::mutant_hunt::{spread, tests_pass};
use crate::invariant::marks::VARIABLE;

/// What is wrong with the marks that tests of this kind have to reach: tests that fail or do not exist, and marks they
/// do not come to.
pub fn missed(kind: fn(Reach) -> Option<&'static str>) -> Vec<String> {
    let mut promised: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for mark in MARKS {
        if let Some(tests) = kind(mark.reach) {
            promised.entry(tests).or_default().push(mark.name);
        }
    }
    let wrong = Mutex::new(Vec::new());
    let promised: Vec<(&str, Vec<&str>)> = promised.into_iter().collect();
    spread(&promised, |(tests, names)| {
        let found = look(tests, names);
        wrong.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(found);
    });
    wrong.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs of a test that may come to a mark together: a test on the real runtime has no say in what meets what, and that
/// a branch can be reached is shown by one run that does.
const RUNS_MAX: usize = 5;

fn look(tests: &str, names: &[&str]) -> Vec<String> {
    let mut missed = names.to_vec();
    for _ in 0..RUNS_MAX {
        let Ok(reached) = run_once(tests) else { return vec![format!("{tests} fails")] };
        missed.retain(|name| !reached.contains(*name));
        if missed.is_empty() {
            return Vec::new();
        }
    }
    missed.iter().map(|name| format!("{tests} does not reach {name:?}")).collect()
}

/// The marks that the tests came to; an error if one fails.
fn run_once(tests: &str) -> Result<BTreeSet<String>, ()> {
    let path = file_of(tests);
    let text = path.to_string_lossy();
    // A property test draws the same cases every time: what it reaches is no matter of luck.
    let variables = [(VARIABLE, text.as_ref()), ("PROPTEST_RNG_SEED", "1")];
    let passed = tests_pass(tests, "", &variables);
    let reached = std::fs::read_to_string(&path).unwrap_or_default();
    // One that cannot be removed is a temporary file.
    let _ = std::fs::remove_file(&path);
    if passed { Ok(reached.lines().map(str::to_owned).collect()) } else { Err(()) }
}

/// A file of this process and these tests alone.
fn file_of(tests: &str) -> PathBuf {
    let name: String = tests.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    std::env::temp_dir().join(format!("seawall-marks-{}-{name}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_tests_reach_the_marks_they_have_to() {
        let wrong = missed(|reach| match reach {
            Reach::Unit(tests) => Some(tests),
            _ => None,
        });
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn a_mark_that_is_not_reached_is_told() {
        let found = look("trial::tests::the_replay_command_says_everything", &["no such mark"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("does not reach \"no such mark\""), "{found:?}");
        let found = look("no_such_test", &["no such mark"]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
