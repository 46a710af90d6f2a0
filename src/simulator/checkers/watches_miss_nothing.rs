//! A watch tells every change, in order: between two events of one stream there is no change that it left out.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, History};
use crate::simulator::metadata_history::{RegisterAnswer, WatchSight};

/// Holds each stream against the changes that clients were told of.
pub fn watches_miss_nothing(history: &History) -> Finding {
    let mut finding = Finding::default();
    let changes: BTreeSet<(u64, u32)> = history
        .metadata
        .registers
        .iter()
        .filter_map(|call| match call.answer {
            RegisterAnswer::Written(version) | RegisterAnswer::Read(Some((_, version))) => {
                Some((version, call.key))
            }
            _ => None,
        })
        .collect();
    let mut streams: BTreeMap<u32, Vec<WatchSight>> = BTreeMap::new();
    for sight in history.metadata.sights.iter().filter(|sight| !sight.is_first_state) {
        streams.entry(sight.stream).or_default().push(*sight);
    }
    for (stream, sights) in streams {
        let versions: BTreeSet<(u64, u32)> =
            sights.iter().map(|sight| (sight.version, sight.key)).collect();
        for pair in sights.windows(2) {
            finding.compared += 1;
            if pair[0].version >= pair[1].version {
                let detail = format!("stream {stream}: {:?} before {:?}", pair[0], pair[1]);
                finding.broken("P2", "watches_miss_nothing", detail);
            }
        }
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else { continue };
        for change in changes.range(first..=last) {
            finding.compared += 1;
            if !versions.contains(change) {
                let detail = format!(
                    "stream {stream} told changes {} to {} without {} of register {}",
                    first.0, last.0, change.0, change.1
                );
                finding.broken("P4", "watches_miss_nothing", detail);
            }
        }
    }
    finding
}
