//! P2, P7: the log holds nothing that nobody sent to this topic, and no damaged bytes.

use super::{Finding, History, told};

/// Every message in the final log and every delivery is one that was sent to that topic.
pub fn no_phantom(history: &History) -> Finding {
    let mut finding = Finding::default();
    let stored = history.final_log.iter().flat_map(|(topic, log)| {
        log.iter().map(move |(position, number)| (topic.as_str(), *position, *number))
    });
    let delivered = history
        .deliveries
        .iter()
        .map(|delivery| (delivery.topic.as_str(), delivery.position, delivery.number));
    for (topic, position, number) in stored.chain(delivered) {
        finding.compared += 1;
        let sent = number.and_then(|number| history.publishes.get(&number));
        if sent.is_none_or(|record| record.topic != topic) {
            finding.broken(
                "P7",
                "no_phantom",
                format!("{topic} has at {position} {}, which was not sent to it", told(number)),
            );
        }
    }
    finding
}
