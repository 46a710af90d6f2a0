//! Which bookies a ledger is spread over: at random, each write set over as many racks as it can be.

use crate::domain::{BookieId, Rack};
use crate::ledger::{BookiePool, Quorum};
use crate::mutant;
use crate::runtime::Random;

/// Random draws of an ensemble; the best is taken. A good one ends them.
const DRAWS_MAX: usize = 8;

/// How a ledger is to lie over bookies and racks.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// Replication of the ledger.
    pub quorum: Quorum,
    /// Distinct racks every write set must touch, at most the write quorum. Below it no ensemble is given;
    /// above it spread is a wish.
    pub racks_min: u32,
}

/// Where the bookies of a ledger may be.
pub struct Placement<'a> {
    /// Bookies that take writes.
    pub writable: &'a [BookieId],
    /// The rack of each.
    pub rack_of: &'a dyn Fn(BookieId) -> Rack,
    /// What is asked of it.
    pub spread: Spread,
}

impl Placement<'_> {
    /// Draws the bookies of a new ensemble, all distinct; `None` if there are too few bookies or racks.
    pub fn ensemble(&self, random: &Random) -> Option<Vec<BookieId>> {
        let mut candidates = self.writable.to_vec();
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.len() < self.spread.quorum.ensemble as usize {
            return None;
        }
        let mut best: Option<(usize, Vec<BookieId>)> = None;
        // The last draw takes the fullest rack first, which finds a spread wherever there is one in practice.
        for draw in 0..=DRAWS_MAX {
            let drawn = self.draw(candidates.clone(), draw == DRAWS_MAX, random);
            let shared = self.shared_racks(&drawn);
            if !self.has_enough_racks(&drawn) {
                continue;
            }
            if best.as_ref().is_none_or(|(least, _)| shared < *least) {
                best = Some((shared, drawn));
            }
            if shared == 0 {
                break;
            }
        }
        best.map(|(_, ensemble)| ensemble)
    }

    /// A replacement for as many of the `failed` positions as there are spares: bookies that take writes,
    /// are nowhere in the ensemble and have not failed. None that would leave a write set on too few racks.
    pub fn replacements(
        &self,
        ensemble: &[BookieId],
        failed: &[usize],
        random: &Random,
    ) -> Vec<(usize, BookieId)> {
        let is_spare = |bookie: &BookieId| match ensemble.iter().position(|member| member == bookie)
        {
            Some(position) => mutant!("L17") && !failed.contains(&position),
            None => true,
        };
        let mut spares: Vec<BookieId> = self.writable.iter().copied().filter(is_spare).collect();
        let mut places: Vec<Option<BookieId>> = ensemble.iter().copied().map(Some).collect();
        for position in failed {
            if let Some(place) = places.get_mut(*position) {
                *place = None;
            }
        }
        let mut found = Vec::new();
        for position in failed.iter().copied().filter(|position| *position < ensemble.len()) {
            let Some(spare) = self.pick(&places, position, &spares, false, random) else { break };
            let bookie = spares[spare];
            let mut with = places.clone();
            with[position] = Some(bookie);
            // Positions still empty may be filled well: only a whole ensemble is held against the rule.
            let whole: Option<Vec<BookieId>> = with.iter().copied().collect();
            if whole.is_some_and(|whole| !self.has_enough_racks(&whole)) {
                break;
            }
            spares.swap_remove(spare);
            places = with;
            found.push((position, bookie));
        }
        found
    }

    fn draw(
        &self,
        mut candidates: Vec<BookieId>,
        fullest_first: bool,
        random: &Random,
    ) -> Vec<BookieId> {
        let mut places: Vec<Option<BookieId>> = vec![None; self.spread.quorum.ensemble as usize];
        for position in 0..places.len() {
            if let Some(index) = self.pick(&places, position, &candidates, fullest_first, random) {
                places[position] = Some(candidates.swap_remove(index));
            }
        }
        places.into_iter().flatten().collect()
    }

    /// The candidate for a position with whom the fewest neighbours share a rack; at random among equals.
    fn pick(
        &self,
        places: &[Option<BookieId>],
        position: usize,
        candidates: &[BookieId],
        fullest_first: bool,
        random: &Random,
    ) -> Option<usize> {
        let racks: Vec<Rack> = candidates.iter().map(|bookie| (self.rack_of)(*bookie)).collect();
        let neighbours: Vec<Rack> = (0..places.len())
            .filter(|other| *other != position && self.share_a_write_set(*other, position))
            .filter_map(|other| places[other].map(self.rack_of))
            .collect();
        let cost = |rack: &Rack| {
            let shared = neighbours.iter().filter(|other| *other == rack).count();
            let left = racks.iter().filter(|other| *other == rack).count();
            (shared, if fullest_first { usize::MAX - left } else { 0 })
        };
        let costs: Vec<(usize, usize)> = racks.iter().map(cost).collect();
        let least = costs.iter().min()?;
        let equals: Vec<usize> = (0..costs.len()).filter(|index| costs[*index] == *least).collect();
        Some(equals[random.below(equals.len() as u64) as usize])
    }

    fn share_a_write_set(&self, one: usize, other: usize) -> bool {
        let size = self.spread.quorum.ensemble as usize;
        let distance = one.abs_diff(other);
        distance.min(size - distance) < self.spread.quorum.write as usize
    }

    /// Pairs of positions with a write set in common that are in one rack.
    fn shared_racks(&self, ensemble: &[BookieId]) -> usize {
        let racks: Vec<Rack> = ensemble.iter().map(|bookie| (self.rack_of)(*bookie)).collect();
        let pairs = (0..racks.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| {
                self.share_a_write_set(*one, *other) && racks[*one] == racks[*other]
            })
            .count()
    }

    fn has_enough_racks(&self, ensemble: &[BookieId]) -> bool {
        let size = ensemble.len();
        let demanded = self.spread.racks_min.min(self.spread.quorum.write) as usize;
        demanded <= 1
            || (0..size).all(|first| {
                let write_set =
                    (0..self.spread.quorum.write as usize).map(|k| ensemble[(first + k) % size]);
                let mut racks: Vec<Rack> = write_set.map(self.rack_of).collect();
                racks.sort_unstable();
                racks.dedup();
                racks.len() >= demanded
            })
    }
}

/// Draws the bookies of a new ledger from those of the pool that take writes.
pub fn choose_ensemble(
    bookies: &dyn BookiePool,
    spread: Spread,
    random: &Random,
) -> Option<Vec<BookieId>> {
    let rack_of = |bookie| bookies.rack(bookie);
    let writable = bookies.writable();
    Placement { writable: &writable, rack_of: &rack_of, spread }.ensemble(random)
}

/// Draws replacements for failed positions from those of the pool that take writes.
pub fn choose_replacements(
    bookies: &dyn BookiePool,
    spread: Spread,
    ensemble: &[BookieId],
    failed: &[usize],
    random: &Random,
) -> Vec<(usize, BookieId)> {
    let rack_of = |bookie| bookies.rack(bookie);
    let writable = bookies.writable();
    Placement { writable: &writable, rack_of: &rack_of, spread }
        .replacements(ensemble, failed, random)
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

    fn quorum(ensemble: u32, write: u32, ack: u32) -> Quorum {
        Quorum::new(ensemble, write, ack).unwrap()
    }

    fn placed<'a>(
        writable: &'a [BookieId],
        rack_of: &'a dyn Fn(BookieId) -> Rack,
        quorum: Quorum,
        racks_min: u32,
    ) -> Placement<'a> {
        Placement { writable, rack_of, spread: Spread { quorum, racks_min } }
    }

    fn anywhere(_: BookieId) -> Rack {
        Rack::default()
    }

    /// Bookie 10 r + n is in rack r.
    fn by_tens(bookie: BookieId) -> Rack {
        Rack::new(&format!("/r{}", bookie.0 / 10)).unwrap()
    }

    fn bookies(ids: &[u64]) -> Vec<BookieId> {
        ids.iter().copied().map(BookieId).collect()
    }

    #[test]
    fn ensembles_are_distinct_and_spares_are_strangers() {
        let random = Random::new(std::sync::Arc::new(Counting));
        let all: Vec<BookieId> = (0..5).map(BookieId).collect();
        let placement = placed(&all, &anywhere, quorum(3, 3, 2), 1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let ensemble = placement.ensemble(&random).unwrap();
            assert!(ensemble.iter().all(|a| ensemble.iter().filter(|b| a == *b).count() == 1));
            seen.extend(ensemble.iter().copied());
            let found = placement.replacements(&ensemble, &[0, 1, 2], &random);
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|(_, bookie)| !ensemble.contains(bookie)));
            // One that is well and in the ensemble is no replacement for one that failed: two places on one
            // bookie are one copy.
            let without_spares = placed(&ensemble, &anywhere, quorum(3, 3, 2), 1);
            for failed in 0..3 {
                assert_eq!(without_spares.replacements(&ensemble, &[failed], &random), []);
                let found = placement.replacements(&ensemble, &[failed], &random);
                assert!(found.len() == 1 && !ensemble.contains(&found[0].1));
            }
        }
        assert_eq!(seen.len(), all.len(), "every bookie gets its share");
        assert_eq!(placed(&all, &anywhere, quorum(6, 3, 2), 1).ensemble(&random), None);
    }

    #[test]
    fn write_sets_touch_as_many_racks_as_there_are() {
        let random = Random::new(std::sync::Arc::new(Counting));
        let racks = |ids: &[BookieId]| {
            let racks: std::collections::BTreeSet<Rack> =
                ids.iter().map(|id| by_tens(*id)).collect();
            racks.len()
        };
        // Lopsided: two thirds of the bookies are in one rack.
        let all = bookies(&[0, 1, 2, 3, 4, 5, 10, 11, 20]);
        let placement = placed(&all, &by_tens, quorum(3, 3, 2), 3);
        for _ in 0..50 {
            let ensemble = placement.ensemble(&random).unwrap();
            assert_eq!(racks(&ensemble), 3, "{ensemble:?}");
        }
        // Striped: every two neighbours, the last and the first too, are apart.
        let all = bookies(&[0, 1, 10, 11]);
        let placement = placed(&all, &by_tens, quorum(4, 2, 2), 2);
        for _ in 0..50 {
            let ensemble = placement.ensemble(&random).unwrap();
            for position in 0..4 {
                assert_eq!(racks(&[ensemble[position], ensemble[(position + 1) % 4]]), 2);
            }
        }
    }

    #[test]
    fn too_few_racks_are_refused_only_when_they_are_demanded() {
        let random = Random::new(std::sync::Arc::new(Counting));
        let all = bookies(&[0, 1, 2, 3]);
        assert_eq!(placed(&all, &by_tens, quorum(3, 3, 2), 2).ensemble(&random), None);
        assert!(placed(&all, &by_tens, quorum(3, 3, 2), 1).ensemble(&random).is_some());
        // Demanding more racks than a write set has bookies means one each.
        let all = bookies(&[0, 10, 20]);
        assert!(placed(&all, &by_tens, quorum(2, 2, 2), 9).ensemble(&random).is_some());
    }

    #[test]
    fn a_replacement_comes_from_a_rack_of_its_own() {
        let random = Random::new(std::sync::Arc::new(Counting));
        let all = bookies(&[0, 1, 10, 11, 20, 21]);
        let ensemble = bookies(&[0, 10, 20]);
        for _ in 0..20 {
            let placement = placed(&all, &by_tens, quorum(3, 3, 2), 1);
            assert_eq!(placement.replacements(&ensemble, &[1], &random), [(1, BookieId(11))]);
        }
        // The only spare left shares a rack: taken when spread is a wish, refused when it is a rule.
        let all = bookies(&[0, 1, 20]);
        let wish = placed(&all, &by_tens, quorum(3, 3, 2), 1);
        assert_eq!(wish.replacements(&ensemble, &[1], &random), [(1, BookieId(1))]);
        let rule = placed(&all, &by_tens, quorum(3, 3, 2), 3);
        assert_eq!(rule.replacements(&ensemble, &[1], &random), []);
    }
}
