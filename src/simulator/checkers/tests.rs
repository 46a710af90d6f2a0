//! Each checker is shown a history it must refuse.

use super::*;
use crate::domain::{EntryId, LedgerId, Position};
use crate::simulator::history::{
    AckRecord, DeliveryRecord, MessageNumber, Place, PublishFate, Rewind, RewindRecord,
};

const TOPIC: &str = "t";

fn at(entry: i64) -> Place {
    Place { position: Position::new(LedgerId(1), EntryId(entry)), batch_index: -1 }
}

/// Three messages of one producer, committed, stored, delivered to `s` and acknowledged.
fn good() -> History {
    let mut history = History::default();
    for entry in 0..3 {
        let number = history.sent(TOPIC, 1, 0);
        history.sent_to(number, "one:6650".to_owned());
        history.told(number, PublishFate::Committed(at(entry)));
        history.final_log.entry(TOPIC.into()).or_default().push((at(entry), Some(number)));
        history.deliveries.push(DeliveryRecord {
            topic: TOPIC.into(),
            subscription: "shared".into(),
            session: 1,
            number: Some(number),
            position: at(entry),
            at: 10,
        });
        history.acks.push(AckRecord {
            topic: TOPIC.into(),
            subscription: "shared".into(),
            position: at(entry),
            receipt_at: Some(20),
        });
        rewound(&mut history, 2, entry);
    }
    let sought = Some(Rewind::To(at(0).position));
    history.rewinds.push(RewindRecord { topic: TOPIC.into(), session: 2, sought });
    history.properties_seen = 1;
    // The Exclusive subscription acknowledged all but the last message, which is left.
    history.cumulative_acks.insert(TOPIC.into(), at(1));
    history.last_sessions.insert((TOPIC.into(), "exclusive".into()), 8);
    history.deliveries.push(DeliveryRecord {
        topic: TOPIC.into(),
        subscription: "the rest".into(),
        session: 8,
        number: Some(MessageNumber(3)),
        position: at(2),
        at: 30,
    });
    let ledger = ListedLedger { id: 1, entries: 3, closed: true, epoch: 1 };
    let chain = FinalChain { epoch: 1, ledgers: vec![ledger] };
    history.final_chains.insert(TOPIC.into(), chain);
    history
}

/// The rewinding subscription got the message that is its entry's number plus one.
fn rewound(history: &mut History, session: u32, entry: i64) {
    history.deliveries.push(DeliveryRecord {
        topic: TOPIC.into(),
        subscription: "rewinder".into(),
        session,
        number: Some(MessageNumber(entry as u64 + 1)),
        position: at(entry),
        at: 15,
    });
}

fn broken(history: &History) -> Vec<&'static str> {
    HISTORY_CHECKERS
        .iter()
        .filter(|(_, check)| !check(history).violations.is_empty())
        .map(|(name, _)| *name)
        .collect()
}

#[test]
fn a_good_history_passes_and_every_checker_compares() {
    let history = good();
    assert_eq!(broken(&history), Vec::<&str>::new());
    for (name, check) in HISTORY_CHECKERS {
        assert!(check(&history).compared > 0, "{name} compared nothing");
    }
}

#[test]
fn a_lost_message_is_seen() {
    let mut history = good();
    history.final_log.get_mut(TOPIC).unwrap().pop();
    assert_eq!(broken(&history), ["no_acknowledged_loss"]);
}

#[test]
fn a_reordered_log_is_seen() {
    let mut history = good();
    let log = history.final_log.get_mut(TOPIC).unwrap();
    let (first, second) = (log[0].1, log[1].1);
    log[0].1 = second;
    log[1].1 = first;
    assert!(broken(&history).contains(&"order"));
    assert!(broken(&history).contains(&"stable_positions"));
}

#[test]
fn a_phantom_is_seen() {
    let mut history = good();
    history.final_log.get_mut(TOPIC).unwrap().push((at(3), Some(MessageNumber(99))));
    assert!(broken(&history).contains(&"no_phantom"));
    history.final_log.get_mut(TOPIC).unwrap().last_mut().unwrap().1 = None;
    assert!(broken(&history).contains(&"no_phantom"));
}

#[test]
fn a_missed_delivery_is_seen() {
    let mut history = good();
    let shared = history.deliveries.iter().rposition(|one| one.subscription == "shared");
    history.deliveries.remove(shared.unwrap());
    assert_eq!(broken(&history), ["subscription_misses_nothing"]);
}

#[test]
fn a_repeat_after_a_durable_acknowledgement_is_seen() {
    let mut history = good();
    let again = DeliveryRecord { session: 9, at: 30, ..history.deliveries[0].clone() };
    history.deliveries.push(again);
    assert_eq!(broken(&history), ["subscription_repeats_nothing"]);
}

#[test]
fn a_delivery_on_its_way_is_no_repeat_and_a_late_one_is() {
    let mut history = good();
    history.sessions_asked.insert(9, 15);
    let crossed = DeliveryRecord { session: 9, at: 30, ..history.deliveries[0].clone() };
    history.deliveries.push(crossed);
    assert_eq!(broken(&history), [""; 0]);
    history.deliveries.last_mut().unwrap().at = 20_000_000_000;
    assert_eq!(broken(&history), ["subscription_repeats_nothing"]);
}

#[test]
fn a_ghost_is_seen() {
    let mut history = good();
    let number = *history.publishes.keys().next().unwrap();
    history.told(number, PublishFate::Rejected);
    assert_eq!(broken(&history), ["no_ghost"]);
    let mut history = good();
    // A last session would have got it too: this is about the log alone.
    history.last_sessions.clear();
    let number = *history.publishes.keys().next().unwrap();
    let log = history.final_log.get_mut(TOPIC).unwrap();
    log.push((at(3), Some(number)));
    let twice = log[3];
    history.deliveries.push(DeliveryRecord {
        position: twice.0,
        number: twice.1,
        ..history.deliveries[0].clone()
    });
    assert_eq!(broken(&history), ["no_ghost"]);
}

#[test]
fn a_gap_after_a_rewind_is_seen() {
    let mut history = good();
    history.rewinds.push(RewindRecord { topic: TOPIC.into(), session: 3, sought: None });
    rewound(&mut history, 3, 0);
    rewound(&mut history, 3, 2);
    assert_eq!(broken(&history), ["contiguous"]);
}

#[test]
fn a_seek_that_lands_too_late_is_seen() {
    let mut history = good();
    let sought = Some(Rewind::Earliest);
    history.rewinds.push(RewindRecord { topic: TOPIC.into(), session: 3, sought });
    rewound(&mut history, 3, 1);
    assert_eq!(broken(&history), ["contiguous"]);
}

#[test]
fn what_is_deleted_must_have_been_delivered() {
    let mut history = good();
    history.trimmed.insert(TOPIC.into());
    history.final_log.get_mut(TOPIC).unwrap().remove(0);
    assert_eq!(broken(&history), ["no_acknowledged_loss"], "the exclusive one never got it");
}

#[test]
fn broken_protocol_and_lost_properties_are_seen() {
    let mut history = good();
    history.protocol_violations.push("receipts out of order".to_owned());
    history.properties_lost.push("t/s".to_owned());
    assert_eq!(broken(&history), ["protocol", "subscription_properties"]);
}

#[test]
fn two_writers_of_one_epoch_are_seen() {
    let mut history = good();
    history.sent_to(MessageNumber(2), "two:6650".to_owned());
    assert_eq!(broken(&history), ["single_writer"]);
}

#[test]
fn a_receipt_beyond_the_end_that_was_found_is_seen() {
    let mut history = good();
    history.final_chains.get_mut(TOPIC).unwrap().ledgers[0].entries = 2;
    assert_eq!(broken(&history), ["single_writer"]);
}

#[test]
fn an_epoch_that_falls_is_seen() {
    let mut history = good();
    let chain = history.final_chains.get_mut(TOPIC).unwrap();
    chain.ledgers[0].epoch = 2;
    chain.ledgers.push(ListedLedger { id: 4, entries: 0, closed: false, epoch: 1 });
    chain.epoch = 2;
    assert_eq!(broken(&history), ["single_writer"]);
}

#[test]
fn what_is_forgotten_without_an_acknowledgement_is_seen() {
    let mut history = good();
    history.acks.remove(1);
    history.last_sessions.insert((TOPIC.into(), "shared".into()), 9);
    assert_eq!(broken(&history), ["unacknowledged_comes_again"]);
}
