//! P1: a receipt is a promise. Every committed message is in the log, at the position of its receipt.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History};
use crate::simulator::history::DRAINED_SUBSCRIPTIONS;

/// Every committed message is in the final log at the position it was acknowledged with. Where consumed
/// ledgers are deleted, it may be gone if every subscription got it.
pub fn no_acknowledged_loss(history: &History) -> Finding {
    let mut finding = Finding::default();
    let logs: BTreeMap<&str, BTreeMap<_, _>> = history
        .final_log
        .iter()
        .map(|(topic, log)| (topic.as_str(), log.iter().copied().collect()))
        .collect();
    let mut delivered: BTreeSet<(_, &str, &str)> = BTreeSet::new();
    for delivery in &history.deliveries {
        if history.trimmed.contains(&delivery.topic) {
            delivered.insert((delivery.position, &delivery.topic, &delivery.subscription));
        }
    }
    for (number, record, position) in history.committed() {
        finding.compared += 1;
        let topic = record.topic.as_str();
        let found = logs.get(topic).and_then(|log| log.get(&position));
        // Ledgers also go while the log is being read, so that what is gone need not be at its beginning.
        if found.is_none() && history.trimmed.contains(topic) {
            for subscription in DRAINED_SUBSCRIPTIONS {
                if !delivered.contains(&(position, topic, *subscription)) {
                    let detail = format!(
                        "message {} of {topic} at {position} was deleted before {subscription} got it",
                        number.0
                    );
                    finding.broken("P4", "no_acknowledged_loss", detail);
                }
            }
            continue;
        }
        if found != Some(&Some(number)) {
            let there = match found {
                None => "nothing there".to_owned(),
                Some(None) => "bytes there that nobody sent".to_owned(),
                Some(Some(other)) => format!("message {} there", other.0),
            };
            finding.broken(
                "P1",
                "no_acknowledged_loss",
                format!(
                    "message {} of {} was acknowledged at {position}; the log has {there}",
                    number.0, record.topic
                ),
            );
        }
    }
    finding
}
