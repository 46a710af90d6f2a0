//! Protects the list of marks: each scenario comes to the rare branches it is there for.

use seawall::simulator::mark_hunt::missed;
use seawall::simulator::mark_list::Reach;

#[test]
fn scenarios_reach_the_marks_they_have_to() {
    let wrong = missed(|reach| match reach {
        Reach::Scenario(tests) => Some(tests),
        _ => None,
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
