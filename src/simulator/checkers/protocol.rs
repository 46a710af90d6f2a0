//! P4, P8: the broker keeps to the protocol: receipts in order, nothing without a permit, no receipt for
//! damaged bytes; and what was stored with a subscription stays with it.

use super::{Finding, History};

/// No client saw the broker break the protocol.
pub fn protocol(history: &History) -> Finding {
    let answers = history.committed().count() + history.deliveries.len();
    let mut finding = Finding { compared: answers as u64, violations: Vec::new() };
    for words in &history.protocol_violations {
        finding.broken("P4", "protocol", words.clone());
    }
    finding
}

/// Every subscription still has the properties it was created with.
pub fn subscription_properties(history: &History) -> Finding {
    let mut finding = Finding { compared: history.properties_seen, violations: Vec::new() };
    for subscription in &history.properties_lost {
        finding.broken("P4", "subscription_properties", format!("{subscription} has lost them"));
    }
    finding
}
