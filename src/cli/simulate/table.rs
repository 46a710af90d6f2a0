//! Reports as people read them.

use std::fmt::Write;

use super::verdict::Verdict;
use crate::cli::output::say;
use crate::simulator::coverage::Coverage;
use crate::simulator::plan::FaultKind;
use crate::simulator::report::Report;

/// One failed seed: the promise, what was seen, and how to see it again.
pub(super) fn failure(report: &Report) -> String {
    let trial = &report.trial;
    let (topology, profile) = (trial.topology.as_str(), trial.profile.as_str());
    let mut text = format!("FAILED seed {} ({topology}, {profile})", trial.seed);
    for violation in &report.violations {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {violation}");
    }
    let _ = write!(text, "\n  replay: {}", trial.replay_command());
    let _ = write!(text, "\n  page:   {}", trial.page_command());
    text
}

/// One run at length.
pub(super) fn print_report(report: &Report) {
    let trial = &report.trial;
    let (topology, profile) = (trial.topology.as_str(), trial.profile.as_str());
    let mut lines =
        vec![format!("seed {} ({topology}, {profile}), hash {}", trial.seed, report.hash)];
    let [committed, rejected, unknown] = report.publishes;
    lines.push(format!("publishes: {committed} committed, {rejected} rejected, {unknown} unknown"));
    lines.push(format!(
        "deliveries: {}, acknowledged with receipt: {}",
        report.deliveries, report.acks
    ));
    lines.push(format!("faults: {:?}", report.faults));
    lines.push(format!("compared: {:?}", report.compared));
    lines.push(format!("marks: {:?}", report.marks));
    if let (Some(writable), Some(recovered)) = (report.writable_after_ms, report.recovered_after_ms)
    {
        lines.push(format!(
            "after the heal: writable in {writable}, recovered in {recovered} virtual ms"
        ));
    }
    lines.push(format!(
        "{} virtual ms in {} ms, {} events",
        report.virtual_ms, report.real_ms, report.events
    ));
    lines.push(match report.violations.is_empty() {
        true => "PASSED".to_owned(),
        false => failure(report),
    });
    say(&lines.join("\n"));
}

/// Median, slow end and the slowest seed of some milliseconds.
fn spread(what: &str, mut values: Vec<(u64, u64)>) -> Option<String> {
    values.sort_unstable();
    let at = |percent: usize| values.get(values.len() * percent / 100).map_or(0, |(ms, _)| *ms);
    let (longest, seed) = values.last()?;
    Some(format!(
        "{what}: half in {} ms, 90% in {} ms, seed {seed} in {longest} ms",
        at(50),
        at(90)
    ))
}

/// In how many runs each kind of fault has met each state; a point is a pair that no run came to.
fn coverage_table(coverage: &Coverage) -> Vec<String> {
    let mut lines = vec!["runs in which a fault has met a state:".to_owned()];
    for (number, kind) in FaultKind::ALL.iter().enumerate() {
        lines.push(format!("  {number:>2} {}", kind.as_str()));
    }
    let heads: String = (0..FaultKind::ALL.len()).map(|number| format!("{number:>6}")).collect();
    lines.push(format!("{:<42}{heads}", "state"));
    for state in coverage.states().keys() {
        let cells: String = FaultKind::ALL
            .iter()
            .map(|kind| match coverage.runs(*kind, state) {
                0 => format!("{:>6}", "."),
                runs => format!("{runs:>6}"),
            })
            .collect();
        lines.push(format!("{state:<42}{cells}"));
    }
    lines
}

/// A campaign in a few lines.
pub(super) fn print_summary(verdict: &Verdict<'_>, with_coverage: bool) {
    let totals = &verdict.totals;
    let (topology, profile) = (verdict.options.topology.as_str(), verdict.options.profile.as_str());
    let [committed, rejected, unknown] = totals.publishes;
    let mut lines = vec![
        format!(
            "{} seeds on {topology}, faults {profile}: {} failed",
            totals.lines.len(),
            totals.failed
        ),
        format!("publishes: {committed} committed, {rejected} rejected, {unknown} unknown"),
        format!("compared: {:?}", totals.compared),
        format!("faults: {:?}", totals.faults),
    ];
    let values = |value: fn(&super::totals::Line) -> Option<u64>| {
        let values = totals.lines.iter().filter_map(|line| Some((value(line)?, line.seed)));
        values.collect::<Vec<(u64, u64)>>()
    };
    lines.extend(spread("writable after the heal", values(|line| line.writable_after_ms)));
    lines.extend(spread("replicated after the heal", values(|line| line.replicated_after_ms)));
    lines.extend(spread("recovered after the heal", values(|line| line.recovered_after_ms)));
    lines.extend(spread("virtual time of a seed", values(|line| Some(line.virtual_ms))));
    lines.extend(spread("processor time of a seed", values(|line| Some(line.cpu_ms))));
    lines.push(format!("marks reached: {:?}", totals.marks));
    lines.push(format!("marks not reached: {:?}", verdict.marks_not_reached()));
    lines.push(format!(
        "{} virtual seconds, {:.0} per core-second, {} events, {:.0} s of real time",
        totals.virtual_ms / 1000,
        totals.virtual_ms as f64 / (totals.cpu_ms.max(1)) as f64,
        totals.events,
        verdict.real.as_secs_f64()
    ));
    let (pairs, marks) = totals.coverage.counts();
    let states = totals.coverage.states().len();
    let all = states * FaultKind::ALL.len();
    lines.push(format!("coverage: {pairs} of {all} pairs of fault and state, {marks} marks"));
    if with_coverage {
        lines.extend(coverage_table(&totals.coverage));
    }
    lines.extend(verdict.complaints());
    say(&lines.join("\n"));
}
