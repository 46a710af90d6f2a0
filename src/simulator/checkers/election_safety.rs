//! Consensus: each term has at most one leader.

use std::collections::BTreeMap;

use super::{Finding, History};
use crate::simulator::metadata_history::ConsensusFact;

/// Whoever led a term is the only one that did.
pub fn election_safety(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut leaders: BTreeMap<u64, u64> = BTreeMap::new();
    for fact in &history.metadata.consensus {
        let ConsensusFact::Leads { member, term, .. } = fact else { continue };
        finding.compared += 1;
        let leader = *leaders.entry(*term).or_insert(*member);
        if leader != *member {
            let detail = format!("members {leader} and {member} both led term {term}");
            finding.broken("P5", "election_safety", detail);
        }
    }
    finding
}
