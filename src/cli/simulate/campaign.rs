//! Many seeds over a few processes at a time, failures shown as they come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;

use super::child::run_apart;
use super::course::{Course, Extent, Next};
use super::filter::{Filter, Wanted};
use super::junit::junit;
use super::kept::{Heading, Kept};
use super::output_file::OutputFile;
use super::summary::summary;
use super::totals::Totals;
use super::trial_options::TrialOptions;
use super::{Seeds, table};
use crate::cli::output::{complain, progress, say, say_json};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::checkers::Violation;
use crate::simulator::liveness::Baselines;
use crate::simulator::mark_list::unreached;
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Seeds to run: A..B, or one; 0..100 if neither this nor --for is given.
    #[arg(long, conflicts_with = "duration")]
    seeds: Option<Seeds>,
    /// Run one seed after the other until this time is over, for example 10m; seeds under way are finished.
    #[arg(long = "for", value_parser = humantime::parse_duration, value_name = "TIME")]
    duration: Option<Duration>,
    /// The first seed of such a campaign.
    #[arg(long, requires = "duration", default_value_t = 0)]
    first: u64,
    #[command(flatten)]
    trial: TrialOptions,
    /// Run each seed twice and demand equal hashes.
    #[arg(long)]
    twice: bool,
    /// Only seeds with this setting, for example quorum=5/3/2 or fault=clock; again for more.
    #[arg(long = "with", value_name = "KEY=VALUE")]
    wanted: Vec<Wanted>,
    /// Give every other seed the settings of one that reached something rare.
    #[arg(long, conflicts_with = "settings_of")]
    lean: bool,
    /// Keep every run in this file; if it is there, go on where it ends.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Show which kinds of fault have met which states.
    #[arg(long)]
    coverage: bool,
    /// Processes at a time; default: one per core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Write a JUnit file: one test case a seed.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the sums, the failures and their replay commands as JSON.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// `json` prints one report a line and nothing else.
    #[arg(short, long, value_parser = ["text", "json"], default_value = "text")]
    output: String,
}

impl RunOptions {
    /// A campaign of these seeds and nothing else that can be asked for.
    pub(super) const fn plain(seeds: Seeds, trial: TrialOptions, jobs: Option<usize>) -> Self {
        Self {
            seeds: Some(seeds),
            duration: None,
            first: 0,
            trial,
            twice: false,
            wanted: Vec::new(),
            lean: false,
            resume: None,
            coverage: false,
            jobs,
            junit: None,
            summary: None,
            output: String::new(),
        }
    }

    fn extent(&self) -> Extent {
        match (self.duration, &self.seeds) {
            (Some(duration), _) => Extent::Time { first: self.first, duration },
            (None, seeds) => Extent::Seeds(seeds.clone().unwrap_or(SEEDS_USUAL)),
        }
    }

    fn check_files(&self) -> Result<(), String> {
        let files = [("resume", &self.resume), ("junit", &self.junit), ("summary", &self.summary)];
        let pairs = [(0, 1), (0, 2), (1, 2)].map(|(one, other)| (files[one], files[other]));
        let same = pairs.iter().find(|((_, one), (_, other))| one.is_some() && one == other);
        match same {
            Some(((one, _), (other, _))) => {
                Err(format!("--{one} and --{other} name the same file"))
            }
            None => Ok(()),
        }
    }

    /// What all parts of a resumed campaign must have in common. Not its length: it may go on for longer.
    fn campaign(&self) -> String {
        let mut words = self.trial.trial(0).arguments();
        // All but the seed.
        words.remove(0);
        words.extend(self.wanted.iter().map(|wanted| format!("--with {wanted}")));
        words.extend(self.lean.then(|| "--lean".to_owned()));
        words.extend(self.twice.then(|| "--twice".to_owned()));
        words.join(" ")
    }
}

/// Seeds of a campaign that is told neither seeds nor time.
const SEEDS_USUAL: Seeds = Seeds(0..100);

/// A campaign in which nothing was run is not one that passed.
const NO_SEED: &str = "no seed has the settings that were asked for";

pub(super) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// What a campaign has come to.
pub(super) struct Verdict<'a> {
    pub(super) options: &'a TrialOptions,
    pub(super) twice: bool,
    /// No seed was left out for its settings.
    pub(super) is_whole: bool,
    pub(super) totals: Totals,
    pub(super) real: Duration,
}

impl Verdict<'_> {
    /// What is wrong with the campaign as a whole, whatever its runs say.
    pub(super) fn complaints(&self) -> Vec<String> {
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
}

/// The files a campaign is to write, begun.
struct Files {
    junit: Option<OutputFile>,
    summary: Option<OutputFile>,
}

impl Files {
    fn begin(options: &RunOptions) -> Result<Self, String> {
        let begin = |path: &Option<PathBuf>| path.as_deref().map(OutputFile::begin).transpose();
        Ok(Self { junit: begin(&options.junit)?, summary: begin(&options.summary)? })
    }

    fn finish(self, verdict: &Verdict<'_>) -> Result<(), String> {
        if let Some(file) = self.junit {
            file.finish(&junit(verdict))?;
        }
        if let Some(file) = self.summary {
            file.finish(&summary(verdict))?;
        }
        Ok(())
    }
}

pub(super) fn run(options: &RunOptions) -> u8 {
    match prepare_and_run(options) {
        Ok((files, verdict)) => {
            if options.output == "text" {
                table::print_summary(&verdict, options.coverage);
            }
            if let Err(error) = files.finish(&verdict) {
                complain(&error);
                return FAILED;
            }
            if verdict.passed() { GOOD } else { FAILED }
        }
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}

fn prepare_and_run(options: &RunOptions) -> Result<(Files, Verdict<'_>), String> {
    options.trial.check()?;
    let filter = Filter::new(options.wanted.clone());
    options.check_files()?;
    // Before the files of the end are begun: if it is refused, those of the campaign before stay.
    let kept = match &options.resume {
        Some(path) => Some(Kept::open(path, &Heading::new(options.campaign())?)?),
        None => None,
    };
    let files = Files::begin(options)?;
    let verdict = run_all(options, &filter, kept)?;
    Ok((files, verdict))
}

pub(super) fn run_all<'a>(
    options: &'a RunOptions,
    filter: &Filter,
    kept: Option<(Kept, BTreeMap<u64, Report>)>,
) -> Result<Verdict<'a>, String> {
    let began = Instant::now();
    let is_json = options.output == "json";
    let (kept, reports) = kept.unzip();
    let course = Course::new(
        &options.trial,
        filter,
        options.extent(),
        options.lean,
        reports.unwrap_or_default(),
    );
    let bar = progress(course.extent().count().unwrap_or(0), "seeds");
    let sums = Mutex::new((Totals::default(), kept));
    let failed: Mutex<Option<String>> = Mutex::default();
    let fail = |error: String| *failed.lock().unwrap_or_else(|p| p.into_inner()) = Some(error);
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                loop {
                    let started = Instant::now();
                    let (report, is_new) = match course.next() {
                        Next::Run(trial, round) => {
                            let report = run_trial(&trial, options.twice);
                            course.report(round, report.clone());
                            (report, true)
                        }
                        Next::Kept(report) => (*report, false),
                        Next::Over => return,
                        Next::Nothing => {
                            return fail(NO_SEED.to_owned());
                        }
                    };
                    let mut sums = sums.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    let (totals, kept) = &mut *sums;
                    if let Some(kept) = kept.as_mut().filter(|_| is_new)
                        && let Err(error) = kept.add(&report)
                    {
                        return fail(error);
                    }
                    // Nobody has to read what is printed: the exit code and the files say it, too.
                    if is_json {
                        say_json(&report);
                    } else if !report.violations.is_empty() {
                        bar.suspend(|| say(&table::failure(&report)));
                    }
                    bar.inc(1);
                    totals.add(report, started.elapsed());
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(error);
    }
    let (mut totals, _) = sums.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if totals.lines.is_empty() {
        return Err(NO_SEED.to_owned());
    }
    totals.lines.sort_by_key(|line| line.seed);
    let is_whole = filter.is_empty();
    let (options, twice, real) = (&options.trial, options.twice, began.elapsed());
    Ok(Verdict { options, twice, is_whole, totals, real })
}

fn run_trial(trial: &Trial, twice: bool) -> Report {
    let mut report = run_apart(trial);
    if twice {
        let second = run_apart(trial);
        if (&second.hash, second.events) != (&report.hash, report.events) {
            report.violations.push(Violation {
                promise: "same seed, same trace".to_owned(),
                checker: "determinism".to_owned(),
                detail: format!(
                    "first run {} after {} events, second {} after {}",
                    report.hash, report.events, second.hash, second.events
                ),
            });
        }
    }
    report
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cli::simulate::totals::tests::two_runs;
    use crate::simulator::mark_list::MARKS;

    fn options(profile: Profile) -> TrialOptions {
        TrialOptions { profile, ..TrialOptions::on(Topology::Swarm) }
    }

    /// What is written of a campaign on swarms with these sums.
    pub(in crate::cli::simulate) fn verdict_of(
        totals: Totals,
        write: impl FnOnce(&Verdict<'_>) -> String,
    ) -> String {
        let options = options(Profile::Swarm);
        let real = Duration::from_secs(1);
        write(&Verdict { options: &options, twice: false, is_whole: true, totals, real })
    }

    #[test]
    fn a_campaign_without_a_seed_or_a_fact_is_not_green() {
        let trial = options(Profile::Swarm);
        let campaign = RunOptions::plain(Seeds(0..3), trial, Some(2));
        let filter = Filter::new(vec!["quorum=9/9/9".parse().unwrap()]);
        assert_eq!(run_all(&campaign, &filter, None).err().as_deref(), Some(NO_SEED));
        let mut totals = two_runs();
        let complains = |totals| {
            verdict_of(totals, |verdict| verdict.complaints().join("\n")).contains("no checker")
        };
        assert!(!complains(two_runs()));
        totals.compared.values_mut().for_each(|count| *count = 0);
        assert!(complains(totals));
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
            let real = Duration::ZERO;
            let verdict = Verdict { options: &options, twice: false, is_whole: true, totals, real };
            verdict.complaints().iter().filter(|text| text.contains(&format!("{mark:?}"))).count()
        };
        assert_eq!(complaints(within, Profile::Swarm, &[]), 1);
        assert_eq!(complaints(within, Profile::Swarm, &[mark]), 0);
        assert_eq!(complaints(within - 1, Profile::Swarm, &[]), 0);
        assert_eq!(complaints(within, Profile::Calm, &[]), 0);
    }
}
