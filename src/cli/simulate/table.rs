//! Reports as people read them.

use std::collections::BTreeMap;

use crate::simulator::plan::Topology;
use crate::simulator::report::Report;

/// One failed seed: the promise, what was seen, and how to see it again.
pub(super) fn print_failure(report: &Report) {
    println!("FAILED seed {} ({})", report.seed, report.topology.as_str());
    for violation in &report.violations {
        println!("  {} broken ({}): {}", violation.promise, violation.checker, violation.detail);
    }
    println!("  replay: {}", report.replay_command());
}

/// One run at length.
pub(super) fn print_report(report: &Report) {
    println!("seed {} ({}), hash {}", report.seed, report.topology.as_str(), report.hash);
    let [committed, rejected, unknown] = report.publishes;
    println!("publishes: {committed} committed, {rejected} rejected, {unknown} unknown");
    println!("deliveries: {}, acknowledged with receipt: {}", report.deliveries, report.acks);
    println!("faults: {:?}", report.faults);
    println!("compared: {:?}", report.compared);
    println!("marks: {:?}", report.marks);
    if let (Some(writable), Some(recovered)) = (report.writable_after_ms, report.recovered_after_ms)
    {
        println!("after the heal: writable in {writable}, recovered in {recovered} virtual ms");
    }
    println!("{} virtual ms in {} ms, {} events", report.virtual_ms, report.real_ms, report.events);
    if report.violations.is_empty() {
        println!("PASSED");
    } else {
        print_failure(report);
    }
}

/// Median, slow end and the slowest seed of some virtual milliseconds.
fn print_spread(what: &str, mut values: Vec<(u64, u64)>) {
    values.sort_unstable();
    let at = |percent: usize| values.get(values.len() * percent / 100).map_or(0, |(ms, _)| *ms);
    if let Some((longest, seed)) = values.last() {
        println!(
            "{what}: half in {} ms, 90% in {} ms, seed {seed} in {longest} ms",
            at(50),
            at(90)
        );
    }
}

/// A campaign in a few lines.
pub(super) fn print_summary(reports: &[Report], topology: Topology) {
    let mut compared: BTreeMap<&str, u64> = BTreeMap::new();
    let mut faults: BTreeMap<&str, u64> = BTreeMap::new();
    let mut marks: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut virtual_ms, mut cpu_ms, mut events, mut failed) = (0, 0, 0, 0);
    let mut publishes = [0; 3];
    let (mut writable, mut recovered) = (Vec::new(), Vec::new());
    let (mut lengths, mut works) = (Vec::new(), Vec::new());
    for report in reports {
        report.compared.iter().for_each(|(name, n)| *compared.entry(name).or_default() += n);
        report.faults.iter().for_each(|(name, n)| *faults.entry(name).or_default() += n);
        report.marks.iter().for_each(|(name, n)| *marks.entry(name).or_default() += n);
        publishes.iter_mut().zip(report.publishes).for_each(|(sum, n)| *sum += n);
        writable.extend(report.writable_after_ms.map(|after| (after, report.seed)));
        recovered.extend(report.recovered_after_ms.map(|after| (after, report.seed)));
        virtual_ms += report.virtual_ms;
        cpu_ms += report.cpu_ms;
        lengths.push((report.virtual_ms, report.seed));
        works.push((report.cpu_ms, report.seed));
        events += report.events;
        failed += u64::from(!report.violations.is_empty());
    }
    let [committed, rejected, unknown] = publishes;
    println!("{} seeds on {}: {failed} failed", reports.len(), topology.as_str());
    println!("publishes: {committed} committed, {rejected} rejected, {unknown} unknown");
    println!("compared: {compared:?}");
    println!("faults: {faults:?}");
    print_spread("writable after the heal", writable);
    print_spread("recovered after the heal", recovered);
    print_spread("virtual time of a seed", lengths);
    print_spread("processor time of a seed", works);
    println!("marks reached: {marks:?}");
    println!(
        "{} virtual seconds, {:.0} per core-second, {events} events",
        virtual_ms / 1000,
        virtual_ms as f64 / (cpu_ms.max(1)) as f64
    );
}
