//! Every planted bug that a property test has to catch is caught by it, each in a process of its own.

use seawall::simulator::mutant_hunt::complaint;
use seawall::simulator::mutant_list::{Hunt, MUTANTS, median};

/// Consensus hunts its own, with a search made for it.
const HUNTS_ITS_OWN: &str = "consensus_mutants";

/// Each with its own random cases, the same in every run, so that whether a bug is caught is no matter of luck.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;

/// What the tests of this module say in a process with this planted bug, if they do not pass.
fn said(module: &str, mutant: &str, seed: u64) -> Option<String> {
    let variables = [
        // The failure is wanted: neither kept for later runs nor made small.
        ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true"),
        ("PROPTEST_MAX_SHRINK_ITERS", "0"),
        ("PROPTEST_RNG_SEED", &seed.to_string()),
    ];
    complaint(&format!("{module}::"), mutant, &variables)
}

#[test]
fn each_is_caught_by_the_test_that_is_for_it() {
    let mut alive = Vec::new();
    for mutant in MUTANTS {
        if let Hunt::Property(test) = mutant.hunt
            && test != HUNTS_ITS_OWN
            && SEEDS.into_iter().all(|seed| said(test, mutant.name, seed).is_none())
        {
            // Also when the module is not there: running none of them is a pass.
            alive.push((mutant.name, test));
        }
    }
    assert!(alive.is_empty(), "planted bugs not caught: {alive:?}");
}

/// Cases of one run of a module's tests, as their configurations say.
fn cases_of(module: &str) -> u64 {
    match module {
        "dispatch_model" => 300,
        "repair_model" => 48,
        _ => 256,
    }
}

/// Cases tried until one of the tests failed: those of earlier runs and those that the failed test had passed.
fn cases_until_caught(module: &str, mutant: &str, first_seed: u64) -> Option<u64> {
    (0..RUNS_OF_A_HUNT).find_map(|run| {
        let said = said(module, mutant, first_seed + run)?;
        let passed = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("successes: ")?.parse::<u64>().ok())
            .min();
        Some(run * cases_of(module) + passed.unwrap_or(0) + 1)
    })
}

const HUNTS: u64 = 5;
const RUNS_OF_A_HUNT: u64 = 20;

/// The table of `docs/internals/mutants.md`.
#[test]
#[ignore = "prints a table, asserts nothing that the others do not"]
fn how_soon() {
    for mutant in MUTANTS {
        let Hunt::Property(test) = mutant.hunt else { continue };
        if test == HUNTS_ITS_OWN {
            continue;
        }
        let hunts = (0..HUNTS)
            .map(|hunt| cases_until_caught(test, mutant.name, 1 + hunt * RUNS_OF_A_HUNT))
            .collect();
        let cases = median(hunts).map_or("escaped".to_owned(), |cases| cases.to_string());
        println!("| {} | `proptests/{test}.rs` | {cases} |", mutant.name);
    }
}
