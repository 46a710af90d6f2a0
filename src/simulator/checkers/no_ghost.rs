//! A rejection is a promise too: what was refused is not stored.

use std::collections::BTreeSet;

use super::{Finding, History};
use crate::simulator::history::PublishFate;

/// No rejected message lies in the final log, and none that was stored once lies there twice (the
/// workloads send each message once).
pub fn no_ghost(history: &History) -> Finding {
    let mut finding = Finding::default();
    for (topic, log) in &history.final_log {
        let mut seen = BTreeSet::new();
        for (place, number) in log {
            let Some(number) = number else { continue };
            finding.compared += 1;
            let fate = history.publishes.get(number).map(|record| record.fate);
            if fate == Some(PublishFate::Rejected) {
                finding.broken(
                    "P1",
                    "no_ghost",
                    format!("{topic}: message {} was rejected and lies at {place}", number.0),
                );
            }
            if !seen.insert(*number) {
                finding.broken(
                    "P2",
                    "no_ghost",
                    format!(
                        "{topic}: message {} was sent once and lies again at {place}",
                        number.0
                    ),
                );
            }
        }
    }
    finding
}
