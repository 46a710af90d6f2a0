//! What runs have reached, marks as well as pairs of a kind of fault and the state of a protocol that it met, and which
//! settings the next runs of a campaign lean towards: those under which something rare was reached. Pure: what is chosen
//! follows from the reports alone.

use std::collections::BTreeMap;

use super::plan::FaultKind;
use super::report::Report;
use crate::invariant::states;
use crate::runtime::mix;

/// Settings kept for each thing reached; the first ones.
const SETTINGS_MAX: usize = 16;
/// A run leans towards one of so many of the rarest things reached.
const RAREST: usize = 40;
/// Keeps the draw apart from all others of a seed.
const LEANING: u64 = 0x6c65_616e_696e_6721;

/// By state that this process has entered: which kinds of fault have met it, and how often.
pub(super) fn pairs() -> BTreeMap<String, BTreeMap<String, u64>> {
    let named = |counts: Vec<u64>| {
        let kinds = FaultKind::ALL.iter().map(|kind| (*kind, counts.get(*kind as usize).copied()));
        kinds
            .filter_map(|(kind, count)| Some((kind.as_str().to_owned(), count?)))
            .filter(|(_, count)| *count > 0)
            .collect()
    };
    let met = states::met().into_iter();
    met.map(|(state, (_, counts))| (state.to_owned(), named(counts))).collect()
}

/// Something a run can reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// A rare branch.
    Mark(String),
    /// A kind of fault has met a state of a protocol.
    Pair(String, String),
}

/// How often something was reached, and under which settings first.
#[derive(Clone, Debug, Default)]
struct Reached {
    runs: u64,
    settings: Vec<u64>,
}

/// What the runs of a campaign have reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<Feature, Reached>,
    /// Runs that entered a state.
    states: BTreeMap<String, u64>,
}

impl Coverage {
    /// Adds a run.
    pub fn add(&mut self, report: &Report) {
        let settings = report.trial.settings.unwrap_or(report.trial.seed);
        for mark in report.marks.keys() {
            self.reach(Feature::Mark(mark.clone()), settings);
        }
        for (state, kinds) in &report.pairs {
            *self.states.entry(state.clone()).or_default() += 1;
            for kind in kinds.keys() {
                self.reach(Feature::Pair(kind.clone(), state.clone()), settings);
            }
        }
    }

    fn reach(&mut self, feature: Feature, settings: u64) {
        let reached = self.reached.entry(feature).or_default();
        reached.runs += 1;
        if reached.settings.len() < SETTINGS_MAX && !reached.settings.contains(&settings) {
            reached.settings.push(settings);
        }
    }

    /// The settings that the run of a seed is to have, if it is to lean at all: every other one does not, so that what
    /// nobody has reached yet is still looked for everywhere.
    pub fn lean(&self, seed: u64) -> Option<u64> {
        let draw = |question: u64| mix(mix(seed ^ LEANING) ^ question);
        let pick = |question: u64, count: usize| (draw(question) % count.max(1) as u64) as usize;
        if self.reached.is_empty() || draw(0).is_multiple_of(2) {
            return None;
        }
        let mut rarest: Vec<(&Feature, &Reached)> = self.reached.iter().collect();
        rarest.sort_by_key(|(feature, reached)| (reached.runs, *feature));
        rarest.truncate(RAREST);
        let (_, reached) = rarest.get(pick(1, rarest.len()))?;
        reached.settings.get(pick(2, reached.settings.len())).copied()
    }

    /// How many runs entered a state.
    pub const fn states(&self) -> &BTreeMap<String, u64> {
        &self.states
    }

    /// In how many runs a kind of fault has met a state.
    pub fn runs(&self, kind: FaultKind, state: &str) -> u64 {
        let pair = Feature::Pair(kind.as_str().to_owned(), state.to_owned());
        self.reached.get(&pair).map_or(0, |reached| reached.runs)
    }

    /// Pairs and marks reached.
    pub fn counts(&self) -> (usize, usize) {
        let is_pair = |feature: &&Feature| matches!(feature, Feature::Pair(..));
        let pairs = self.reached.keys().filter(is_pair).count();
        (pairs, self.reached.len() - pairs)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulator::checkers::Violation;
    use crate::simulator::plan::Topology;
    use crate::simulator::trial::Trial;

    fn run(seed: u64, settings: Option<u64>, marks: &[&str], pair: Option<(&str, &str)>) -> Report {
        let violation =
            Violation { promise: String::new(), checker: String::new(), detail: String::new() };
        let trial = Trial { settings, ..Trial::new(seed, Topology::Swarm) };
        let mut report = Report::of_failure(trial, violation);
        report.marks = marks.iter().map(|mark| ((*mark).to_owned(), 3)).collect();
        if let Some((kind, state)) = pair {
            report.pairs.insert(state.to_owned(), [(kind.to_owned(), 2)].into());
        }
        report
    }

    #[test]
    fn runs_are_counted_not_visits() {
        let mut coverage = Coverage::default();
        coverage.add(&run(1, None, &["a"], Some(("crash", "s"))));
        coverage.add(&run(2, None, &["a", "b"], Some(("crash", "s"))));
        assert_eq!(coverage.counts(), (1, 2));
        assert_eq!(coverage.runs(FaultKind::Crash, "s"), 2);
        assert_eq!(coverage.runs(FaultKind::Pause, "s"), 0);
        assert_eq!(coverage.states()["s"], 2);
    }

    #[test]
    fn half_of_the_runs_lean_towards_what_is_rare() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.lean(1), None);
        let common: Vec<String> = (0..RAREST).map(|number| format!("rare {number}")).collect();
        let common: Vec<&str> = common.iter().map(String::as_str).collect();
        coverage.add(&run(7, Some(5), &common, None));
        for seed in 10..100 {
            coverage.add(&run(seed, None, &["common"], None));
        }
        let chosen: Vec<Option<u64>> = (0..1000).map(|seed| coverage.lean(seed)).collect();
        let leaning = chosen.iter().flatten().count();
        assert!((400..600).contains(&leaning), "{leaning} of 1000");
        let settings: BTreeSet<u64> = chosen.iter().flatten().copied().collect();
        assert_eq!(settings, [5].into(), "those of the run, not its seed, and nothing common");
    }
}
