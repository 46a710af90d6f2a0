//! What a broker carries, and who gets a bundle that nobody owns.

use serde::{Deserialize, Serialize};

use super::bundle::{Bundle, crc32};
use super::record::{BrokerInstance, BrokerRecord};
use crate::runtime::mix;

/// Loads closer to each other than this count as equal, so that a cluster at rest is filled evenly and
/// small changes move nothing.
const SCORE_STEP: u64 = 100;

/// What a broker carries, as it last told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Topics loaded.
    pub topics: u64,
    /// Open client connections.
    pub connections: u64,
    /// Messages a second, published and delivered.
    pub messages_per_second: u64,
    /// Bytes a second, published and delivered.
    pub bytes_per_second: u64,
}

impl LoadFigures {
    /// One number to compare brokers by. A topic costs as much as a message a second, a connection as two,
    /// a megabyte a second as a hundred messages.
    pub const fn score(&self) -> u64 {
        self.topics
            .saturating_add(self.connections.saturating_mul(2))
            .saturating_add(self.messages_per_second)
            .saturating_add(self.bytes_per_second / 10_000)
    }

    /// Whether both are apart by more than a tenth and more than what is compared.
    pub(super) const fn differs_from(&self, other: &Self) -> bool {
        let apart = self.score().abs_diff(other.score());
        apart > SCORE_STEP / 2 && apart > other.score() / 10
    }

    /// The sum of both.
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            topics: self.topics.saturating_add(other.topics),
            connections: self.connections.saturating_add(other.connections),
            messages_per_second: self.messages_per_second.saturating_add(other.messages_per_second),
            bytes_per_second: self.bytes_per_second.saturating_add(other.bytes_per_second),
        }
    }
}

/// The broker that should take a bundle nobody owns: the least loaded; among equals the one with the highest
/// hash of bundle and broker, so that all brokers choose alike and bundles spread.
pub fn choose(
    brokers: &[(BrokerInstance, BrokerRecord)],
    bundle: &Bundle,
) -> Option<BrokerInstance> {
    let able = brokers.iter().filter(|(_, record)| !record.leaving);
    let name = crc32(bundle.to_string().as_bytes());
    let rank = |instance: BrokerInstance, record: &BrokerRecord| {
        // A checksum alone is linear: the same instance would win for bundles that are alike.
        let hash = mix(u64::from(name) << 32 ^ mix(instance.0));
        (record.load.score() / SCORE_STEP, std::cmp::Reverse(hash), instance)
    };
    able.min_by_key(|(instance, record)| rank(*instance, record)).map(|(instance, _)| *instance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::BrokerAddresses;
    use crate::domain::NamespaceName;

    fn broker(instance: u64, topics: u64, leaving: bool) -> (BrokerInstance, BrokerRecord) {
        let load = LoadFigures { topics, ..LoadFigures::default() };
        let addresses =
            BrokerAddresses { pulsar: String::new(), http: String::new(), grpc: String::new() };
        let record = BrokerRecord::new(&addresses, leaving, load);
        (BrokerInstance(instance), record)
    }

    #[test]
    fn the_least_loaded_is_chosen_and_equals_share() {
        let namespace = NamespaceName::parse("public/default").unwrap();
        let bundles = Bundle::all(&namespace, 64);
        let brokers = [broker(1, 5000, false), broker(2, 10, false), broker(3, 0, true)];
        assert!(bundles.iter().all(|bundle| choose(&brokers, bundle) == Some(BrokerInstance(2))));
        let brokers = [broker(1, 3, false), broker(2, 10, false), broker(3, 0, false)];
        let mut counts = [0; 3];
        for bundle in &bundles {
            let chosen = choose(&brokers, bundle).unwrap();
            counts[chosen.0 as usize - 1] += 1;
            let mut turned = brokers.to_vec();
            turned.reverse();
            assert_eq!(choose(&turned, bundle), Some(chosen), "the order given does not matter");
        }
        assert!(counts.iter().all(|count| *count >= 10), "{counts:?}");
        assert_eq!(choose(&[broker(3, 0, true)], &bundles[0]), None);
    }
}
