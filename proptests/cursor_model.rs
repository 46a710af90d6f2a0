//! A cursor's state against the plainest model: one set of acknowledged messages.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use seawall::broker::cursor::{CursorState, EntryState};
use seawall::broker::managed_ledger::Chain;
use seawall::broker::{AckRequest, AckTarget, AckType};
use seawall::domain::{EntryId, LedgerId, Position};

/// Messages in each entry.
const BATCH: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    Individual(usize, Option<u64>),
    Cumulative(usize, Option<u64>),
    Reset(usize, Option<u64>),
    Restart(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let set = proptest::option::of(0_u64..1 << BATCH);
    let step = prop_oneof![
        6 => (0_usize..20, set.clone()).prop_map(|(at, set)| Step::Individual(at, set)),
        1 => (0_usize..20, set.clone()).prop_map(|(at, set)| Step::Cumulative(at, set)),
        1 => (0_usize..20, set).prop_map(|(at, set)| Step::Reset(at, set)),
        1 => (0_usize..6).prop_map(Step::Restart),
    ];
    proptest::collection::vec(step, 0..60)
}

fn chain(sizes: &[u64]) -> (Chain, Vec<Position>) {
    let mut chain = Chain::default();
    let mut positions = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        let id = LedgerId(3 * number as u64 + 2);
        chain.push(id, 0, 1);
        chain.update_last(|last| last.entries = *size);
        positions.extend((0..*size as i64).map(|entry| Position::new(id, EntryId(entry))));
    }
    (chain, positions)
}

/// Messages not acknowledged, by entry; without an entry: all acknowledged.
type Open = BTreeMap<Position, u64>;

fn clear(open: &mut Open, position: Position, left: u64) {
    if let Some(bits) = open.get_mut(&position) {
        *bits &= left;
        if *bits == 0 {
            open.remove(&position);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn acknowledged_is_what_was_acknowledged(
        sizes in proptest::collection::vec(0_u64..6, 1..6),
        steps in steps(),
    ) {
        let (chain, positions) = chain(&sizes);
        prop_assume!(!positions.is_empty());
        let all = (1 << BATCH) - 1;
        let mut open: Open = positions.iter().map(|position| (*position, all)).collect();
        let mut state = CursorState::new(chain.previous_position(chain.first_position()));
        let mut written = state.snapshot(usize::MAX).0;
        for step in steps {
            let restarted = matches!(step, Step::Restart(_));
            match step {
                Step::Individual(at, set) => {
                    let position = positions[at % positions.len()];
                    clear(&mut open, position, set.unwrap_or(0));
                    state.acknowledge(&chain, &request(AckType::Individual, position, set));
                }
                Step::Cumulative(at, set) => {
                    let position = positions[at % positions.len()];
                    open = open.split_off(&position);
                    clear(&mut open, position, set.unwrap_or(0));
                    state.acknowledge(&chain, &request(AckType::Cumulative, position, set));
                }
                Step::Reset(at, set) => {
                    let position = positions[at % positions.len()];
                    open = positions.iter().filter(|p| **p >= position).map(|p| (*p, all)).collect();
                    if let Some(set) = set {
                        clear(&mut open, position, set);
                    }
                    state.reset(&chain, position, set.map(|set| vec![set]));
                }
                Step::Restart(max) => {
                    let (stored, whole) = state.snapshot(max);
                    let (restored, beyond) = CursorState::restore(&chain, &stored);
                    prop_assert!(!beyond);
                    prop_assert_eq!(restored.mark_delete(), state.mark_delete());
                    for position in &positions {
                        let (before, after) =
                            (left(&state, *position), left(&restored, *position));
                        // What is acknowledged never grows; it stays the same if all was stored.
                        prop_assert_eq!(before & after, before);
                        prop_assert!(!whole || before == after);
                        if after == 0 {
                            open.remove(position);
                        } else {
                            open.insert(*position, after);
                        }
                    }
                    state = restored;
                }
            }
            // A state and the changes that came to it, as a recovery reads them.
            match state.take_change() {
                Some(change) if !restarted => written.extend(change),
                _ => written = state.snapshot(usize::MAX).0,
            }
            let read = CursorState::restore(&chain, &written).0;
            prop_assert_eq!(read.snapshot(usize::MAX), state.snapshot(usize::MAX));
            for position in &positions {
                let expected = open.get(position).copied().unwrap_or(0);
                prop_assert_eq!(left(&state, *position), expected, "at {}", position);
            }
            prop_assert_eq!(state.backlog(&chain), open.len() as u64);
            let needed: BTreeSet<_> = open.keys().copied().collect();
            prop_assert_eq!(chain.next_entry(state.mark_delete()), needed.first().copied());
        }
    }
}

fn request(ack_type: AckType, position: Position, set: Option<u64>) -> AckRequest {
    let target = AckTarget { position, ack_set: set.map(|set| vec![set]) };
    AckRequest { ack_type, targets: vec![target] }
}

fn left(state: &CursorState, position: Position) -> u64 {
    match state.entry_state(position) {
        EntryState::Acknowledged => 0,
        EntryState::Unacknowledged => (1 << BATCH) - 1,
        EntryState::Partly(set) => set.first().copied().unwrap_or(0),
    }
}
