//! Protects the scenarios themselves: each planted bug that one of them has to catch is caught by it.

use seawall::simulator::mutant_hunt::{Quarry, hunt};
use seawall::simulator::mutant_list::{Hunt, MUTANTS};

/// Planted bugs that something else is listed to catch, by campaigns of many runs or cases, and that a scenario of a few
/// steps shows as well.
const ALSO: &[Quarry] = &[
    also("B16", "subscriptions::acknowledgements_of_one_batch"),
    also("D-ackset", "subscriptions::a_partly_acknowledged_batch"),
    also("L-early", "readers::a_reader_never_passes"),
    also("L-hole", "writers::nothing_is_confirmed_over_a_hole"),
    also("L-length", "recovery::a_ledger_without_a_tail"),
    also("L-own-end", "recovery::a_recovery_that_found_more"),
    also("L1", "recovery::a_bookie_that_is_read_for_recovery"),
    also("L10", "ensembles::an_ensemble_change_does_not_undo"),
    also("L2", "recovery::what_precedes_the_last_fragment"),
    also("L20", "recovery::recovery_that_hears_too_few"),
    also("L22", "recovery::a_rotten_copy_is_not_taken"),
    also("L23", "recovery::what_recovery_writes_back"),
    also("L5", "recovery::a_recovery_that_cannot_write_back"),
    also("L7", "ensembles::a_copy_on_a_replaced_bookie"),
    also("L8", "ensembles::what_completes_during_an_ensemble_change"),
    also("M-once", "metadata_members::a_change_asked_for_again"),
    also("S8", "bookies::a_torn_tail_of_every_journal"),
    also("T10", "ensembles::too_few_bookies_end_the_writer"),
];

const fn also(mutant: &'static str, tests: &'static str) -> Quarry {
    Quarry { mutant, tests }
}

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

#[test]
fn a_scenario_shows_what_campaigns_catch() {
    for quarry in ALSO {
        let is_listed = MUTANTS.iter().any(|mutant| mutant.name == quarry.mutant);
        assert!(is_listed, "{} is not planted any more", quarry.mutant);
    }
    let wrong = hunt(ALSO);
    assert!(wrong.is_empty(), "{wrong:?}");
}
