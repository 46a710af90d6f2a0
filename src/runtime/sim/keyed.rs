//! Randomness that is a pure function of what it is for.

use crate::runtime::RandomSource;
pub(super) use crate::runtime::mix;

/// Folds the parts of a key into one well-spread value.
pub(super) fn keyed(parts: &[u64]) -> u64 {
    parts.iter().fold(0x5ea_3a11, |hash, part| mix(hash ^ *part))
}

/// A value in `0..bound`; 0 for a bound of 0.
pub(super) fn below(value: u64, bound: u64) -> u64 {
    ((u128::from(value) * u128::from(bound)) >> 64) as u64
}

/// A value in `0.0..1.0`.
pub(super) fn unit(value: u64) -> f64 {
    (value >> 11) as f64 / (1_u64 << 53) as f64
}

/// `minimum` plus an exponential tail with mean `tail`, in nanoseconds; the tail is cut at 20 means.
pub(super) fn with_tail(value: u64, minimum: u64, tail: u64) -> u64 {
    if tail == 0 {
        return minimum;
    }
    let drawn = -(1.0 - unit(value)).ln() * tail as f64;
    minimum + drawn.min(20.0 * tail as f64) as u64
}

/// The randomness of one start of one node.
pub(super) struct KeyedRandom {
    pub(super) seed: u64,
    pub(super) node: u64,
    pub(super) start: u64,
}

impl RandomSource for KeyedRandom {
    fn value(&self, label: u64, index: u64) -> u64 {
        keyed(&[self.seed, self.node, self.start, label, index])
    }
}
