//! The operating system's clocks; tokio's timer wheel (1 ms) for sleeping.

use std::time::{Duration, Instant as SystemInstant, SystemTime};

use futures_util::future::BoxFuture;

use crate::domain::{Instant, WallTime};
use crate::runtime::ClockSource;

/// Monotonic time counts from the creation of this value.
pub(super) struct SystemClock {
    origin: SystemInstant,
}

impl SystemClock {
    pub(super) fn new() -> Self {
        Self { origin: SystemInstant::now() }
    }
}

impl ClockSource for SystemClock {
    fn monotonic(&self) -> Instant {
        Instant(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> WallTime {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // A clock before 1970 reads as 0: wall time decides nothing.
        WallTime(
            since_epoch.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let deadline = self.origin + Duration::from_nanos(deadline.0);
        Box::pin(tokio::time::sleep_until(deadline.into()))
    }
}
