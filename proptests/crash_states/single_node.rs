//! The files of a single node's metadata.

use seawall::simulator::crash_states::SubjectName;

#[test]
fn metadata_keeps_its_promises_from_every_state() {
    super::holds(SubjectName::SingleNode);
}
