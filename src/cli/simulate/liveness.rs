//! How long a healed cluster takes, one kind of fault after the other, held against the baseline, or recorded as one.

use std::path::PathBuf;

use clap::Args;

use super::arguments::parse_jobs;
use super::campaign::{RunOptions, run_all};
use super::filter::Filter;
use super::output_file::OutputFile;
use super::seeds::Seeds;
use super::stop::Stop;
use super::trial_options::TrialOptions;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::simulator::liveness::{Baselines, ELECTION_TIMEOUT_MS, Milestone, Spreads};
use crate::simulator::plan::Topology;
use crate::simulator::profile::Profile;

#[derive(Debug, Args)]
pub(super) struct LivenessOptions {
    /// Seeds of each kind of fault.
    #[arg(long, default_value = "0..200")]
    seeds: Seeds,
    /// Write what was measured here, as the baseline of builds to come (src/simulator/liveness_baseline.json).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Processes at a time; default: one per core.
    #[arg(long, value_parser = parse_jobs)]
    jobs: Option<usize>,
}

pub(super) fn run(options: &LivenessOptions) -> u8 {
    match measure_all(options) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            USAGE
        }
    }
}

fn measure_all(options: &LivenessOptions) -> Result<u8, String> {
    let file = options.record.as_deref().map(OutputFile::begin).transpose()?;
    let recorded = Baselines::recorded();
    let mut measured = Baselines::default();
    let mut complaints = Vec::new();
    let mut lines = vec![format!(
        "after the heal, in election time-outs ({ELECTION_TIMEOUT_MS} ms): half, 90 %, 99 % of runs"
    )];
    lines
        .push(format!("{:<18}{:>24}{:>24}{:>24}", "faults", "writable", "replicated", "recovered"));
    let mut failed = 0;
    for profile in Profile::ALL {
        let trial = TrialOptions { profile, ..TrialOptions::on(Topology::Swarm) };
        let campaign = RunOptions::plain(options.seeds.clone(), trial, options.jobs);
        let verdict = run_all(&campaign, &Filter::default(), None, &Stop::default())?;
        failed += verdict.totals.failed;
        let spreads = verdict.totals.spreads();
        let line = line(profile, &spreads);
        complain(&line);
        lines.push(line);
        let slower = recorded.complaints(Topology::Swarm, profile, &spreads);
        complaints.extend(slower.into_iter().map(|text| format!("{}: {text}", profile.as_str())));
        measured.record(Topology::Swarm, profile, spreads);
    }
    lines.push(format!("{failed} runs broke a promise"));
    if let Some(file) = file {
        let text = serde_json::to_string_pretty(&measured).map_err(|error| error.to_string())?;
        file.finish(&(text + "\n"))?;
        complaints.clear();
    }
    let passed = complaints.is_empty() && failed == 0;
    lines.extend(complaints);
    say(&lines.join("\n"));
    Ok(if passed { GOOD } else { FAILED })
}

fn line(profile: Profile, spreads: &Spreads) -> String {
    let cell = |milestone: Milestone| {
        let Some(spread) = spreads.get(&milestone) else { return "-".to_owned() };
        let [half, most, nearly_all] =
            spread.ms.map(|ms| format!("{:.1}", ms as f64 / ELECTION_TIMEOUT_MS as f64));
        format!("{half} {most} {nearly_all}")
    };
    let cells: String =
        Milestone::ALL.into_iter().map(|milestone| format!("{:>24}", cell(milestone))).collect();
    format!("{:<18}{cells}", profile.as_str())
}
