//! Many seeds over a few processes at a time, failures shown as they come.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Args;

use super::arguments::{jobs, parse_jobs, parse_time};
use super::child::run_apart_until;
use super::course::{Course, Extent, Next};
use super::filter::{Filter, Wanted};
use super::junit::junit;
use super::kept::{Heading, Kept};
use super::output_file::OutputFile;
use super::pace::Pace;
use super::stop::Stop;
use super::summary::summary;
use super::totals::Totals;
use super::trial_options::TrialOptions;
use super::verdict::Verdict;
use super::{Seeds, table};
use crate::cli::output::{complain, progress, say, say_json};
use crate::cli::{FAILED, USAGE};
use crate::simulator::checkers::Violation;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// Seeds to run: A..B, or one; 0..100 if neither this nor --for is given.
    #[arg(long, conflicts_with = "duration")]
    seeds: Option<Seeds>,
    /// Run one seed after the other until this time is over, for example 10m; seeds under way are finished.
    #[arg(long = "for", value_parser = parse_time, value_name = "TIME")]
    duration: Option<Duration>,
    /// The first seed of such a campaign.
    // Both: a requirement is waived by an argument that conflicts with what is required.
    #[arg(long, requires = "duration", conflicts_with = "seeds", default_value_t = 0)]
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
    /// Show every mark that was reached, and which kinds of fault have met which states.
    #[arg(long)]
    coverage: bool,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
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
            } else if let Some(stopped) = &verdict.stopped {
                complain(stopped);
            }
            if let Err(error) = files.finish(&verdict) {
                complain(&error);
                return FAILED;
            }
            verdict.exit_code()
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
    let verdict = run_all(options, &filter, kept, &Stop::on_signal()?)?;
    Ok((files, verdict))
}

pub(super) fn run_all<'a>(
    options: &'a RunOptions,
    filter: &Filter,
    kept: Option<(Kept, BTreeMap<u64, Report>)>,
    stop: &Stop,
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
    let sums = Mutex::new((Totals::default(), kept, Pace::new(began)));
    let failed: Mutex<Option<String>> = Mutex::default();
    let fail = |error: String| {
        *failed.lock().unwrap_or_else(|p| p.into_inner()) = Some(error);
        course.end_early();
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs(options.jobs) {
            scope.spawn(|| {
                loop {
                    if stop.is_asked() {
                        course.end_early();
                    }
                    let started = Instant::now();
                    let (report, is_new) = match course.next() {
                        Next::Run(trial, round) => {
                            let Some(report) = run_trial(&trial, options.twice, stop) else {
                                return course.drop_run();
                            };
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
                    let (totals, kept, pace) = &mut *sums;
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
                    let (done, all) =
                        ((totals.lines.len(), totals.failed), course.extent().count());
                    let line = pace.add(Instant::now(), is_new, done, all);
                    if let Some(line) = line.filter(|_| bar.is_hidden()) {
                        complain(&line);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(error);
    }
    let (mut totals, ..) = sums.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let stopped = course.was_cut_short().then(|| {
        let all = course.extent().count().filter(|_| filter.is_empty());
        let of = all.map(|all| format!(" of {all}")).unwrap_or_default();
        format!("stopped after {}{of} seeds", totals.lines.len())
    });
    if totals.lines.is_empty() && stopped.is_none() {
        return Err(NO_SEED.to_owned());
    }
    totals.lines.sort_by_key(|line| line.seed);
    let is_whole = filter.is_empty();
    let (options, twice, real) = (&options.trial, options.twice, began.elapsed());
    Ok(Verdict { options, twice, is_whole, stopped, totals, real })
}

/// None if the campaign is to end before the run did.
fn run_trial(trial: &Trial, twice: bool, stop: &Stop) -> Option<Report> {
    let mut report = run_apart_until(trial, stop)?;
    if twice {
        let second = run_apart_until(trial, stop)?;
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
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::plan::Topology;

    fn campaign(lean: bool) -> RunOptions {
        let trial = TrialOptions::on(Topology::Swarm);
        RunOptions { lean, ..RunOptions::plain(Seeds(0..3), trial, Some(2)) }
    }

    #[test]
    fn a_campaign_without_a_seed_is_not_green() {
        let filter = Filter::new(vec!["quorum=9/9/9".parse().unwrap()]);
        let campaign = campaign(false);
        let ran = run_all(&campaign, &filter, None, &Stop::default());
        assert_eq!(ran.err().as_deref(), Some(NO_SEED));
    }

    #[test]
    fn a_campaign_that_is_stopped_says_how_far_it_came() {
        let stop = Stop::default();
        stop.ask();
        for lean in [false, true] {
            let campaign = campaign(lean);
            let verdict = run_all(&campaign, &Filter::default(), None, &stop).unwrap();
            assert_eq!(verdict.complaints(), ["stopped after 0 of 3 seeds"]);
            assert_eq!((verdict.passed(), verdict.exit_code()), (false, USAGE));
        }
    }

    #[test]
    fn one_file_is_not_written_twice() {
        let path = || Some(PathBuf::from("x"));
        let named = |resume, junit, summary| {
            RunOptions { resume, junit, summary, ..campaign(false) }.check_files()
        };
        assert!(named(path(), None, path()).unwrap_err().contains("--resume and --summary"));
        assert!(named(None, path(), path()).is_err() && named(path(), path(), None).is_err());
        assert!(named(path(), None, None).is_ok() && named(None, None, None).is_ok());
    }
}
