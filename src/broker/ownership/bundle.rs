//! Namespace bundles: the topics of a namespace are divided by a hash of their names into ranges, and a
//! range is what a broker owns.
//!
//! The hash is CRC-32 (IEEE 802.3) of the full topic name, `-partition-N` included, as in Pulsar. Ranges are
//! `[lower, upper)`, the last one `[lower, 0xffffffff]`, and are named `0x40000000_0x80000000`.

use crate::domain::{NamespaceName, TopicName};

/// Bundles of one namespace at most; more are refused.
pub const BUNDLES_OF_NAMESPACE_MAX: u32 = 128;

/// The hash that decides a topic's bundle.
pub fn topic_hash(name: &TopicName) -> u32 {
    crc32(name.to_string().as_bytes())
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// One range of one namespace: what a broker owns or does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bundle {
    /// The namespace.
    pub namespace: NamespaceName,
    /// The first hash in it.
    lower: u32,
    /// The first hash after it; `u32::MAX` is itself in the last range.
    upper: u32,
}

impl Bundle {
    /// The bundle of a topic in a namespace of `count` bundles.
    pub fn of(name: &TopicName, count: u32) -> Self {
        let hash = topic_hash(name);
        let bounds = boundaries(count);
        let index = bounds.iter().skip(1).take_while(|bound| **bound <= hash).count();
        // Only the last bound can be equal to a hash without a range after it.
        Self::at(name.namespace(), &bounds, index.min(bounds.len().saturating_sub(2)))
    }

    fn at(namespace: &NamespaceName, bounds: &[u32], index: usize) -> Self {
        let bound = |index: usize| bounds.get(index).copied().unwrap_or(u32::MAX);
        Self { namespace: namespace.clone(), lower: bound(index), upper: bound(index + 1) }
    }

    /// Every bundle of a namespace, in order.
    pub fn all(namespace: &NamespaceName, count: u32) -> Vec<Self> {
        let bounds = boundaries(count);
        (0..bounds.len() - 1).map(|index| Self::at(namespace, &bounds, index)).collect()
    }

    /// The range as Pulsar writes it, `0x00000000_0x40000000`.
    pub fn range(&self) -> String {
        format!("0x{:08x}_0x{:08x}", self.lower, self.upper)
    }

    /// The bundle of a name made by [`Bundle`]'s `Display`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (namespace, range) = text.rsplit_once('/')?;
        let (lower, upper) = range.split_once('_')?;
        let bound = |text: &str| {
            let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 8)?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (lower, upper) = (bound(lower)?, bound(upper)?);
        let namespace = NamespaceName::parse(namespace).ok()?;
        (lower < upper).then_some(Self { namespace, lower, upper })
    }
}

impl std::fmt::Display for Bundle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.range())
    }
}

/// Where `count` equal ranges begin, and the end of the last.
pub fn boundaries(count: u32) -> Vec<u32> {
    let count = count.clamp(1, BUNDLES_OF_NAMESPACE_MAX);
    let step = (1_u64 << 32) / u64::from(count);
    let begins = (0..u64::from(count)).map(|index| u32::try_from(index * step).unwrap_or(u32::MAX));
    begins.chain([u32::MAX]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_as_pulsar_writes_them() {
        assert_eq!(boundaries(4), [0, 0x4000_0000, 0x8000_0000, 0xc000_0000, u32::MAX]);
        let namespace = NamespaceName::parse("t/n").unwrap();
        let names: Vec<_> = Bundle::all(&namespace, 2).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"]);
        for bundle in Bundle::all(&namespace, 128) {
            assert_eq!(Bundle::parse(&bundle.to_string()), Some(bundle));
        }
        for bad in ["t/n/0x1_0x2", "t/n", "0x00000000_0x80000000", "t/n/0x80000000_0x00000000"] {
            assert_eq!(Bundle::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_topic_lies_in_the_bundle_of_its_hash() {
        // The check value of CRC-32 (IEEE): the CRC of "123456789".
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        for count in [1, 3, 4, 7, 128] {
            let mut found = std::collections::BTreeSet::new();
            for number in 0..2000 {
                let name = TopicName::parse(&format!("persistent://a/b/t{number}")).unwrap();
                let bundle = Bundle::of(&name, count);
                let hash = topic_hash(&name);
                assert!(bundle.lower <= hash && (hash < bundle.upper || bundle.upper == u32::MAX));
                assert!(Bundle::all(name.namespace(), count).contains(&bundle));
                found.insert(bundle);
            }
            assert_eq!(found.len(), count as usize, "all ranges are in use");
        }
    }
}
