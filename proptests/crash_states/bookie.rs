//! A bookie's files.

use seawall::simulator::crash_states::SubjectName;

#[test]
fn a_bookie_keeps_its_promises_from_every_state() {
    super::holds(SubjectName::Bookie);
}

#[test]
fn a_bookie_with_several_journals_keeps_its_promises_from_every_state() {
    super::holds(SubjectName::Journals);
}
