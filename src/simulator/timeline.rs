//! One run in lines for a terminal: its phases, what the nemesis did, and what became of nodes, links, disks and clocks.
//! What clients did, and what led to what, is on the page.

use std::collections::{BTreeMap, BTreeSet};

use super::noted::Noted;
use super::page::KINDS;
use crate::runtime::sim::{Happening, Record, Recording};

/// Groups of the page that are told.
const GROUPS: [&str; 3] = ["run", "node", "fault"];

/// Whom one thing happened to at once: more are counted.
const SUBJECTS_MAX: usize = 6;

/// The lines, in the order of virtual time; what happened to several at once is one line. Faults that a rate asked for come by
/// the hundred: they are counted, in lines behind all others.
pub fn timeline(recording: &Recording) -> Vec<String> {
    let mut lines = Vec::new();
    let mut by_rate: BTreeMap<&str, u64> = BTreeMap::new();
    let told = |record: &&Record| {
        KINDS.iter().any(|kind| kind.number == record.kind && GROUPS.contains(&kind.group))
    };
    let told: Vec<&Record> = recording.records.iter().filter(told).collect();
    let mut wrong_clocks = BTreeSet::new();
    for moment in told.chunk_by(|one, other| one.at == other.at) {
        // In the order in which each first happened.
        let mut things: Vec<(String, Vec<String>)> = Vec::new();
        for record in moment {
            if record.kind == Happening::Injected as u8 {
                *by_rate.entry(text(recording, record)).or_default() += 1;
                continue;
            }
            // In the end every clock is set right.
            if record.kind == Happening::ClockWrong as u8 {
                wrong_clocks.insert(record.node);
            } else if record.kind == Happening::ClockRight as u8
                && !wrong_clocks.contains(&record.node)
            {
                continue;
            }
            let (words, subject) = (words(recording, record), subject(recording, record));
            match things.iter_mut().find(|(known, _)| *known == words) {
                Some((_, subjects)) => {
                    let new = subject.filter(|subject| !subjects.contains(subject));
                    subjects.extend(new);
                }
                None => things.push((words, subject.into_iter().collect())),
            }
        }
        let right = moment.iter().filter(|record| record.kind == Happening::ClockRight as u8);
        right.for_each(|record| {
            wrong_clocks.remove(&record.node);
        });
        let at = moment.first().map_or(0, |record| record.at) as f64 / 1e6;
        let line = |(words, subjects): (String, Vec<String>)| {
            format!("{at:>11.1} ms  {words}{}", whom(&subjects))
        };
        lines.extend(things.into_iter().map(line));
    }
    lines.extend(by_rate.iter().map(|(what, count)| format!("{count:>11} times  {what}")));
    if recording.left_out > 0 {
        lines.push(format!("{} events found no room in the recording", recording.left_out));
    }
    lines
}

fn text<'a>(recording: &'a Recording, record: &Record) -> &'a str {
    recording.texts.get(record.text as usize).map_or("", String::as_str)
}

/// What happened, without whom it happened to.
fn words(recording: &Recording, record: &Record) -> String {
    let kind = KINDS.iter().find(|kind| kind.number == record.kind);
    let (name, text) = (kind.map_or("", |kind| kind.name), text(recording, record));
    let fact = record.facts[0];
    match record.kind {
        kind if kind == Noted::Strike as u8 => format!("{name} {fact}: {text}"),
        kind if kind == Noted::Phase as u8 => format!("{name}: {text}"),
        kind if kind == Noted::Leads as u8 => format!("{name}, term {fact}"),
        kind if kind == Noted::Owns as u8 && fact == 1 => "serves 1 topic".to_owned(),
        kind if kind == Noted::Owns as u8 => format!("serves {fact} topics"),
        _ if text.is_empty() => name.to_owned(),
        _ => format!("{name} ({text})"),
    }
}

/// A node, or two, by name; nobody for what happened to the run.
fn subject(recording: &Recording, record: &Record) -> Option<String> {
    let name = |node: u32| {
        let index = (node as usize).checked_sub(1)?;
        recording.nodes.get(index).map(String::as_str)
    };
    let one = name(record.node)?;
    let kind = KINDS.iter().find(|kind| kind.number == record.kind)?;
    let is_other = kind.facts.first().is_some_and(|fact| ["to", "other"].contains(fact));
    let other = u32::try_from(record.facts[0]).ok().filter(|_| is_other).and_then(name);
    let arrow = if kind.facts.first() == Some(&"to") { "→" } else { "↔" };
    Some(match other {
        Some(other) => format!("{one} {arrow} {other}"),
        None => one.to_owned(),
    })
}

fn whom(subjects: &[String]) -> String {
    let shown = subjects.get(..SUBJECTS_MAX).unwrap_or(subjects);
    let more = subjects.len() - shown.len();
    match (shown.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!(": {}", shown.join(", ")),
        _ => format!(": {}, and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::sim::{Note, Recorder, RecordingLimits};

    #[test]
    fn a_run_is_told_by_the_names_of_its_nodes() {
        let recorder = Recorder::within(RecordingLimits::default());
        let world = |kind: Happening| Note::from(kind);
        recorder.note(|| Note::from(Noted::Phase).text("storm"));
        recorder.note(|| Note::from(Noted::Strike).facts([3, 0, 0]).text("partition"));
        for other in 2..=8 {
            recorder.note(|| world(Happening::Cut).on(1).facts([other, 0, 0]));
        }
        recorder.note(|| world(Happening::Timer).on(1));
        recorder.note(|| world(Happening::Crash).on(2).facts([1, 0, 0]));
        recorder.note(|| world(Happening::ClockWrong).on(2).text("the wall clock drifts"));
        for node in [1, 2, 2] {
            recorder.note(|| world(Happening::ClockRight).on(node).text("the wall clock"));
        }
        recorder.note(|| Note::from(Noted::Leads).on(1).facts([7, 0, 0]));
        for _ in 0..40 {
            recorder.note(|| world(Happening::Injected).on(2).text("a sync failed"));
        }
        let nodes = (1..=8).map(|number| format!("node-{number}")).collect();
        let lines = timeline(&recorder.recording(nodes));
        let told: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
        assert_eq!(
            told,
            [
                "0.0 ms  phase: storm",
                "0.0 ms  strike 3: partition",
                "0.0 ms  link cut: node-1 → node-2, node-1 → node-3, node-1 → node-4, node-1 → node-5, node-1 → node-6, \
                 node-1 → node-7, and 1 more",
                "0.0 ms  process died: node-2",
                "0.0 ms  clock wrong (the wall clock drifts): node-2",
                "0.0 ms  clock right (the wall clock): node-2",
                "0.0 ms  leads the metadata group, term 7: node-1",
                "40 times  a sync failed",
            ]
        );
    }
}
