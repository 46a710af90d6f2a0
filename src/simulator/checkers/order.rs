//! P2: one order. Positions rise, and a producer's messages lie in the order it sent them.

use std::collections::BTreeMap;

use super::{Finding, History, told};

/// In each final log positions rise strictly and the first copies of each producer's messages are in
/// sending order. (Without deduplication a message re-sent after an unknown outcome may lie twice.)
pub fn order(history: &History) -> Finding {
    let mut finding = Finding::default();
    for (topic, log) in &history.final_log {
        let mut highest = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for pair in log.windows(2) {
            finding.compared += 1;
            if let [(before, _), (after, _)] = pair
                && after <= before
            {
                finding.broken("P2", "order", format!("{topic}: {after} follows {before}"));
            }
        }
        for (position, number) in log {
            let Some(number) = number else { continue };
            if !seen.insert(*number) {
                continue;
            }
            let Some(record) = history.publishes.get(number) else { continue };
            finding.compared += 1;
            let previous = highest.insert(record.producer, *number);
            if previous.is_some_and(|previous| previous > *number) {
                finding.broken(
                    "P2",
                    "order",
                    format!(
                        "{topic}: producer {} sent {} before {}, but it lies after it, at {position}",
                        record.producer, told(Some(*number)), told(previous)
                    ),
                );
            }
        }
    }
    finding
}
