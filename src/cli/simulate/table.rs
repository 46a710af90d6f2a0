//! Reports as people read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::program::typed;
use super::totals::Totals;
use super::verdict::Verdict;
use crate::cli::output::say;
use crate::simulator::coverage::Coverage;
use crate::simulator::mark_list::{MARKS, unreached};
use crate::simulator::plan::FaultKind;
use crate::simulator::report::Report;

/// Characters of a line.
const WIDTH: usize = 120;

/// Failed runs listed at the end of a campaign.
const FAILURES_SHOWN: usize = 20;

/// One failed seed: the promise, what was seen, and how to see it again.
pub(super) fn failure(report: &Report) -> String {
    let trial = &report.trial;
    let (topology, profile) = (trial.topology.as_str(), trial.profile.as_str());
    let mut text = format!("FAILED seed {} ({topology}, {profile})", trial.seed);
    for violation in &report.violations {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {violation}");
    }
    let _ = write!(text, "\n  replay: {}", typed(&trial.replay_command()));
    let _ = write!(text, "\n  page:   {}", typed(&trial.page_command()));
    let _ = write!(text, "\n  shrink: {}", typed(&trial.shrink_command()));
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
    lines.extend(counts("faults", &report.faults));
    lines.extend(counts("compared", &report.compared));
    lines.push(marks(&report.marks));
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
        true => format!("PASSED seed {} ({topology}, {profile})", trial.seed),
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

/// Items behind what they are, on lines of a readable length.
fn list(what: &str, items: &[String]) -> Vec<String> {
    let mut lines = vec![format!("{what}:")];
    for (number, item) in items.iter().enumerate() {
        let comma = if number + 1 < items.len() { "," } else { "" };
        let has_room = |line: &String| line.chars().count() + item.chars().count() + 2 <= WIDTH;
        if lines.last().is_some_and(has_room)
            && let Some(line) = lines.last_mut()
        {
            line.push_str(&format!(" {item}{comma}"));
        } else {
            lines.push(format!("  {item}{comma}"));
        }
    }
    lines
}

fn counts(what: &str, counts: &BTreeMap<String, u64>) -> Vec<String> {
    let items: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    list(what, &items)
}

/// How many of all marks were reached.
fn marks(visits: &BTreeMap<String, u64>) -> String {
    let reached = MARKS.len() - unreached(visits).count();
    format!("marks: {reached} of {} in the list reached", MARKS.len())
}

/// Every mark that was reached, with its visits.
fn mark_table(visits: &BTreeMap<String, u64>) -> Vec<String> {
    let mut lines = vec!["visits of marks:".to_owned()];
    let reached = visits.iter().filter(|(_, count)| **count > 0);
    lines.extend(reached.map(|(name, count)| format!("{count:>10}  {name}")));
    lines
}

/// The failed runs once more, a line each: those that came first have gone by.
fn failures(totals: &Totals) -> Vec<String> {
    let shown = totals.failures.iter().take(FAILURES_SHOWN);
    let mut lines: Vec<String> = shown
        .map(|(seed, failure)| {
            let violation = failure.violations.first();
            let promise = violation.map_or("", |violation| violation.promise.as_str());
            format!("FAILED seed {seed}, {promise}: {}", typed(&failure.trial.replay_command()))
        })
        .collect();
    let more = totals.failed.saturating_sub(lines.len() as u64);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
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
    ];
    lines.extend(counts("compared", &totals.compared));
    lines.extend(counts("faults", &totals.faults));
    let values = |value: fn(&super::totals::Line) -> Option<u64>| {
        let values = totals.lines.iter().filter_map(|line| Some((value(line)?, line.seed)));
        values.collect::<Vec<(u64, u64)>>()
    };
    lines.extend(spread("writable after the heal", values(|line| line.writable_after_ms)));
    lines.extend(spread("replicated after the heal", values(|line| line.replicated_after_ms)));
    lines.extend(spread("recovered after the heal", values(|line| line.recovered_after_ms)));
    lines.extend(spread("virtual time of a seed", values(|line| Some(line.virtual_ms))));
    lines.extend(spread("processor time of a seed", values(|line| Some(line.cpu_ms))));
    lines.push(marks(&totals.marks));
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
        lines.extend(mark_table(&totals.marks));
        let missed: Vec<String> =
            verdict.marks_not_reached().into_iter().map(str::to_owned).collect();
        lines.extend(list("not reached, by a longer campaign on swarms", &missed));
        lines.extend(coverage_table(&totals.coverage));
    }
    lines.extend(verdict.complaints());
    lines.extend(failures(totals));
    say(&lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::simulate::totals::tests::two_runs;

    #[test]
    fn long_lists_are_wrapped() {
        let items: Vec<String> = (100..200).map(|number| format!("checker_{number} 1")).collect();
        let lines = list("compared", &items);
        assert!(lines.len() > 10 && lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert_eq!(lines.concat().matches(',').count(), 99);
        assert_eq!(list("faults", &[]), ["faults:"]);
    }

    #[test]
    fn marks_are_counted_against_the_list() {
        let visits = [(MARKS[0].name.to_owned(), 3), ("no such mark".to_owned(), 1)].into();
        assert_eq!(marks(&visits), format!("marks: 1 of {} in the list reached", MARKS.len()));
        assert!(mark_table(&visits).concat().contains(MARKS[0].name));
    }

    #[test]
    fn failed_runs_are_listed_again() {
        let mut totals = two_runs();
        let lines = failures(&totals);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("FAILED seed 7, P1: "), "{lines:?}");
        assert!(lines[0].ends_with("sim replay 7 --topology swarm --profile swarm"), "{lines:?}");
        let violation = totals.failures[&7].violations[0].clone();
        for seed in 10..35 {
            let mut trial = totals.failures[&7].trial.clone();
            trial.seed = seed;
            totals.add(Report::of_failure(trial, violation.clone()), Duration::ZERO);
        }
        let lines = failures(&totals);
        assert_eq!((lines.len(), lines[20].as_str()), (21, "and 6 more"));
    }
}
