//! Randomness, forked by label so that a new draw in one place does not disturb any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a runtime must provide: the `index`-th value of the stream called `label`. In simulation a pure
/// function of (seed, node, start number of the node, label, index); in production entropy.
pub trait RandomSource: Send + Sync {
    /// The `index`-th value of stream `label`.
    fn value(&self, label: u64, index: u64) -> u64;
}

/// One stream of random values.
#[derive(Clone)]
pub struct Random {
    source: Arc<dyn RandomSource>,
    label: u64,
    used: Arc<AtomicU64>,
}

impl Random {
    /// The root stream of a runtime.
    pub fn new(source: Arc<dyn RandomSource>) -> Self {
        Self { source, label: 0, used: Arc::new(AtomicU64::new(0)) }
    }

    /// An independent stream. The same label from the same parent gives the same values, so labels must
    /// differ where independence matters; use [`Random::fork_numbered`] for a family.
    pub fn fork(&self, label: &str) -> Self {
        self.fork_numbered(label, 0)
    }

    /// An independent stream of a family, for example one per connection.
    pub fn fork_numbered(&self, label: &str, number: u64) -> Self {
        let mut hash = self.label ^ 0x9e37_79b9_7f4a_7c15;
        for byte in label.bytes() {
            hash = mix(hash ^ u64::from(byte));
        }
        Self {
            source: Arc::clone(&self.source),
            label: mix(hash ^ number),
            used: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The next value.
    pub fn next(&self) -> u64 {
        self.source.value(self.label, self.used.fetch_add(1, Ordering::Relaxed))
    }

    /// A value in `0..bound`. Panics if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The bias of the multiply-shift is below bound / 2^64.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// True with the given probability (0.0 never, 1.0 always).
    pub fn chance(&self, probability: f64) -> bool {
        // 53 bits: every value is exact in an f64.
        ((self.next() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }
}

/// Finalizer of splitmix64 (Steele, Lea, Flood, 2014): a bijection that spreads every bit.
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
