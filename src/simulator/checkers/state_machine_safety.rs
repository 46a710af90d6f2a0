//! Consensus: what one member applied at an index, every member applies there, in every life of it.

use std::collections::BTreeMap;

use super::{Finding, History};
use crate::simulator::metadata_history::{ConsensusFact, LogPlace};

/// One entry for each index, whoever applies it, and nobody leaves one out.
pub fn state_machine_safety(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut applied: BTreeMap<u64, (u64, LogPlace)> = BTreeMap::new();
    for fact in &history.metadata.consensus {
        let ConsensusFact::Applied { member, place, .. } = fact else { continue };
        let (other, first) = *applied.entry(place.index).or_insert((*member, *place));
        finding.compared += u64::from(other != *member);
        if first != *place {
            let detail = format!(
                "at index {} member {other} applied an entry of term {}, member {member} another, of \
                 term {}",
                place.index, first.term, place.term
            );
            finding.broken("P2", "state_machine_safety", detail);
        }
    }
    finding
}
