//! Which bookies a ledger is spread over. Random today; health and failure domains come here.

use crate::domain::BookieId;
use crate::mutant;
use crate::runtime::Random;

/// Draws `count` distinct bookies, or `None` if there are too few.
pub fn choose_ensemble(
    writable: &[BookieId],
    count: usize,
    random: &Random,
) -> Option<Vec<BookieId>> {
    let mut candidates = writable.to_vec();
    candidates.sort_unstable();
    candidates.dedup();
    if candidates.len() < count {
        return None;
    }
    for place in 0..count {
        let other = place + random.below((candidates.len() - place) as u64) as usize;
        candidates.swap(place, other);
    }
    candidates.truncate(count);
    Some(candidates)
}

/// A replacement for as many of the `failed` positions as there are spares: bookies that take writes,
/// are nowhere in the ensemble and have not failed.
pub fn choose_replacements(
    writable: &[BookieId],
    ensemble: &[BookieId],
    failed: &[usize],
    random: &Random,
) -> Vec<(usize, BookieId)> {
    let spares: Vec<BookieId> = writable
        .iter()
        .copied()
        .filter(|bookie| match ensemble.iter().position(|member| member == bookie) {
            Some(position) => mutant!("L17") && !failed.contains(&position),
            None => true,
        })
        .collect();
    let count = failed.len().min(spares.len());
    let chosen = choose_ensemble(&spares, count, random).unwrap_or_default();
    failed.iter().copied().zip(chosen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::RandomSource;

    struct Counting;

    impl RandomSource for Counting {
        fn value(&self, label: u64, index: u64) -> u64 {
            (label ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
        }
    }

    #[test]
    fn ensembles_are_distinct_and_spares_are_strangers() {
        let random = Random::new(std::sync::Arc::new(Counting));
        let all: Vec<BookieId> = (0..5).map(BookieId).collect();
        for _ in 0..50 {
            let ensemble = choose_ensemble(&all, 3, &random).unwrap();
            assert!(ensemble.iter().all(|a| ensemble.iter().filter(|b| a == *b).count() == 1));
            let found = choose_replacements(&all, &ensemble, &[0, 1, 2], &random);
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|(_, bookie)| !ensemble.contains(bookie)));
        }
        assert_eq!(choose_ensemble(&all, 6, &random), None);
    }
}
