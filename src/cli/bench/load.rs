//! What all loads share: the phases of a run, what was counted, and waiting for connections together.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hdrhistogram::Histogram;

use super::BenchError;

/// Longest latency recorded exactly; longer ones count as this.
const LATENCY_MAX: Duration = Duration::from_secs(60);

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is counted yet.
    WarmUp,
    /// Counted.
    Measured,
    /// Nothing new is sent.
    Stopping,
}

/// Shared by the connections of one run, all on one thread.
pub(super) struct Run {
    /// Zero of every stamp.
    pub(super) origin: Instant,
    /// Where the run is.
    pub(super) phase: Cell<Phase>,
    /// What was counted.
    pub(super) tally: RefCell<Tally>,
    /// Frames acknowledged in all phases.
    pub(super) acknowledged_in_all: Cell<u64>,
}

/// What was counted while measured.
pub(super) struct Tally {
    /// Frames acknowledged.
    pub(super) frames: u64,
    /// Time from sending (or from the intended sending) to the acknowledgement, nanoseconds.
    pub(super) acknowledgement: Histogram<u64>,
    /// Time from the intended sending to the consumer, nanoseconds.
    pub(super) end_to_end: Histogram<u64>,
}

impl Run {
    /// A run that begins now.
    pub(super) fn new() -> Result<Self, BenchError> {
        Ok(Self {
            origin: Instant::now(),
            phase: Cell::new(Phase::WarmUp),
            tally: RefCell::new(Tally {
                frames: 0,
                acknowledgement: histogram()?,
                end_to_end: histogram()?,
            }),
            acknowledged_in_all: Cell::new(0),
        })
    }

    /// Nanoseconds since the run began.
    pub(super) fn now(&self) -> u64 {
        nanoseconds(self.origin.elapsed())
    }
}

fn histogram() -> Result<Histogram<u64>, BenchError> {
    Histogram::new_with_bounds(1, nanoseconds(LATENCY_MAX), 3)
        .map_err(|error| BenchError::Server(format!("histogram: {error}")))
}

/// A duration in nanoseconds, as far as they go.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs all to their end on this thread; the first error ends all.
pub(super) async fn all<F>(futures: impl IntoIterator<Item = F>) -> Result<(), BenchError>
where
    F: Future<Output = Result<(), BenchError>>,
{
    let mut running: FuturesUnordered<F> = futures.into_iter().collect();
    while let Some(ended) = running.next().await {
        ended?;
    }
    Ok(())
}

/// Runs a load on an executor of its own, on this thread only: the machine's other core is the server's.
pub(super) fn on_one_thread<T>(
    limit: Duration,
    what: &str,
    load: impl Future<Output = Result<T, BenchError>>,
) -> Result<T, BenchError> {
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start the executor"))?;
    executor.block_on(async {
        match tokio::time::timeout(limit, load).await {
            Ok(result) => result,
            Err(_) => Err(BenchError::Stuck(limit, what.to_owned())),
        }
    })
}
