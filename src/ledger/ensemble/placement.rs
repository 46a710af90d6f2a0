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
