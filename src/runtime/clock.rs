//! Time of one node.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::domain::{Instant, WallTime};

/// What a runtime must provide. `monotonic` never goes back (it may stand still: a frozen clock);
/// `wall` may jump either way. A sleep ends once the **monotonic** clock of this node has reached the
/// deadline, so a drifting node's timers drift with it. Resolution in simulation is 1 ms.
pub trait ClockSource: Send + Sync {
    /// The monotonic clock.
    fn monotonic(&self) -> Instant;
    /// The wall clock.
    fn wall(&self) -> WallTime;
    /// Completes at or after `deadline` by the monotonic clock.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;
}

/// A deadline passed before the work was done. The work's outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not done within {limit:?}")]
pub struct Elapsed {
    /// The time allowed.
    pub limit: Duration,
}

/// Handle to a node's clocks.
#[derive(Clone)]
pub struct Clock(Arc<dyn ClockSource>);

impl Clock {
    /// Wraps a runtime's clock.
    pub fn new(source: Arc<dyn ClockSource>) -> Self {
        Self(source)
    }

    /// Monotonic time: for durations, time-outs, rates.
    pub fn now(&self) -> Instant {
        self.0.monotonic()
    }

    /// Wall time: for stamps shown to people and stored with messages.
    pub fn wall(&self) -> WallTime {
        self.0.wall()
    }

    /// Sleeps until the monotonic clock reaches `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        self.0.sleep_until(deadline)
    }

    /// Sleeps for `duration`.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now() + duration)
    }

    /// Waits for `work` at most `limit`. The work is dropped on time-out.
    pub async fn timeout<F: Future>(&self, limit: Duration, work: F) -> Result<F::Output, Elapsed> {
        let sleep = self.sleep(limit);
        tokio::select! {
            biased;
            output = work => Ok(output),
            () = sleep => Err(Elapsed { limit }),
        }
    }
}
