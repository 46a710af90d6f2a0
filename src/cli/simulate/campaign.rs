//! Many seeds over a few processes at a time, failures shown as they come.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use super::child::run_apart;
use super::junit::junit;
use super::output_file::OutputFile;
use super::summary::summary;
use super::totals::Totals;
use super::trial_options::TrialOptions;
use super::{Seeds, table};
use crate::cli::output::{complain, progress, say, say_json};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::checkers::Violation;
use crate::simulator::mark_list::unreached;
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;
use crate::simulator::report::Report;

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

/// Seeds of a campaign that is told neither seeds nor time.
const SEEDS_USUAL: Seeds = Seeds(0..100);

pub(super) fn jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

/// When a campaign is over.
enum Extent {
    Seeds(Seeds),
    Until { first: u64, end: Instant },
}

impl Extent {
    fn of(options: &RunOptions) -> Self {
        match (options.duration, &options.seeds) {
            (Some(duration), _) => {
                Self::Until { first: options.first, end: Instant::now() + duration }
            }
            (None, seeds) => Self::Seeds(seeds.clone().unwrap_or(SEEDS_USUAL)),
        }
    }

    const fn first(&self) -> u64 {
        match self {
            Self::Seeds(seeds) => seeds.0.start,
            Self::Until { first, .. } => *first,
        }
    }

    /// How many seeds there are, if that is known.
    const fn count(&self) -> Option<u64> {
        match self {
            Self::Seeds(seeds) => Some(seeds.0.end - seeds.0.start),
            Self::Until { .. } => None,
        }
    }

    /// Whether this seed, the next one, is to be run. A campaign by time has one at least.
    fn wants(&self, seed: u64) -> bool {
        match self {
            Self::Seeds(seeds) => seed < seeds.0.end,
            Self::Until { first, end } => seed == *first || Instant::now() < *end,
        }
    }
}

/// What a campaign has come to.
pub(super) struct Verdict<'a> {
    pub(super) options: &'a TrialOptions,
    pub(super) twice: bool,
    pub(super) totals: Totals,
    pub(super) real: Duration,
}

impl Verdict<'_> {
    /// What is wrong with the campaign as a whole, whatever its runs say.
    pub(super) fn complaints(&self) -> Vec<String> {
        // With few kinds of faults, or none, what some checkers look at need not happen: leaders do not change.
        let is_mixed = matches!(self.options.profile, Profile::Swarm | Profile::Storm);
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
        idle.chain(missed).collect()
    }

    /// Seeds that count for the marks a campaign must reach: windows hold for runs as they are drawn, of any shape.
    fn seeds_that_count(&self) -> u64 {
        let TrialOptions { topology, profile, mutant, cuts } = self.options;
        match (topology, profile, mutant) {
            (Topology::Swarm, Profile::Swarm, None) if cuts.is_none() => {
                self.totals.lines.len() as u64
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
        if options.junit.is_some() && options.junit == options.summary {
            return Err("--junit and --summary name the same file".to_owned());
        }
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
    let files = match options.trial.check().and_then(|()| Files::begin(options)) {
        Ok(files) => files,
        Err(error) => {
            complain(&error);
            return USAGE;
        }
    };
    let verdict = run_all(options);
    if options.output == "text" {
        table::print_summary(&verdict);
    }
    if let Err(error) = files.finish(&verdict) {
        complain(&error);
        return FAILED;
    }
    if verdict.passed() { GOOD } else { FAILED }
}

fn run_all(options: &RunOptions) -> Verdict<'_> {
    let began = Instant::now();
    let extent = Extent::of(options);
    let is_json = options.output == "json";
    let bar = progress(extent.count().unwrap_or(0), "seeds");
    let next = AtomicU64::new(extent.first());
    let totals: Mutex<Totals> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !extent.wants(seed) {
                        return;
                    }
                    let started = Instant::now();
                    let report = run_seed(seed, options);
                    let mut totals = totals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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
    let mut totals = totals.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    totals.lines.sort_by_key(|line| line.seed);
    Verdict { options: &options.trial, twice: options.twice, totals, real: began.elapsed() }
}

fn run_seed(seed: u64, options: &RunOptions) -> Report {
    let trial = options.trial.trial(seed);
    let mut report = run_apart(&trial);
    if options.twice {
        let second = run_apart(&trial);
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
    use crate::simulator::cuts::Cuts;
    use crate::simulator::mark_list::MARKS;
    use crate::simulator::trial::Trial;

    fn options(profile: Profile) -> TrialOptions {
        TrialOptions { topology: Topology::Swarm, profile, mutant: None, cuts: Cuts::default() }
    }

    /// What is written of a campaign on swarms with these sums.
    pub(in crate::cli::simulate) fn verdict_of(
        totals: Totals,
        write: impl FnOnce(&Verdict<'_>) -> String,
    ) -> String {
        let options = options(Profile::Swarm);
        let real = Duration::from_secs(1);
        write(&Verdict { options: &options, twice: false, totals, real })
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
            let verdict = Verdict { options: &options, twice: false, totals, real };
            verdict.complaints().iter().filter(|text| text.contains(&format!("{mark:?}"))).count()
        };
        assert_eq!(complaints(within, Profile::Swarm, &[]), 1);
        assert_eq!(complaints(within, Profile::Swarm, &[mark]), 0);
        assert_eq!(complaints(within - 1, Profile::Swarm, &[]), 0);
        assert_eq!(complaints(within, Profile::Calm, &[]), 0);
    }

    #[test]
    fn a_campaign_by_time_has_one_seed_at_least() {
        let extent = Extent::Until { first: 5, end: Instant::now() };
        assert!(extent.wants(5) && !extent.wants(6));
        let extent = Extent::Seeds(Seeds(3..5));
        assert!(extent.wants(4) && !extent.wants(5));
        assert_eq!((extent.first(), extent.count()), (3, Some(2)));
    }
}
