//! Single situations of the dispatch machine; random ones are in `proptests/dispatch_model.rs`.

use super::*;
use crate::broker::SubscriptionType;
use crate::domain::{EntryId, LedgerId, Position};

fn place(entry: i64) -> Position {
    Position::new(LedgerId(5), EntryId(entry))
}

fn machine(kind: SubscriptionType, entries: i64) -> Machine {
    Machine::new(kind, place(0), place(entries - 1), 1000)
}

fn join(machine: &mut Machine, key: u64, priority: i32, permits: u32) -> Vec<Effect> {
    let consumer = ConsumerKey(key);
    let first_unacked = place(0);
    machine.on(Event::Joined { consumer, priority, epoch: None, first_unacked });
    machine.on(Event::Flow { consumer, permits })
}

fn done(id: u64, entries: std::ops::Range<i64>) -> Event {
    let entries = entries.map(|entry| Fact { position: place(entry), remaining: 1 }).collect();
    Event::ReadDone { id: ReadId(id), entries, gone: Vec::new() }
}

/// Who got how many.
fn given(effects: &[Effect]) -> Vec<(u64, usize)> {
    let deliveries = effects.iter().filter_map(|effect| match effect {
        Effect::Deliver { consumer, entries, .. } => Some((consumer.0, entries.len())),
        _ => None,
    });
    deliveries.collect()
}

#[test]
fn idleness_is_explained() {
    let mut machine = machine(SubscriptionType::Shared, 0);
    assert_eq!(machine.idle_reason(), IdleReason::NothingToDeliver);
    machine.on(Event::NewData { end: place(9) });
    assert_eq!(machine.idle_reason(), IdleReason::NoConsumer);
    join(&mut machine, 1, 0, 0);
    assert_eq!(machine.idle_reason(), IdleReason::NoPermits);
    machine.on(Event::Flow { consumer: ConsumerKey(1), permits: 5 });
    assert_eq!(machine.idle_reason(), IdleReason::Reading);
    machine.on(Event::Room { consumer: ConsumerKey(1), has_room: false });
    assert_eq!(machine.idle_reason(), IdleReason::NoRoom);
    assert_eq!(machine.pending_read(), None);
    machine.on(Event::Room { consumer: ConsumerKey(1), has_room: true });
    let effects = machine.on(Event::ReadFailed { id: ReadId(1) });
    assert_eq!(effects, [Effect::RetryLater]);
    assert_eq!(machine.idle_reason(), IdleReason::StorageFailed);
}

#[test]
fn priority_first_then_round_robin() {
    let mut machine = machine(SubscriptionType::Shared, 1000);
    join(&mut machine, 1, 1, 100);
    join(&mut machine, 2, 0, 30);
    join(&mut machine, 3, 0, 100);
    let effects = machine.on(done(0, 0..100));
    // Permits of the first level are used up before the second level is served.
    assert_eq!(given(&effects), [(2, 30), (3, 70)]);
    let effects = machine.on(done(1, 100..150));
    assert_eq!(given(&effects), [(1, 20), (3, 30)]);
}

#[test]
fn the_answer_of_a_cancelled_read_counts_for_nothing() {
    let mut machine = machine(SubscriptionType::Exclusive, 100);
    let effects = join(&mut machine, 1, 0, 10);
    assert!(matches!(effects[..], [Effect::Read { id: ReadId(0), .. }]));
    let effects = machine.on(Event::Redeliver {
        consumer: ConsumerKey(1),
        positions: None,
        epoch: Some(3),
        first_unacked: place(0),
    });
    assert!(matches!(
        effects[..],
        [Effect::CancelRead { id: ReadId(0) }, Effect::Read { id: ReadId(1), .. }]
    ));
    assert_eq!(machine.on(done(0, 0..5)), []);
    assert_eq!(machine.pending_read(), Some(ReadId(1)));
    let effects = machine.on(done(1, 0..5));
    assert_eq!(given(&effects), [(1, 5)]);
    assert!(matches!(effects[0], Effect::Deliver { epoch: Some(3), .. }));
}

#[test]
fn an_empty_read_is_not_repeated_before_the_log_grows() {
    let mut machine = Machine::new(SubscriptionType::Shared, place(3), place(2), 10);
    machine.on(Event::NewData { end: Position::new(LedgerId(6), EntryId::NONE) });
    join(&mut machine, 1, 0, 10);
    // The next ledger is open and empty.
    assert_eq!(machine.on(done(0, 0..0)), []);
    assert_eq!(machine.on(Event::Flow { consumer: ConsumerKey(1), permits: 1 }), []);
    let effects = machine.on(Event::NewData { end: Position::new(LedgerId(6), EntryId(0)) });
    assert!(matches!(effects[..], [Effect::Read { .. }]));
}

#[test]
fn entries_that_are_gone_are_not_waited_for() {
    let mut machine = machine(SubscriptionType::Shared, 2);
    join(&mut machine, 1, 0, 10);
    machine.on(done(0, 0..2));
    let consumer = ConsumerKey(1);
    let redeliver =
        Event::Redeliver { consumer, positions: None, epoch: None, first_unacked: place(0) };
    let effects = machine.on(redeliver);
    assert!(matches!(&effects[..], [Effect::ReadReplay { positions, .. }] if positions.len() == 2));
    let entries = vec![Fact { position: place(1), remaining: 1 }];
    let effects = machine.on(Event::ReadDone { id: ReadId(1), entries, gone: vec![place(0)] });
    assert_eq!(given(&effects), [(1, 1)]);
    assert_eq!(machine.in_replay(), 0);
}

#[test]
fn a_trickle_alternates() {
    let mut machine = machine(SubscriptionType::Shared, 100);
    join(&mut machine, 1, 0, 50);
    join(&mut machine, 2, 0, 50);
    assert_eq!(given(&machine.on(done(0, 0..1))), [(1, 1)]);
    assert_eq!(given(&machine.on(done(1, 1..2))), [(2, 1)]);
    assert_eq!(given(&machine.on(done(2, 2..5))), [(1, 2), (2, 1)]);
}
