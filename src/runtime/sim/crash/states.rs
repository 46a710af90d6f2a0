//! The states of a point in order: fewest deviations from *all kept* and *all lost* first.

/// How many states of a point are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashBound {
    /// Unsynced changes whose fate is another than that of all the others: kept among lost ones, lost or torn
    /// among kept ones.
    pub deviations: usize,
    /// States of one point.
    pub states: u64,
}

/// One state: the number of each unsynced change's fate.
pub type CrashState = Vec<usize>;

/// Goes through the states of one point.
pub struct CrashStates {
    /// Fates of each unsynced change; the first is *kept*, the second *lost*.
    fates: Vec<usize>,
    bound: CrashBound,
    given: u64,
    /// What all others have.
    base: usize,
    /// The changes that deviate, rising, and how.
    deviating: Vec<(usize, usize)>,
    is_first: bool,
    is_over: bool,
}

impl CrashStates {
    /// The states of changes with so many fates each, at least two.
    pub(super) fn of(fates: Vec<usize>, bound: CrashBound) -> Self {
        Self {
            fates,
            bound,
            given: 0,
            base: 0,
            deviating: Vec::new(),
            is_first: true,
            is_over: false,
        }
    }

    fn current(&self) -> CrashState {
        let mut state = vec![self.base; self.fates.len()];
        for (change, turn) in &self.deviating {
            // Every fate but the one that the others have.
            state[*change] = if *turn < self.base { *turn } else { turn + 1 };
        }
        state
    }

    /// Steps to the next choice; false if there is none.
    fn step(&mut self) -> bool {
        for place in (0..self.deviating.len()).rev() {
            let (change, turn) = self.deviating[place];
            if turn + 2 < self.fates[change] {
                self.deviating[place].1 += 1;
                self.deviating[place + 1..].iter_mut().for_each(|later| later.1 = 0);
                return true;
            }
        }
        let (count, all) = (self.deviating.len(), self.fates.len());
        for place in (0..count).rev() {
            let change = self.deviating[place].0;
            if change + (count - place) < all {
                for (offset, later) in self.deviating[place..].iter_mut().enumerate() {
                    *later = (change + 1 + offset, 0);
                }
                self.deviating.iter_mut().for_each(|one| one.1 = 0);
                return true;
            }
        }
        let count = if self.base == 0 {
            self.base = 1;
            count
        } else {
            self.base = 0;
            count + 1
        };
        self.deviating = (0..count).map(|change| (change, 0)).collect();
        count <= self.bound.deviations && count <= all
    }
}

impl Iterator for CrashStates {
    type Item = CrashState;

    fn next(&mut self) -> Option<CrashState> {
        while !self.is_over && self.given < self.bound.states {
            if !std::mem::take(&mut self.is_first) && !self.step() {
                self.is_over = true;
                break;
            }
            let state = self.current();
            let changed = state.iter().filter(|fate| **fate != 0).count();
            if self.base == 1 && changed <= self.bound.deviations {
                // Given among those that differ from *all kept*.
                continue;
            }
            self.given += 1;
            return Some(state);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all(fates: &[usize], deviations: usize) -> Vec<CrashState> {
        let bound = CrashBound { deviations, states: 100_000 };
        CrashStates::of(fates.to_vec(), bound).collect()
    }

    #[test]
    fn each_state_comes_once_and_those_within_the_bound_come() {
        for fates in [&[][..], &[2], &[2, 2], &[3, 2, 4], &[2, 3, 2, 3, 2], &[2; 8]] {
            for deviations in 0..=3 {
                let states = all(fates, deviations);
                let distinct: BTreeSet<&CrashState> = states.iter().collect();
                assert_eq!(distinct.len(), states.len(), "{fates:?}: one came twice");
                let mut state = vec![0; fates.len()];
                let mut expected = 0;
                loop {
                    let differ = |base: usize| state.iter().filter(|fate| **fate != base).count();
                    if differ(0) <= deviations || differ(1) <= deviations {
                        expected += 1;
                        assert!(distinct.contains(&state), "{fates:?}: {state:?} is missing");
                    }
                    let Some(place) = (0..fates.len()).find(|at| state[*at] + 1 < fates[*at])
                    else {
                        break;
                    };
                    state[place] += 1;
                    state[..place].fill(0);
                }
                assert_eq!(states.len(), expected, "{fates:?}, {deviations}");
            }
        }
    }

    #[test]
    fn the_nearest_come_first() {
        let bound = CrashBound { deviations: 3, states: 4 };
        let states: Vec<CrashState> = CrashStates::of(vec![2; 9], bound).collect();
        assert_eq!(states[0], vec![0; 9]);
        assert_eq!(states[1], vec![1; 9]);
        assert_eq!(states[2], [&[1][..], &[0; 8]].concat());
        assert_eq!(states.len(), 4);
    }
}
