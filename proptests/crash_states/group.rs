//! The files of the members of a metadata group.

use seawall::simulator::crash_states::SubjectName;

#[test]
fn members_keep_their_promises_from_every_state() {
    super::holds(SubjectName::Group);
}
