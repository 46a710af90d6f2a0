//! Delta debugging: what is left of a list, or of a number, when everything is gone that is not needed.
//!
//! Each asks about several candidates at once, the boldest first, and is told the first one that will do; nothing at
//! all when none will, or when there is no time left.

/// A list from which nothing more can be left out, as far as `first` can tell: complements of smaller and smaller
/// parts, down to so many of them, as in Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).
pub(super) fn fewest<T: Clone>(
    mut kept: Vec<T>,
    parts_max: usize,
    mut first: impl FnMut(&[Vec<T>]) -> Option<usize>,
) -> Vec<T> {
    if kept.is_empty() || first(&[Vec::new()]).is_some() {
        return Vec::new();
    }
    let mut parts = 2;
    while kept.len() > 1 {
        let length = kept.len().div_ceil(parts);
        let mut candidates: Vec<Vec<T>> = (0..kept.len())
            .step_by(length)
            .map(|from| {
                let until = (from + length).min(kept.len());
                [&kept[..from], &kept[until..]].concat()
            })
            .collect();
        match first(&candidates) {
            Some(chosen) => {
                kept = candidates.swap_remove(chosen);
                parts = (parts - 1).max(2);
            }
            None if length == 1 || parts >= parts_max => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    kept
}

/// About the lowest number from `low` on that will do, as far as `first` can tell; `value` does. The last eighth is not
/// worth its runs.
pub(super) fn lowest(
    mut value: u64,
    mut low: u64,
    mut first: impl FnMut(&[u64]) -> Option<usize>,
) -> u64 {
    while value > low && (value - low).saturating_mul(8) >= value {
        let room = value - low;
        let mut candidates: Vec<u64> = [0, room / 8, room / 4, room / 2, room - (room / 4).max(1)]
            .map(|part| low + part)
            .into();
        candidates.sort_unstable();
        candidates.dedup();
        match first(&candidates) {
            Some(chosen) => {
                value = candidates[chosen];
                low = chosen.checked_sub(1).map_or(low, |before| candidates[before] + 1);
            }
            None => low = candidates.last().map_or(value, |last| last + 1),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_stays() {
        for needed in [vec![], vec![0], vec![39], vec![3, 17, 18], vec![0, 39], (0..40).collect()] {
            let mut asked = 0;
            let kept = fewest((0..40).collect::<Vec<u32>>(), usize::MAX, |candidates| {
                asked += candidates.len();
                candidates
                    .iter()
                    .position(|candidate| needed.iter().all(|number| candidate.contains(number)))
            });
            assert_eq!(kept, needed);
            assert!(asked < 200, "{asked} questions for {needed:?}");
        }
    }

    #[test]
    fn about_the_lowest_number_is_found() {
        for needed in [0_u64, 1, 7, 100, 999, 1000] {
            let mut asked = 0;
            let found = lowest(1000, 0, |candidates| {
                asked += candidates.len();
                candidates.iter().position(|one| *one >= needed)
            });
            assert!((needed..=needed + needed / 7).contains(&found), "{found} for {needed}");
            assert!(asked < 40, "{asked} questions for {needed}");
        }
        assert_eq!(lowest(5, 1, |_| Some(0)), 1);
        assert_eq!(lowest(1, 1, |_| Some(0)), 1);
        assert_eq!(lowest(3, 1, |candidates| candidates.iter().position(|one| *one >= 2)), 2);
    }

    #[test]
    fn without_time_everything_stays() {
        assert_eq!(fewest(vec![1, 2, 3], 4, |_| None), [1, 2, 3]);
        assert_eq!(lowest(9, 0, |_| None), 9);
    }
}
