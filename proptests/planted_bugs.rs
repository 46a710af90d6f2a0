//! Every planted bug that a property test has to catch is caught by it, each in a process of its own.

use std::process::{Command, Stdio};

use seawall::invariant::mutants::VARIABLE;
use seawall::simulator::mutant_list::{Hunt, MUTANTS};

/// Consensus hunts its own, with a search made for it.
const HUNTS_ITS_OWN: &str = "consensus_mutants";

/// Each with its own random cases, the same in every run, so that whether a bug is caught is no matter of luck.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;

/// Whether the tests of this module pass in a process with this planted bug.
#[allow(clippy::disallowed_methods, reason = "a planted bug lives as long as its process")]
fn passes(module: &str, mutant: &str, seed: u64) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args([&format!("{module}::"), "--quiet"])
        .env(VARIABLE, mutant)
        // The failure is wanted: neither kept for later runs nor made small.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env("PROPTEST_MAX_SHRINK_ITERS", "0")
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success()
}

#[test]
fn each_is_caught_by_the_test_that_is_for_it() {
    let mut alive = Vec::new();
    for mutant in MUTANTS {
        if let Hunt::Property(test) = mutant.hunt
            && test != HUNTS_ITS_OWN
            && SEEDS.into_iter().all(|seed| passes(test, mutant.name, seed))
        {
            // Also when the module is not there: running none of them is a pass.
            alive.push((mutant.name, test));
        }
    }
    assert!(alive.is_empty(), "planted bugs not caught: {alive:?}");
}
