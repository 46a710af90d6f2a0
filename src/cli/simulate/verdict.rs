//! What a campaign has come to, and what is wrong with it as a whole.

use std::time::Duration;

use super::totals::Totals;
use super::trial_options::TrialOptions;
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::liveness::Baselines;
use crate::simulator::mark_list::unreached;
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;

/// What a campaign has come to.
pub(super) struct Verdict<'a> {
    pub(super) options: &'a TrialOptions,
    pub(super) twice: bool,
    /// No seed was left out for its settings.
    pub(super) is_whole: bool,
    /// How far it came, if it was ended before its time.
    pub(super) stopped: Option<String>,
    pub(super) totals: Totals,
    pub(super) real: Duration,
}

impl Verdict<'_> {
    /// What is wrong with the campaign as a whole, whatever its runs say.
    pub(super) fn complaints(&self) -> Vec<String> {
        // Part of a campaign is not held to what all of it has to come to.
        if let Some(stopped) = &self.stopped {
            return vec![stopped.clone()];
        }
        // With few kinds of faults, or none, what some checkers look at need not happen: leaders do not change.
        let is_mixed = matches!(self.options.profile, Profile::Swarm | Profile::Storm)
            && self.options.all_cuts().is_none()
            && self.is_whole;
        let idle = self.totals.idle_checkers().into_iter().filter(|_| is_mixed);
        let idle =
            idle.map(|name| format!("checker {name} compared nothing in the whole campaign"));
        let seeds = self.seeds_that_count();
        let missed = unreached(&self.totals.marks)
            .filter_map(|mark| Some((mark.name, mark.reach.seeds()?)))
            .filter(|(_, within)| *within <= seeds)
            .map(|(name, within)| {
                format!("mark {name:?} was not reached in {seeds} seeds, {within} must be enough")
            });
        let nothing = self.compared_nothing().then(|| "no checker compared anything".to_owned());
        nothing.into_iter().chain(idle).chain(missed).chain(self.slower()).collect()
    }

    /// Runs that passed, and nothing was held against anything in them: what was cut out of them left nothing.
    fn compared_nothing(&self) -> bool {
        let Totals { lines, failed, compared, .. } = &self.totals;
        (lines.len() as u64) > *failed && compared.values().all(|count| *count == 0)
    }

    /// What comes back later after the heal than when the baseline was recorded.
    fn slower(&self) -> Vec<String> {
        let TrialOptions { topology, profile, mutant, settings_of, clock, versions, .. } =
            self.options;
        let is_plain =
            mutant.is_none() && settings_of.is_none() && clock.is_none() && versions.are_newest();
        if !is_plain || !self.options.all_cuts().is_none() || !self.is_whole {
            return Vec::new();
        }
        let spreads = self.totals.spreads();
        Baselines::recorded().complaints(*topology, *profile, &spreads)
    }

    /// Seeds that count for the marks a campaign must reach: windows hold for runs as they are drawn, of any shape.
    fn seeds_that_count(&self) -> u64 {
        let TrialOptions { topology, profile, mutant, settings_of, versions, .. } = self.options;
        match (topology, profile, mutant, settings_of) {
            (Topology::Swarm, Profile::Swarm, None, None)
                if self.options.all_cuts().is_none() && versions.are_newest() && self.is_whole =>
            {
                self.totals.lines.iter().filter(|line| !line.leaned).count() as u64
            }
            _ => 0,
        }
    }

    /// Marks that enough seeds must reach, and these did not.
    pub(super) fn marks_not_reached(&self) -> Vec<&'static str> {
        let by_seeds = unreached(&self.totals.marks).filter(|mark| mark.reach.seeds().is_some());
        by_seeds.map(|mark| mark.name).collect()
    }

    pub(super) fn passed(&self) -> bool {
        self.totals.failed == 0 && self.complaints().is_empty()
    }

    pub(super) fn exit_code(&self) -> u8 {
        match &self.stopped {
            Some(_) if self.totals.failed == 0 => USAGE,
            _ if self.passed() => GOOD,
            _ => FAILED,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cli::simulate::totals::tests::two_runs;
    use crate::simulator::checkers::Violation;
    use crate::simulator::mark_list::MARKS;
    use crate::simulator::report::Report;
    use crate::simulator::trial::Trial;

    fn options(profile: Profile) -> TrialOptions {
        TrialOptions { profile, ..TrialOptions::on(Topology::Swarm) }
    }

    /// What is written of a campaign on swarms with these sums.
    pub(in crate::cli::simulate) fn verdict_of(
        totals: Totals,
        write: impl FnOnce(&Verdict<'_>) -> String,
    ) -> String {
        let options = options(Profile::Swarm);
        let (real, stopped) = (Duration::from_secs(1), None);
        write(&Verdict { options: &options, twice: false, is_whole: true, stopped, totals, real })
    }

    #[test]
    fn runs_that_compared_nothing_are_not_green() {
        let complains = |totals| {
            verdict_of(totals, |verdict| verdict.complaints().join("\n")).contains("no checker")
        };
        assert!(!complains(two_runs()));
        let mut totals = two_runs();
        totals.compared.values_mut().for_each(|count| *count = 0);
        assert!(complains(totals));
    }

    #[test]
    fn a_campaign_that_was_stopped_failed_only_if_a_run_did() {
        let options = options(Profile::Swarm);
        let code = |totals, stopped: Option<&str>| {
            let (real, stopped) = (Duration::ZERO, stopped.map(str::to_owned));
            Verdict { options: &options, twice: false, is_whole: true, stopped, totals, real }
                .exit_code()
        };
        assert_eq!(code(two_runs(), Some("stopped")), FAILED);
        assert_eq!(code(Totals::default(), Some("stopped")), USAGE);
    }

    #[test]
    fn a_long_campaign_must_reach_its_marks() {
        let (mark, within) =
            MARKS.iter().find_map(|mark| Some((mark.name, mark.reach.seeds()?))).unwrap();
        let complaints = |seeds: u64, profile: Profile, reached: &[&str]| {
            let mut totals = Totals::default();
            totals.marks.extend(reached.iter().map(|name| ((*name).to_owned(), 1)));
            for seed in 0..seeds {
                let violation = Violation {
                    promise: String::new(),
                    checker: String::new(),
                    detail: String::new(),
                };
                let trial = Trial::new(seed, Topology::Swarm);
                totals.add(Report::of_failure(trial, violation), Duration::ZERO);
            }
            let options = options(profile);
            let (real, stopped) = (Duration::ZERO, None);
            let verdict =
                Verdict { options: &options, twice: false, is_whole: true, stopped, totals, real };
            verdict.complaints().iter().filter(|text| text.contains(&format!("{mark:?}"))).count()
        };
        assert_eq!(complaints(within, Profile::Swarm, &[]), 1);
        assert_eq!(complaints(within, Profile::Swarm, &[mark]), 0);
        assert_eq!(complaints(within - 1, Profile::Swarm, &[]), 0);
        assert_eq!(complaints(within, Profile::Calm, &[]), 0);
    }
}
