//! Scripts: what is appended, what becomes of everything in flight, when a recovery begins.

use std::time::Duration;

use proptest::prelude::*;
use seawall::ledger::Quorum;

/// What becomes of something in flight.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// A request is lost before its effect and its sender gets an error; an answer just arrives.
    Fails,
    /// A request takes effect and the sender gets an error.
    AnswerLost,
    /// It arrives, and again later.
    Repeated,
    /// A request is refused for good by a poisoned bookie.
    Poisoned,
    /// A read is answered with the entries after the one asked for.
    Misplaced,
}

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Append this many entries.
    Append(u8),
    /// Something in flight meets its fate.
    Flight(u16, Fate),
    /// Time passes.
    Pass(u16),
    /// A recoverer begins (again).
    Recover(u8),
    /// A stored copy rots.
    Rot(u8, u8),
}

/// Scripts with everything in them, or for a writer alone.
pub fn steps(with_recovery: bool) -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        8 => Just(Fate::Arrives),
        2 => Just(Fate::Fails),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::Repeated),
        1 => Just(Fate::Poisoned),
        1 => Just(Fate::Misplaced),
    ];
    let rare = u32::from(with_recovery);
    let step = prop_oneof![
        4 => (1_u8..4).prop_map(Step::Append),
        30 => (any::<u16>(), fate).prop_map(|(place, fate)| Step::Flight(place, fate)),
        3 => (1_u16..3000).prop_map(Step::Pass),
        rare => (0_u8..2).prop_map(Step::Recover),
        rare => (any::<u8>(), any::<u8>()).prop_map(|(bookie, entry)| Step::Rot(bookie, entry)),
    ];
    prop::collection::vec(step, 0..250)
}

/// Short scripts about the moment of a takeover: a few adds under way, then a recovery.
pub fn takeovers() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![6 => Just(Fate::Arrives), 2 => Just(Fate::Fails)];
    let flight = (any::<u16>(), fate).prop_map(|(place, fate)| Step::Flight(place, fate));
    let before = prop::collection::vec(flight.clone(), 0..8);
    let after = prop::collection::vec(flight, 0..40);
    (1_u8..3, before, after).prop_map(|(count, before, after)| {
        let mut script = vec![Step::Append(count)];
        script.extend(before);
        script.push(Step::Recover(0));
        script.extend(after);
        script
    })
}

/// Quorums of all shapes.
pub fn quorums() -> impl Strategy<Value = Quorum> {
    (1_u32..=5).prop_flat_map(|ensemble| {
        (1..=ensemble).prop_flat_map(move |write| {
            (1..=write).prop_map(move |ack| Quorum::new(ensemble, write, ack).unwrap())
        })
    })
}

/// Add time-outs: one that strikes within a script and one that never does.
pub fn add_timeouts() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::from_secs(4)), Just(Duration::from_secs(1000))]
}
