//! Rates: exponentially weighted over about a minute, true from the first seconds on.

use crate::broker::stats::Flow;
use crate::domain::Instant;

/// Weight of the past falls to 1/e in this time.
const WINDOW_SECONDS: f64 = 60.0;
/// Counts are folded into the average at most this often.
const FOLD_SECONDS: f64 = 1.0;

/// Counts messages and bytes of one direction of one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    started: Instant,
    folded_at: Instant,
    messages: u64,
    bytes: u64,
    folded_messages: u64,
    folded_bytes: u64,
    message_average: f64,
    byte_average: f64,
}

impl Meter {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            started: now,
            folded_at: now,
            messages: 0,
            bytes: 0,
            folded_messages: 0,
            folded_bytes: 0,
            message_average: 0.0,
            byte_average: 0.0,
        }
    }

    pub(super) fn add(&mut self, messages: u64, bytes: u64, now: Instant) {
        self.fold(now);
        self.messages += messages;
        self.bytes += bytes;
    }

    fn fold(&mut self, now: Instant) {
        let seconds = now.since(self.folded_at).as_secs_f64();
        if seconds < FOLD_SECONDS {
            return;
        }
        let keep = (-seconds / WINDOW_SECONDS).exp();
        let rate = |count: u64| count as f64 / seconds;
        self.message_average =
            self.message_average * keep + rate(self.messages - self.folded_messages) * (1.0 - keep);
        self.byte_average =
            self.byte_average * keep + rate(self.bytes - self.folded_bytes) * (1.0 - keep);
        self.folded_messages = self.messages;
        self.folded_bytes = self.bytes;
        self.folded_at = now;
    }

    /// What it measured.
    pub(super) fn flow(&self, now: Instant) -> Flow {
        let mut folded = *self;
        folded.fold(now);
        let age = now.since(self.started).as_secs_f64();
        if age < WINDOW_SECONDS {
            // Younger than the window: the plain average since the start, true after the first message.
            let rate = |count: u64| count as f64 / age.max(FOLD_SECONDS);
            return Flow {
                message_rate: rate(self.messages),
                byte_rate: rate(self.bytes),
                messages: self.messages,
                bytes: self.bytes,
            };
        }
        // The average began at zero: divided by the weight it has seen, it is unbiased from the start.
        let seen = folded.folded_at.since(folded.started).as_secs_f64();
        let weight = 1.0 - (-seen / WINDOW_SECONDS).exp();
        let scale = if weight > 0.0 { 1.0 / weight } else { 0.0 };
        Flow {
            message_rate: folded.message_average * scale,
            byte_rate: folded.byte_average * scale,
            messages: self.messages,
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn steady_flow_shows_its_rate_after_seconds() {
        let start = Instant(5);
        let mut meter = Meter::new(start);
        for step in 1..=40_u64 {
            meter.add(10, 1000, start + Duration::from_millis(100 * step));
        }
        let flow = meter.flow(start + Duration::from_millis(4000));
        assert!((80.0..120.0).contains(&flow.message_rate), "{flow:?}");
        assert_eq!((flow.messages, flow.bytes), (400, 40_000));
        let mut burst = Meter::new(start);
        burst.add(10, 150, start + Duration::from_millis(1));
        let flow = burst.flow(start + Duration::from_millis(10));
        assert!((flow.message_rate - 10.0).abs() < 0.1, "ten at once show at once: {flow:?}");
        let later = meter.flow(start + Duration::from_secs(600));
        assert!(later.message_rate < 1.0, "{later:?}");
    }
}
