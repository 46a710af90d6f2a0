//! A pure draw of what a seed means: the n-th question about a seed has the same answer for ever, whatever
//! is asked in between, since each question is named.

use crate::runtime::mix;

/// Answers questions about one seed.
pub(super) struct Draw {
    seed: u64,
}

impl Draw {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn value(&self, question: &str) -> u64 {
        question.bytes().fold(mix(self.seed), |hash, byte| mix(hash ^ u64::from(byte)))
    }

    /// Uniform in `low..=high`.
    pub(super) fn between(&self, question: &str, low: u64, high: u64) -> u64 {
        low + self.value(question) % (high - low + 1)
    }

    pub(super) fn chance(&self, question: &str, percent: u64) -> bool {
        self.value(question) % 100 < percent
    }

    pub(super) fn pick<T: Copy>(&self, question: &str, choices: &[T]) -> T {
        choices[(self.value(question) % choices.len() as u64) as usize]
    }
}
