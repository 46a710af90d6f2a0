//! `seawall sim crash-states`: the table of what was started from, and what broke.

use std::time::Instant;

use clap::Args;

use super::program::typed;
use crate::cli::output::{complain, say};
use crate::cli::{FAILED, GOOD, USAGE};
use crate::runtime::sim::CrashBound;
use crate::simulator::crash_states::tally::{REPLAY, Tally};
use crate::simulator::crash_states::{CrashOptions, StateName, SubjectName, explore};

/// What to explore and how far.
#[derive(Debug, Args)]
pub(super) struct CrashStatesOptions {
    /// Explore this alone.
    #[arg(long)]
    subject: Option<SubjectName>,
    /// Unsynced changes whose fate differs from that of all others.
    #[arg(long, default_value_t = 3)]
    deviations: usize,
    /// States of one moment.
    #[arg(long, default_value_t = 2_000)]
    states: u64,
    /// So many states of a moment are started from once more, with a second power loss in the start.
    #[arg(long, default_value_t = 3)]
    again: u64,
    /// Only this state, as a broken promise names it.
    #[arg(long, conflicts_with = "subject")]
    state: Option<StateName>,
}

/// Explores and prints; exit code 1 if a promise broke or nothing was explored, 2 if there is no such state.
pub(super) fn run(options: &CrashStatesOptions) -> u8 {
    let crash_options = CrashOptions {
        bound: CrashBound { deviations: options.deviations, states: options.states },
        again: options.again,
        only: options.state,
        ..CrashOptions::default()
    };
    let only = options.subject.or(options.state.map(|state| state.subject));
    let mut code = GOOD;
    for subject in SubjectName::ALL {
        if only.is_some_and(|only| only != subject) {
            continue;
        }
        let started = Instant::now();
        let tally = explore(subject, &crash_options);
        let total = tally.total();
        if let Some(state) = options.state.filter(|_| is_missing(&tally)) {
            complain(&no_such_state(state));
            return USAGE;
        }
        say(&table(subject, &tally));
        let seconds = started.elapsed().as_secs_f64();
        let rate = (total.states + total.again) as f64 / seconds.max(0.001);
        say(&format!("{seconds:.1} s, {rate:.0} states a second"));
        for broken in &tally.broken {
            let text = broken.to_string();
            let (told, command) = text.rsplit_once(REPLAY).unwrap_or((&text, ""));
            say(&format_args!("{told}{REPLAY}{}", typed(command)));
        }
        let complaint = if options.state.is_some() {
            // One state alone says nothing of the other kinds of file.
            tally.broken.first().map(ToString::to_string).or(tally.failed)
        } else {
            tally.complaint()
        };
        match complaint {
            Some(complaint) => {
                if tally.broken.is_empty() {
                    say(&format!("FAILED {}: {complaint}", subject.as_str()));
                }
                code = FAILED;
            }
            None => {
                say(&format!("PASSED {}", subject.as_str()));
            }
        }
    }
    code
}

/// Nothing was started from, and not because something went wrong.
fn is_missing(tally: &Tally) -> bool {
    let total = tally.total();
    total.states + total.again == 0 && tally.broken.is_empty() && tally.failed.is_none()
}

fn no_such_state(state: StateName) -> String {
    format!(
        "there is no state {state}: a name is of the binary and the --deviations and --states that printed it"
    )
}

/// A number, or that it is beyond counting.
fn number(value: u128) -> String {
    if value < 10_000_000 { value.to_string() } else { format!("{:.1e}", value as f64) }
}

fn table(subject: SubjectName, tally: &Tally) -> String {
    let mut lines = vec![format!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}",
        subject.as_str(),
        "moments",
        "states",
        "equal",
        "again",
        "left out",
        "compared"
    )];
    let total = tally.total();
    for (kind, counted) in
        tally.kinds.iter().map(|(kind, counted)| (*kind, counted)).chain([("all", &total)])
    {
        lines.push(format!(
            "{kind:<22} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}",
            counted.moments,
            counted.states,
            counted.equal,
            counted.again,
            number(counted.left_out),
            counted.compared
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_not_there_is_not_one_that_keeps_its_promises() {
        let only = |text: &str| CrashOptions {
            only: Some(text.parse().unwrap()),
            ..CrashOptions::quick()
        };
        let is_missing =
            |text: &str| super::is_missing(&explore(SubjectName::SingleNode, &only(text)));
        assert!(is_missing("single-node/999999/1") && is_missing("single-node/0/999999"));
        assert!(!is_missing("single-node/0/0"));
    }
}
