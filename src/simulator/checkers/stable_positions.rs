//! P2: a message id is never reused. Whoever read a position, whenever, read the same message.

use std::collections::BTreeMap;

use super::{Finding, History, told};

/// All deliveries, receipts and the final log agree on what each position holds.
pub fn stable_positions(history: &History) -> Finding {
    let mut finding = Finding::default();
    // Positions before topics here and elsewhere: they differ sooner, so that a look-up compares less.
    let mut known = BTreeMap::new();
    let receipts = history
        .committed()
        .map(|(number, record, position)| (record.topic.as_str(), position, Some(number)));
    let deliveries = history
        .deliveries
        .iter()
        .map(|delivery| (delivery.topic.as_str(), delivery.position, delivery.number));
    let stored = history.final_log.iter().flat_map(|(topic, log)| {
        log.iter().map(move |(position, number)| (topic.as_str(), *position, *number))
    });
    for (topic, position, number) in receipts.chain(deliveries).chain(stored) {
        match known.insert((position, topic), number) {
            None => {}
            Some(before) => {
                finding.compared += 1;
                if before != number {
                    finding.broken(
                        "P2",
                        "stable_positions",
                        format!("{topic}: {position} was {} and is {}", told(before), told(number)),
                    );
                }
            }
        }
    }
    finding
}
