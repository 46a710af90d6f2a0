//! The course of a campaign: which trial is next. Seeds follow each other; a filter leaves some out, a resumed campaign those
//! it has already, and a leaning one gives some of them the settings of others. What is chosen depends on the seeds alone,
//! not on which process was quicker.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::filter::Filter;
use super::seeds::Seeds;
use super::trial_options::TrialOptions;
use crate::simulator::coverage::Coverage;
use crate::simulator::plan::Plan;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

/// Trials of a round. A trial leans on the rounds up to the one before the last, so that none waits for another.
const ROUND: u64 = 32;

/// Seeds that a filter may leave out before the first that it admits; beyond, it counts as one that no seed passes.
const MISSES_MAX: u64 = 100_000;

/// Seeds left out before others get a chance to say something, that the campaign is to end for example.
const MISSES_AT_ONCE: u64 = 256;

/// When a campaign is over.
pub(super) enum Extent {
    Seeds(Seeds),
    Time { first: u64, duration: Duration },
}

impl Extent {
    const fn first(&self) -> u64 {
        match self {
            Self::Seeds(seeds) => seeds.0.start,
            Self::Time { first, .. } => *first,
        }
    }

    /// How many seeds there are, if that is known.
    pub(super) const fn count(&self) -> Option<u64> {
        match self {
            Self::Seeds(seeds) => Some(seeds.0.end - seeds.0.start),
            Self::Time { .. } => None,
        }
    }
}

/// Where a campaign is.
struct State {
    /// The next seed that is looked at.
    seed: u64,
    /// Trials so far.
    issued: u64,
    /// Reports of a former part of the campaign, by seed.
    kept: BTreeMap<u64, Report>,
    /// Reports by round, the oldest first, as far as they are not yet in the coverage.
    rounds: VecDeque<Vec<Report>>,
    /// Rounds that are in it.
    folded: u64,
    coverage: Coverage,
    /// It is to end before its time …
    ends_early: bool,
    /// … and something was left that would have been run.
    is_cut_short: bool,
}

/// Trials of a campaign, one after the other.
pub(super) struct Course<'a> {
    options: &'a TrialOptions,
    filter: &'a Filter,
    extent: Extent,
    end: Option<Instant>,
    leans: bool,
    misses_max: u64,
    state: Mutex<State>,
    done: Condvar,
}

/// What is next.
pub(super) enum Next {
    /// A trial, and the round that its report belongs to.
    Run(Box<Trial>, u64),
    /// A run of a former part of the campaign.
    Kept(Box<Report>),
    /// There is none.
    Over,
    /// The filter lets nothing through.
    Nothing,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        options: &'a TrialOptions,
        filter: &'a Filter,
        extent: Extent,
        leans: bool,
        kept: BTreeMap<u64, Report>,
    ) -> Self {
        let end = match extent {
            Extent::Time { duration, .. } => Some(Instant::now() + duration),
            Extent::Seeds(_) => None,
        };
        let state = State {
            seed: extent.first(),
            issued: 0,
            kept,
            rounds: VecDeque::new(),
            folded: 0,
            coverage: Coverage::default(),
            ends_early: false,
            is_cut_short: false,
        };
        let (state, done) = (Mutex::new(state), Condvar::new());
        Self { options, filter, extent, end, leans, misses_max: MISSES_MAX, state, done }
    }

    pub(super) const fn extent(&self) -> &Extent {
        &self.extent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next trial; waits if what it leans on is not there yet.
    pub(super) fn next(&self) -> Next {
        let mut misses = 0;
        loop {
            if let Some(next) = self.look(&mut misses) {
                return next;
            }
            if misses >= self.misses_max && self.lock().issued == 0 {
                return Next::Nothing;
            }
        }
    }

    /// The same for some seeds; `None` if the filter left all of them out.
    fn look(&self, misses: &mut u64) -> Option<Next> {
        let mut state = self.lock();
        loop {
            let round = state.issued / ROUND;
            if !self.leans || state.ends_early || state.fold_up_to(round.saturating_sub(1)) {
                break;
            }
            state = self.done.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        for _ in 0..MISSES_AT_ONCE {
            let seed = state.seed;
            if !self.wants(seed, &state) {
                return Some(Next::Over);
            }
            if state.ends_early {
                state.is_cut_short = true;
                return Some(Next::Over);
            }
            state.seed += 1;
            let trial = self.trial(seed, &state);
            if self.filter.admits(&Plan::of(&trial)) {
                let round = state.issued / ROUND;
                state.issued += 1;
                return Some(match state.kept.remove(&seed) {
                    Some(report) => {
                        self.enter(&mut state, round, report.clone());
                        Next::Kept(Box::new(report))
                    }
                    None => Next::Run(Box::new(trial), round),
                });
            }
            *misses += 1;
        }
        None
    }

    /// From here on nothing is next.
    pub(super) fn end_early(&self) {
        self.lock().ends_early = true;
        self.done.notify_all();
    }

    /// A trial was not run to its end, since the campaign is to end.
    pub(super) fn drop_run(&self) {
        self.lock().is_cut_short = true;
        self.end_early();
    }

    /// Whether it ended before its time.
    pub(super) fn was_cut_short(&self) -> bool {
        self.lock().is_cut_short
    }

    /// The run of a trial has come to this.
    pub(super) fn report(&self, round: u64, report: Report) {
        if self.leans {
            self.enter(&mut self.lock(), round, report);
            self.done.notify_all();
        }
    }

    fn enter(&self, state: &mut State, round: u64, report: Report) {
        if self.leans {
            let behind = (round - state.folded) as usize;
            while state.rounds.len() <= behind {
                state.rounds.push_back(Vec::new());
            }
            state.rounds[behind].push(report);
        }
    }

    /// Whether this seed, the next one, is to be run. A campaign by time has one at least, and all that it has already.
    fn wants(&self, seed: u64, state: &State) -> bool {
        match &self.extent {
            Extent::Seeds(seeds) => seed < seeds.0.end,
            Extent::Time { .. } => {
                let is_early = self.end.is_some_and(|end| Instant::now() < end);
                state.issued == 0 || !state.kept.is_empty() || is_early
            }
        }
    }

    fn trial(&self, seed: u64, state: &State) -> Trial {
        let trial = self.options.trial(seed);
        match state.coverage.lean(seed).filter(|_| self.leans) {
            Some(settings) => Trial { settings: Some(settings), ..trial },
            None => trial,
        }
    }
}

impl State {
    /// Takes so many rounds into the coverage; false if one of them is not complete yet.
    fn fold_up_to(&mut self, rounds: u64) -> bool {
        while self.folded < rounds {
            if self.rounds.front().is_none_or(|reports| (reports.len() as u64) < ROUND) {
                return false;
            }
            let mut reports = self.rounds.pop_front().unwrap_or_default();
            reports.sort_by_key(|report| report.trial.seed);
            reports.iter().for_each(|report| self.coverage.add(report));
            self.folded += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::checkers::Violation;
    use crate::simulator::plan::Topology;

    fn options() -> TrialOptions {
        TrialOptions::on(Topology::Swarm)
    }

    fn ran(trial: Trial) -> Report {
        let violation =
            Violation { promise: String::new(), checker: String::new(), detail: String::new() };
        let mut report = Report::of_failure(trial, violation);
        report.marks = [(format!("mark {}", report.trial.seed % 50), 1)].into();
        report
    }

    /// Every trial of a course whose runs end in another order than they began in, with so many at a time.
    fn trials(course: &Course<'_>, at_once: usize) -> Vec<Trial> {
        let mut all = Vec::new();
        let mut under_way: Vec<(Trial, u64)> = Vec::new();
        loop {
            while under_way.len() >= at_once {
                let (trial, round) = under_way.remove(all.len() * 5 % under_way.len());
                course.report(round, ran(trial));
            }
            match course.next() {
                Next::Run(trial, round) => {
                    all.push((*trial).clone());
                    under_way.push((*trial, round));
                }
                Next::Kept(report) => all.push(report.trial),
                Next::Over | Next::Nothing => return all,
            }
        }
    }

    #[test]
    fn seeds_follow_each_other_and_the_filter_leaves_some_out() {
        let (options, none) = (options(), Filter::default());
        let course = |filter| {
            Course::new(&options, filter, Extent::Seeds(Seeds(3..40)), false, BTreeMap::new())
        };
        let all = trials(&course(&none), 2);
        assert_eq!(
            all.iter().map(|trial| trial.seed).collect::<Vec<_>>(),
            (3..40).collect::<Vec<_>>()
        );
        let filter = Filter::new(vec!["quorum=5/3/2".parse().unwrap()]);
        let some = trials(&course(&filter), 2);
        assert!(!some.is_empty() && some.len() < all.len());
        assert!(some.iter().all(|trial| Plan::of(trial).shape.quorum.ensemble == 5));
    }

    #[test]
    fn what_a_campaign_leans_towards_does_not_depend_on_who_is_quicker() {
        let (options, filter) = (options(), Filter::default());
        let course =
            |kept| Course::new(&options, &filter, Extent::Seeds(Seeds(0..300)), true, kept);
        let alone = trials(&course(BTreeMap::new()), 1);
        assert_eq!(trials(&course(BTreeMap::new()), 7), alone);
        let leaning = alone.iter().filter(|trial| trial.settings.is_some()).count();
        assert!(leaning > 80, "{leaning} of 300");
        let kept = alone[..130].iter().map(|trial| (trial.seed, ran(trial.clone()))).collect();
        assert_eq!(trials(&course(kept), 3), alone, "nor on where it was interrupted");
    }

    #[test]
    fn a_campaign_that_ends_early_waits_for_nobody() {
        let (options, none) = (options(), Filter::default());
        let course =
            |end| Course::new(&options, &none, Extent::Seeds(Seeds(0..end)), true, BTreeMap::new());
        let (short, long) = (course(3), course(300));
        assert_eq!(trials(&short, 2).len(), 3);
        short.end_early();
        assert!(matches!(short.next(), Next::Over) && !short.was_cut_short());
        // The third round leans on the first, of which nothing was reported.
        for _ in 0..2 * ROUND {
            assert!(matches!(long.next(), Next::Run(..)));
        }
        long.end_early();
        assert!(matches!(long.next(), Next::Over) && long.was_cut_short());
    }

    #[test]
    fn a_campaign_by_time_has_one_seed_at_least() {
        let (options, filter) = (options(), Filter::default());
        let extent = Extent::Time { first: 5, duration: Duration::ZERO };
        let course = Course::new(&options, &filter, extent, false, BTreeMap::new());
        assert_eq!(trials(&course, 1).iter().map(|trial| trial.seed).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn a_filter_is_useless_only_if_no_seed_has_passed_it() {
        let (options, filter) = (options(), Filter::new(vec!["quorum=9/9/9".parse().unwrap()]));
        let extent = Extent::Seeds(Seeds(0..2 * MISSES_AT_ONCE));
        let course = Course::new(&options, &filter, extent, false, BTreeMap::new());
        let mut course = Course { misses_max: 1, ..course };
        assert!(matches!(course.next(), Next::Nothing));
        course.state.get_mut().unwrap().issued = 1;
        assert!(matches!(course.next(), Next::Over));
    }
}
