//! With three copies of which two are enough, everything goes on while any one bookie is away, and what it missed does
//! not make it lie later.

use crate::story::story;

#[test]
fn publishing_goes_on_without_one_bookie() {
    let mut story = story!(P1, P6).lost_after(5).publishes_at_once(5);
    for bookie in ["bookie-0", "bookie-1", "bookie-2"] {
        story = story.kill(bookie).publishes_at_once(5).pass(31).start(bookie).all_serve();
    }
    story.tell();
}

/// A new broker has no tail cache: every entry is read from bookies.
#[test]
fn rotten_entry_logs_of_one_bookie_are_never_served() {
    story!(P7, I4)
        .publishes(80)
        .pass(15)
        .rot("bookie-1", "entries", 20)
        .restart("owner")
        .all_serve()
        .tell();
}

#[test]
fn a_broken_index_is_made_again() {
    story!(P1, I10).standalone().publishes(60).pass(15).lose_index("node-0").all_serve().tell();
}
