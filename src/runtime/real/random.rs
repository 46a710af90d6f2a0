//! Entropy of the operating system, expanded: each value is a hash of (process key, stream, index).

use crate::runtime::{RandomSource, mix};

pub(super) struct SystemRandom {
    key: [u64; 2],
}

impl SystemRandom {
    pub(super) fn new() -> Self {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).expect("the operating system gives entropy");
        let (low, high) = bytes.split_at(8);
        let word = |half: &[u8]| half.iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        Self { key: [word(low), word(high)] }
    }
}

impl RandomSource for SystemRandom {
    fn value(&self, label: u64, index: u64) -> u64 {
        mix(mix(self.key[0] ^ label) ^ mix(self.key[1] ^ index))
    }
}
