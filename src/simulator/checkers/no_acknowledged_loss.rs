//! P1: a receipt is a promise. Every committed message is in the log, at the position of its receipt.

use std::collections::BTreeMap;

use super::{Finding, History};

/// Every committed message is in the final log at the position it was acknowledged with.
pub fn no_acknowledged_loss(history: &History) -> Finding {
    let mut finding = Finding::default();
    let logs: BTreeMap<&str, BTreeMap<_, _>> = history
        .final_log
        .iter()
        .map(|(topic, log)| (topic.as_str(), log.iter().copied().collect()))
        .collect();
    for (number, record, position) in history.committed() {
        finding.compared += 1;
        let found = logs.get(record.topic.as_str()).and_then(|log| log.get(&position));
        if found != Some(&Some(number)) {
            finding.broken(
                "P1",
                "no_acknowledged_loss",
                format!(
                    "message {} of {} was acknowledged at {position}; there the log has {found:?}",
                    number.0, record.topic
                ),
            );
        }
    }
    finding
}
