//! The pace of a flush: fast enough to be done before the next half is full, and no faster. Journal and entry
//! log share a disk, so a flush at full speed is what every acknowledgement during it waits for.

use std::time::Duration;

use crate::runtime::Clock;

/// A rest is this many times the work before it.
const REST_FACTOR: u32 = 8;
/// Shortest rest worth a timer.
const REST_MIN: Duration = Duration::from_millis(1);
/// Longest rest: without any traffic a flush still ends soon.
const REST_MAX: Duration = Duration::from_millis(20);

/// How one flush is spread over time.
pub(in crate::bookie) struct Pace<'a> {
    /// The clock.
    pub clock: &'a Clock,
    /// How full the half that takes new entries is, 0 to 1, of the level at which its own flush begins.
    pub pressure: &'a (dyn Fn() -> f64 + Send + Sync),
}

impl Pace<'_> {
    /// Rests after `worked`, unless the flush (done to the part `done`, 0 to 1) is behind the filling.
    pub async fn rest(&self, worked: Duration, done: f64) {
        // Ahead by a tenth: the index and the checkpoint file come after the last entry.
        if (self.pressure)() + 0.1 < done {
            let rest = (worked * REST_FACTOR).clamp(REST_MIN, REST_MAX);
            self.clock.sleep(rest).await;
        }
    }
}
