//! Metadata's history is one line: each change has a revision of its own, later changes have higher ones, and
//! the numbers of a counter never repeat.

use std::collections::BTreeMap;

use super::{Finding, History};
use crate::simulator::metadata_history::{RegisterAnswer, RegisterCall, RegisterQuestion};

/// The revision a call's answer names: of its own change, or of what it read.
fn revision(call: &RegisterCall) -> Option<u64> {
    match call.answer {
        RegisterAnswer::Written(version)
        | RegisterAnswer::Read(Some((_, version)))
        | RegisterAnswer::Mismatch(Some(version)) => Some(version),
        _ => None,
    }
}

/// Revisions name one value each, and a change asked for after an answer has a higher revision than that answer.
/// The same for numbers.
pub fn revisions(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut values: BTreeMap<u64, u64> = BTreeMap::new();
    for call in &history.metadata.registers {
        let named = match (call.question, call.answer) {
            (RegisterQuestion::Write { value, .. }, RegisterAnswer::Written(version)) => {
                Some((version, value))
            }
            (_, RegisterAnswer::Read(Some((value, version)))) => Some((version, value)),
            _ => None,
        };
        let Some((version, value)) = named else { continue };
        finding.compared += 1;
        let first = *values.entry(version).or_insert(value);
        if first != value {
            let detail = format!("revision {version} is told to hold both {first} and {value}");
            finding.broken("P2", "revisions", detail);
        }
    }
    let answers = history.metadata.registers.iter();
    let answers = answers.filter_map(|call| Some((call.answered_at, revision(call)?))).collect();
    let changes = history.metadata.registers.iter().filter_map(|call| match call.answer {
        RegisterAnswer::Written(version) => Some((call.asked_at, version)),
        _ => None,
    });
    rises(answers, changes.collect(), "revision", &mut finding);
    let numbers = &history.metadata.numbers;
    let answers = numbers.iter().map(|call| (call.answered_at, call.number)).collect();
    let drawn = numbers.iter().map(|call| (call.asked_at, call.number)).collect();
    rises(answers, drawn, "number", &mut finding);
    let mut drawn: Vec<u64> = numbers.iter().map(|call| call.number).collect();
    drawn.sort_unstable();
    for pair in drawn.windows(2) {
        if pair[0] == pair[1] {
            finding.broken("P2", "revisions", format!("the number {} was drawn twice", pair[0]));
        }
    }
    finding
}

/// What was asked for after an answer is above it.
fn rises(
    mut answers: Vec<(u64, u64)>,
    mut asked: Vec<(u64, u64)>,
    what: &str,
    finding: &mut Finding,
) {
    answers.sort_unstable();
    asked.sort_unstable();
    let mut answers = answers.into_iter().peekable();
    let mut highest = 0;
    for (at, value) in asked {
        while let Some((_, answered)) = answers.next_if(|(answered_at, _)| *answered_at < at) {
            highest = highest.max(answered);
        }
        finding.compared += 1;
        if value <= highest {
            let detail = format!("{what} {value} was given after {highest} had been told");
            finding.broken("P2", "revisions", detail);
        }
    }
}
