//! Every planted bug that a property test has to catch is caught by it, each in a process of its own.

use seawall::simulator::mutant_hunt::tests_pass;
use seawall::simulator::mutant_list::{Hunt, MUTANTS};

/// Consensus hunts its own, with a search made for it.
const HUNTS_ITS_OWN: &str = "consensus_mutants";

/// Each with its own random cases, the same in every run, so that whether a bug is caught is no matter of luck.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;

/// Whether the tests of this module pass in a process with this planted bug.
fn passes(module: &str, mutant: &str, seed: u64) -> bool {
    let variables = [
        // The failure is wanted: neither kept for later runs nor made small.
        ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true"),
        ("PROPTEST_MAX_SHRINK_ITERS", "0"),
        ("PROPTEST_RNG_SEED", &seed.to_string()),
    ];
    tests_pass(&format!("{module}::"), mutant, &variables)
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
