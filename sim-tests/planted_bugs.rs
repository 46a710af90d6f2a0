//! Protects the scenarios themselves: each planted bug that one of them has to catch is caught by it.

use seawall::simulator::mutant_hunt::{Quarry, hunt};
use seawall::simulator::mutant_list::{Hunt, MUTANTS};

#[test]
fn each_is_caught_by_the_scenario_that_is_for_it() {
    let quarries: Vec<Quarry> = MUTANTS
        .iter()
        .filter_map(|mutant| match mutant.hunt {
            Hunt::Scenario(tests) => Some(Quarry { mutant: mutant.name, tests }),
            _ => None,
        })
        .collect();
    assert!(!quarries.is_empty());
    let wrong = hunt(&quarries);
    assert!(wrong.is_empty(), "{wrong:?}");
}
