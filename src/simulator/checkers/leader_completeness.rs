//! Consensus: whoever leads a term holds everything that was committed in the terms before it.

use std::collections::BTreeMap;

use super::{Finding, History};
use crate::simulator::metadata_history::ConsensusFact;

/// A member that applies an entry is in the term in which that was committed, or in a later one. So whatever had
/// been applied in a lower term than the one a member begins to lead must be in its log or its snapshot.
pub fn leader_completeness(history: &History) -> Finding {
    let mut finding = Finding::default();
    // By index: the entry's term, and the lowest term in which it was applied.
    let mut committed: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for fact in &history.metadata.consensus {
        match fact {
            ConsensusFact::Applied { in_term, place, .. } => {
                let known = committed.entry(place.index).or_insert((place.term, *in_term));
                known.1 = known.1.min(*in_term);
            }
            ConsensusFact::Leads { member, term, start, log } => {
                let held: BTreeMap<u64, u64> =
                    log.iter().map(|place| (place.index, place.term)).collect();
                for (index, (entry_term, in_term)) in committed.range(start + 1..) {
                    if in_term >= term {
                        continue;
                    }
                    finding.compared += 1;
                    if held.get(index) != Some(entry_term) {
                        let detail = format!(
                            "member {member} leads term {term} without entry {index} of term {entry_term}, \
                             applied in term {in_term}"
                        );
                        finding.broken("P1", "leader_completeness", detail);
                    }
                }
            }
            ConsensusFact::Installed { .. } => {}
        }
    }
    finding
}
