//! Two kinds of time that never mix: a node's monotonic clock and its wall clock.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A reading of one node's monotonic clock: nanoseconds since an origin that differs between nodes and
/// between starts. Only compared with readings of the same node and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    /// Time passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// A reading of a node's wall clock: milliseconds since 1970-01-01 UTC. May jump either way; never an
/// input to a replicated decision unless the reading itself is in the log.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(pub u64);
