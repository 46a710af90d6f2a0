//! When to give a bundle up because others carry less: only when this broker has been well above the average
//! for several rounds, one bundle at a time, with a rest after each, and only one whose move helps.

use super::bundle::Bundle;
use super::load::LoadFigures;

/// Thresholds.
#[derive(Clone, Copy, Debug)]
pub struct SheddingLimits {
    /// Over the average by this many percent counts as too much.
    pub excess_percent: u64,
    /// … if it is also this much in score.
    pub excess_score: u64,
    /// Rounds in a row it must have been too much.
    pub rounds: u32,
    /// Rounds of rest after a bundle was given up, until loads tell what came of it.
    pub rest: u32,
}

impl Default for SheddingLimits {
    fn default() -> Self {
        Self { excess_percent: 25, excess_score: 500, rounds: 3, rest: 3 }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Shedder {
    limits: SheddingLimits,
    over: u32,
    resting: u32,
}

impl Shedder {
    /// With nothing seen yet.
    pub const fn new(limits: SheddingLimits) -> Self {
        Self { limits, over: 0, resting: 0 }
    }

    /// One round: what this broker and the others carry, and this one's bundles. Answers what to give up.
    pub fn round(
        &mut self,
        own: LoadFigures,
        others: &[LoadFigures],
        bundles: &[(Bundle, LoadFigures)],
    ) -> Option<Bundle> {
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        let own = own.score();
        let sum = others.iter().map(LoadFigures::score).fold(own, u64::saturating_add);
        let average = sum / (others.len() as u64 + 1);
        let excess = own.saturating_sub(average);
        let bar = average.saturating_mul(self.limits.excess_percent) / 100;
        if others.is_empty() || excess < self.limits.excess_score || excess <= bar {
            self.over = 0;
            return None;
        }
        self.over += 1;
        if self.over < self.limits.rounds {
            return None;
        }
        // One larger than the excess would only move the trouble.
        let useful = bundles.iter().filter(|(_, load)| load.score() > 0 && load.score() <= excess);
        let chosen =
            useful.max_by_key(|(bundle, load)| (load.score(), bundle)).map(|(b, _)| b.clone());
        if chosen.is_some() {
            self.over = 0;
            self.resting = self.limits.rest;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NamespaceName;

    fn load(score: u64) -> LoadFigures {
        LoadFigures { topics: score, ..LoadFigures::default() }
    }

    #[test]
    fn only_a_lasting_excess_moves_the_bundle_that_helps() {
        let namespace = NamespaceName::parse("public/default").unwrap();
        let all = Bundle::all(&namespace, 4);
        let bundles: Vec<_> =
            all.iter().cloned().zip([load(9000), load(1500), load(900), load(0)]).collect();
        let mut shedder = Shedder::new(SheddingLimits::default());
        let mut rounds = |own: u64, other: u64, count: u32| {
            (0..count)
                .map(|_| shedder.round(load(own), &[load(other)], &bundles))
                .collect::<Vec<_>>()
        };
        // Equal, or over by little, or alone: nothing, however long.
        assert!(rounds(1000, 1000, 20).iter().all(Option::is_none));
        assert!(rounds(1900, 1000, 20).iter().all(Option::is_none));
        // A short burst is not enough.
        assert!(rounds(11_400, 6000, 2).iter().all(Option::is_none));
        assert!(rounds(1000, 1000, 1).iter().all(Option::is_none));
        // Lasting: the largest that is not larger than the excess, then a rest.
        let seen = rounds(11_400, 6000, 9);
        assert_eq!(seen[2], Some(all[1].clone()));
        assert_eq!(seen.iter().flatten().count(), 2, "{seen:?}");
        assert_eq!(shedder.round(load(100_000), &[], &bundles), None);
    }
}
