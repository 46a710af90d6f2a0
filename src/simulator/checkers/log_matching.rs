//! Consensus: index and term name an entry; no two logs differ there.

use std::collections::BTreeMap;

use super::{Finding, History};
use crate::simulator::metadata_history::ConsensusFact;

/// Every two entries seen with one index and one term are the same entry.
pub fn log_matching(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut seen: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for fact in &history.metadata.consensus {
        let (member, places) = match fact {
            ConsensusFact::Leads { member, log, .. } => (*member, log.as_slice()),
            ConsensusFact::Applied { member, place, .. } => (*member, std::slice::from_ref(place)),
            ConsensusFact::Installed { .. } => continue,
        };
        for place in places {
            let name = (place.index, place.term);
            let (other, digest) = *seen.entry(name).or_insert((member, place.digest));
            finding.compared += u64::from(other != member);
            if digest != place.digest {
                let detail = format!(
                    "members {other} and {member} hold different entries {} of term {}",
                    place.index, place.term
                );
                finding.broken("P2", "log_matching", detail);
            }
        }
    }
    finding
}
