//! A rate limit without a clock of its own.

use std::time::Duration;

use crate::domain::Instant;

/// Lets work through at a rate of bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    bytes_per_second: u64,
    free_at: Instant,
}

impl Pacer {
    /// A pacer at this rate; 0 means no limit.
    pub const fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second, free_at: Instant(0) }
    }

    /// Counts work done.
    pub fn spend(&mut self, bytes: usize, now: Instant) {
        if self.bytes_per_second == 0 {
            return;
        }
        let micros = (bytes as u64).saturating_mul(1_000_000) / self.bytes_per_second;
        self.free_at = self.free_at.max(now) + Duration::from_micros(micros);
    }

    /// When more may be done.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }
}
