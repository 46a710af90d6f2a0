//! Whatever a power loss leaves: from every state within a bound a start keeps what was promised. The whole
//! bound is explored by `seawall sim crash-states`.

mod bookie;
mod group;
mod single_node;

use seawall::simulator::crash_states::{CrashOptions, SubjectName, explore};

/// Explores a subject as far as fits into a test run.
fn holds(subject: SubjectName) {
    let tally = explore(subject, &CrashOptions::quick());
    let total = tally.total();
    println!("{}: {:?}, all: {total:?}", subject.as_str(), tally.kinds);
    if let Some(complaint) = tally.complaint() {
        panic!("{complaint}");
    }
}
