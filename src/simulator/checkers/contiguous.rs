//! P4: a subscription that only acknowledges cumulatively gets everything in order, without gaps, from where
//! it was put.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History};
use crate::simulator::history::{Place, Rewind};

/// In each session of the rewinding subscription: what comes rises, no committed message between two is
/// left out, and after a seek the first is the one asked for, or the next one kept.
pub fn contiguous(history: &History) -> Finding {
    let mut finding = Finding::default();
    let mut committed: BTreeMap<&str, BTreeSet<Place>> = BTreeMap::new();
    for (_, record, place) in history.committed() {
        committed.entry(&record.topic).or_default().insert(place);
    }
    let mut sessions: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
    for delivery in &history.deliveries {
        sessions.entry(delivery.session).or_default().push(delivery.position);
    }
    let none = BTreeSet::new();
    for rewind in &history.rewinds {
        let Some(places) = sessions.get(&rewind.session) else { continue };
        let (topic, session) = (&rewind.topic, rewind.session);
        let committed = committed.get(topic.as_str()).unwrap_or(&none);
        let mut broken = |detail: String| finding.broken("P4", "contiguous", detail);
        for pair in places.windows(2) {
            if pair[0] >= pair[1] {
                broken(format!("{topic}, session {session}: {} came after {}", pair[1], pair[0]));
            } else if let Some(missed) = committed.range(pair[0]..pair[1]).nth(1).or_else(|| {
                // What was delivered but never confirmed to its producer is not in the set itself.
                committed.range(pair[0]..pair[1]).next().filter(|place| **place != pair[0])
            }) {
                broken(format!(
                    "{topic}, session {session}: {missed} was left out between {} and {}",
                    pair[0], pair[1]
                ));
            }
        }
        if let (Some(first), Some(sought)) = (places.first(), rewind.sought) {
            // Where consumed ledgers go, what was kept when the log was read may be gone at a later seek.
            let kept = match history.final_log.get(topic) {
                Some(log) if !history.trimmed.contains(topic) => log.as_slice(),
                _ => &[],
            };
            let wanted = kept.iter().map(|(place, _)| *place).find(|place| match sought {
                Rewind::Earliest => true,
                Rewind::To(position) => place.position >= position,
            });
            let too_early = matches!(sought, Rewind::To(to) if first.position < to);
            if too_early || wanted.is_some_and(|wanted| *first > wanted) {
                let sought = match sought {
                    Rewind::Earliest => "the earliest".to_owned(),
                    Rewind::To(position) => position.to_string(),
                };
                let wanted = wanted.map_or("nothing".to_owned(), |place| place.to_string());
                broken(format!(
                    "{topic}, session {session}: after a seek to {sought} the first was {first}, kept from \
                     there on is {wanted}"
                ));
            }
        }
        finding.compared += places.len() as u64;
    }
    finding
}
