//! Metadata is linearizable: each call on a register seems to happen at one moment between its question and
//! its answer. Registers are independent, so each is searched alone (Wing and Gong's search, 1993, with Lowe's
//! memory of places seen, 2017). A call without an answer may happen at any time after its question, or
//! never.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History};
use crate::simulator::metadata_history::{
    RegisterAnswer, RegisterCall, RegisterExpect, RegisterQuestion,
};

/// Steps of one search; a history that needs more is not judged.
const STEPS_MAX: usize = 300_000;

/// What is in a register: values are unique, so a value stands for its version.
type State = Option<u64>;

/// Whether an order was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    /// At most so many calls fit.
    No(usize),
    GaveUp,
}

/// Every register's calls have an order.
pub fn linearizable_registers(history: &History) -> Finding {
    let mut finding = Finding::default();
    let values = values_by_version(&history.metadata.registers);
    let mut registers: BTreeMap<u32, Vec<RegisterCall>> = BTreeMap::new();
    for call in &history.metadata.registers {
        registers.entry(call.key).or_default().push(*call);
    }
    for (key, mut calls) in registers {
        calls.sort_by_key(|call| call.asked_at);
        match search(&calls, &values) {
            Verdict::Yes => finding.compared += calls.len() as u64,
            Verdict::GaveUp => tracing::info!(key, "a register's history is too long to be judged"),
            Verdict::No(fit) => {
                finding.compared += calls.len() as u64;
                let at = calls.get(fit).map(|call| format!("{call:?}")).unwrap_or_default();
                let detail = format!(
                    "register {key}: at most {fit} of {} calls have an order, near {at}",
                    calls.len()
                );
                finding.broken("P2", "linearizable_registers", detail);
            }
        }
    }
    finding
}

/// Which value each version stands for, as far as anyone was told.
fn values_by_version(calls: &[RegisterCall]) -> BTreeMap<u64, u64> {
    let told = |call: &RegisterCall| match (call.question, call.answer) {
        (_, RegisterAnswer::Read(Some((value, version)))) => Some((version, value)),
        (RegisterQuestion::Write { value, .. }, RegisterAnswer::Written(version)) => {
            Some((version, value))
        }
        _ => None,
    };
    calls.iter().filter_map(told).collect()
}

/// What a call makes of the register, `None` if it cannot have happened there.
fn happens(call: &RegisterCall, state: State, values: &BTreeMap<u64, u64>) -> Option<State> {
    let (expect, next) = match (call.question, call.answer) {
        (RegisterQuestion::Read, RegisterAnswer::Read(found)) => {
            return (state == found.map(|(value, _)| value)).then_some(state);
        }
        (RegisterQuestion::Read, _) => return None,
        (RegisterQuestion::Write { value, expect }, _) => (expect, Some(value)),
        (RegisterQuestion::Delete { expect }, _) => (expect, None),
    };
    let holds = match expect {
        RegisterExpect::Any => true,
        RegisterExpect::Absent => state.is_none(),
        RegisterExpect::Version(version) => {
            state.is_some() && state.as_ref() == values.get(&version)
        }
    };
    match call.answer {
        RegisterAnswer::Written(_) | RegisterAnswer::Deleted => holds.then_some(next),
        RegisterAnswer::Mismatch(found) => {
            let found_it = match found {
                None => state.is_none(),
                // Nobody was told what that version holds.
                Some(version) => values.get(&version).is_none_or(|value| state == Some(*value)),
            };
            (!holds && found_it).then_some(state)
        }
        // One that changes nothing might as well never happen.
        RegisterAnswer::Unknown => (holds && next != state).then_some(next),
        RegisterAnswer::Read(_) => None,
    }
}

/// Looks for an order of calls sorted by question.
fn search(calls: &[RegisterCall], values: &BTreeMap<u64, u64>) -> Verdict {
    let mut done = vec![false; calls.len()];
    let mut path: Vec<(usize, State)> = Vec::new();
    let mut seen: BTreeSet<(Vec<u64>, State)> = BTreeSet::new();
    let (mut state, mut from, mut longest) = (None, 0, 0);
    for _ in 0..STEPS_MAX {
        let open = || calls.iter().zip(&done).filter(|(_, done)| !**done);
        let answered = |call: &&RegisterCall| call.answer != RegisterAnswer::Unknown;
        // Whatever was asked after this answer came must wait for the call that got it.
        let Some(limit) =
            open().map(|(call, _)| call).filter(answered).map(|call| call.answered_at).min()
        else {
            return Verdict::Yes;
        };
        let next = (from..calls.len())
            .take_while(|at| calls[*at].asked_at <= limit)
            .filter(|at| !done[*at])
            .find_map(|at| happens(&calls[at], state, values).map(|next| (at, next)));
        let Some((at, next)) = next else {
            let Some((at, before)) = path.pop() else { return Verdict::No(longest) };
            done[at] = false;
            (state, from) = (before, at + 1);
            continue;
        };
        done[at] = true;
        if seen.insert((packed(&done), next)) {
            path.push((at, state));
            longest = longest.max(path.len());
            (state, from) = (next, 0);
        } else {
            done[at] = false;
            from = at + 1;
        }
    }
    Verdict::GaveUp
}

fn packed(done: &[bool]) -> Vec<u64> {
    let pack = |bits: &[bool]| bits.iter().rev().fold(0, |word, bit| (word << 1) | u64::from(*bit));
    done.chunks(64).map(pack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(
        asked_at: u64,
        answered_at: u64,
        question: RegisterQuestion,
        answer: RegisterAnswer,
    ) -> RegisterCall {
        RegisterCall { key: 0, asked_at, answered_at, question, answer }
    }

    fn write(value: u64, expect: RegisterExpect) -> RegisterQuestion {
        RegisterQuestion::Write { value, expect }
    }

    fn judge(calls: &[RegisterCall]) -> bool {
        search(calls, &values_by_version(calls)) == Verdict::Yes
    }

    #[test]
    fn only_histories_with_an_order_pass() {
        use RegisterAnswer::{Mismatch, Read, Unknown, Written};
        use RegisterExpect::{Absent, Any, Version};
        use RegisterQuestion::Read as Ask;
        let first = call(0, 10, write(1, Absent), Written(5));
        let fresh = call(20, 30, Ask, Read(Some((1, 5))));
        assert!(judge(&[first, fresh]));
        assert!(!judge(&[first, call(20, 30, Ask, Read(None))]), "a stale read");
        let second = call(15, 40, write(2, Version(5)), Written(6));
        assert!(judge(&[first, second, fresh]), "they overlap");
        let late = call(50, 60, Ask, Read(Some((1, 5))));
        assert!(!judge(&[first, second, late]), "overwritten before");
        let other = call(16, 41, write(3, Version(5)), Written(7));
        assert!(!judge(&[first, second, other]), "both held the same condition");
        let refused = call(16, 41, write(3, Version(5)), Mismatch(Some(6)));
        assert!(judge(&[first, second, refused]));
        let unknown = call(16, u64::MAX, write(4, Any), Unknown);
        let seen = call(90, 99, Ask, Read(Some((4, 9))));
        assert!(judge(&[first, unknown, fresh, seen]), "it happened late");
        assert!(judge(&[first, unknown, fresh]), "it never happened");
        let gone = call(100, 110, Ask, Read(Some((1, 5))));
        assert!(!judge(&[first, unknown, seen, gone]), "it cannot be undone");
    }
}
