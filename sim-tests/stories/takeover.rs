//! A broker is held up between reading a topic's record and claiming it: it claims a record that is old, and must not undo
//! what another one listed meanwhile.

use crate::story::story;

/// The late one has read the record, and cannot fence the last ledger since it reaches no bookie. There it stands still
/// until the first is back, has the topic and has gone on. Whoever opens the topic in the end knows nothing but the
/// record.
#[test]
fn a_claim_of_an_old_record_is_lost() {
    story!(P1, P5, I9, I11)
        .brokers(2)
        .entries_a_ledger(10)
        .publishes(5)
        .call("first", "owner")
        .call("late", "other broker")
        .kill("first")
        .pass(6)
        .cut("late", "bookies")
        .begins_to_serve("late")
        .pass(1)
        .pause("late")
        .heal_all_links()
        .start("first")
        .pass(6)
        .clients_ask_only("first")
        .publishes(20)
        .resume("late")
        .pass(3)
        .restart(["first", "late"])
        .all_serve()
        .clients_ask_all()
        .tell();
}
