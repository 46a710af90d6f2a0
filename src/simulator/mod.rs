//! Tries to break Seawall: one seed is one process, one world, one history, one verdict. It speaks to the
//! cluster as a client and reaches inside only through the node's handles.

/// What must come to hold by itself, and how long that may take.
pub mod awaited;
/// Bugs that other systems had.
pub mod bug_catalogue;
/// One invariant a file.
pub mod checkers;
/// What clients do in a run, in any world.
pub mod clients;
/// One way in which a clock is wrong.
pub mod clock_fault;
/// The nodes of a run.
pub mod cluster;
/// What runs have reached, and which settings a campaign leans towards.
pub mod coverage;
/// Every state that a power loss may leave.
pub mod crash_states;
/// What is left out of a run.
pub mod cuts;
mod draw;
/// What clients did and were told.
pub mod history;
/// How long healed clusters take.
pub mod liveness;
mod log_notes;
/// Looking whether tests reach the marks they have to.
#[cfg(feature = "mutants")]
pub mod mark_hunt;
/// Every mark, and what has to reach it.
pub mod mark_list;
/// What metadata's clients were told, and what its members did.
pub mod metadata_history;
/// Hunting planted bugs with tests.
#[cfg(feature = "mutants")]
pub mod mutant_hunt;
/// Every planted bug.
pub mod mutant_list;
/// Injects faults.
pub mod nemesis;
mod node_states;
/// What is noted of a run that is recorded.
pub mod noted;
/// A page that tells one run.
pub mod page;
/// What one seed means.
pub mod plan;
mod plan_facts;
/// Which faults runs may have.
pub mod profile;
/// What one run found.
pub mod report;
mod run;
/// How many nodes of which role.
pub mod shape;
/// Which steps of clients are done.
pub mod steps;
/// One run in lines for a terminal.
pub mod timeline;
/// What one run is asked for.
pub mod trial;
/// Nodes of different versions.
pub mod versions;
/// What clients do.
pub mod workloads;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use checkers::Violation;
use history::{PublishFate, SharedHistory};
use plan::Plan;
use report::Report;
use trial::Trial;

use crate::invariant::marks;
use crate::runtime::sim::{Recorder, RunReport, World, WorldSettings};

/// Virtual time after which a run is given up: well above all phases together.
const TIME_LIMIT: Duration = Duration::from_secs(1200);

/// Events kept for a trace.
const TRACE_CAPACITY: usize = 1 << 20;

/// Does one trial in this process and says what was found. `real_ms` and `cpu_ms` are left 0 for the caller,
/// who may look at real clocks. A bug that it names must be planted already.
pub fn run(trial: &Trial, trace: bool) -> (Report, RunReport<()>) {
    run_recorded(trial, trace, Recorder::default())
}

/// The same, with a recorder that writes down what happens. The run is the same with it as without.
pub fn run_recorded(trial: &Trial, trace: bool, recorder: Recorder) -> (Report, RunReport<()>) {
    if !recorder.is_on() {
        return run_within(trial, trace, recorder);
    }
    let logs = log_notes::LogNotes(recorder.clone());
    tracing::subscriber::with_default(logs, || run_within(trial, trace, recorder))
}

/// The same, but what nodes log goes where it always goes, and is not in the recording.
pub fn run_watched(trial: &Trial, recorder: Recorder) -> (Report, RunReport<()>) {
    run_within(trial, false, recorder)
}

fn run_within(trial: &Trial, trace: bool, recorder: Recorder) -> (Report, RunReport<()>) {
    let plan = Arc::new(Plan::of(trial));
    let history = SharedHistory::recorded(recorder.clone());
    let settings = WorldSettings {
        time_limit: TIME_LIMIT,
        trace_capacity: if trace { TRACE_CAPACITY } else { 0 },
        recorder,
        timing: plan.timing,
        ..WorldSettings::default()
    };
    let (run_plan, run_history) = (Arc::clone(&plan), history.clone());
    let ended = World::run_report(trial.seed, settings, move |world| {
        run::run(world, run_plan, run_history)
    });
    let report = judge(trial, &ended, &history);
    let rest = RunReport {
        output: Some(()),
        timed_out: ended.timed_out,
        panics: ended.panics,
        decisions: ended.decisions,
        decisions_dropped: ended.decisions_dropped,
        event_hash: ended.event_hash,
        event_count: ended.event_count,
        trace: ended.trace,
        virtual_time: ended.virtual_time,
        recording: ended.recording,
    };
    (report, rest)
}

fn judge(trial: &Trial, ended: &RunReport<clients::Outcome>, history: &SharedHistory) -> Report {
    let mut violations = Vec::new();
    for panic in &ended.panics {
        violations.push(Violation {
            promise: "panic".to_owned(),
            checker: panic.task.to_owned(),
            detail: format!("{} at {:?}: {}", panic.node, panic.at, panic.text),
        });
    }
    if ended.timed_out {
        violations.push(Violation {
            promise: "P6".to_owned(),
            checker: "time limit".to_owned(),
            detail: format!("not finished after {TIME_LIMIT:?} of virtual time"),
        });
    }
    let mut compared = BTreeMap::new();
    let (mut writable, mut replicated, mut recovered) = (None, None, None);
    let mut faults: BTreeMap<String, u64> = BTreeMap::new();
    let mut strikes = Vec::new();
    if let Some(outcome) = &ended.output {
        for (name, finding) in &outcome.findings {
            *compared.entry(name.clone()).or_default() += finding.compared;
            violations.extend(finding.violations.iter().cloned());
        }
        writable = outcome.writable_after.map(|after| after.as_millis() as u64);
        replicated = outcome.replicated_after.map(|after| after.as_millis() as u64);
        recovered = outcome.recovered_after.map(|after| after.as_millis() as u64);
        faults.insert("gave-up".to_owned(), outcome.gave_up);
        strikes.clone_from(&outcome.strikes);
    }
    // What is lost may well be why something does not come back.
    violations.sort_by_key(|violation| violation.promise == "P6");
    for decision in &ended.decisions {
        let kind = serde_json::to_value(decision.key.kind).unwrap_or_default();
        *faults.entry(kind.as_str().unwrap_or("?").to_owned()).or_default() += 1;
    }
    let history = history.lock();
    let mut publishes = [0; 3];
    for record in history.publishes.values() {
        publishes[match record.fate {
            PublishFate::Committed(_) => 0,
            PublishFate::Rejected => 1,
            PublishFate::Unknown => 2,
        }] += 1;
    }
    Report {
        trial: trial.clone(),
        violations,
        compared,
        strikes,
        faults,
        marks: marks::visited().into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        pairs: coverage::pairs(),
        publishes,
        deliveries: history.deliveries.len() as u64,
        acks: history.acks.iter().filter(|ack| ack.receipt_at.is_some()).count() as u64,
        writable_after_ms: writable,
        replicated_after_ms: replicated,
        recovered_after_ms: recovered,
        virtual_ms: ended.virtual_time.as_millis() as u64,
        real_ms: 0,
        cpu_ms: 0,
        events: ended.event_count,
        hash: format!("{:016x}", ended.event_hash),
    }
}
