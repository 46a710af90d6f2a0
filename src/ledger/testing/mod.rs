//! A cluster in memory for the driver tests, here and in the broker: bookies that fail on demand, a metadata store that loses
//! answers on demand.

mod bookies;
mod events;
mod metadata;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use bookies::FakeBookies;
pub(super) use bookies::Mode;
pub(super) use events::Recorder;
pub(crate) use metadata::FakeMetadata;

use super::{LedgerClient, LedgerConfig};
use crate::runtime::real;

/// Everything one test needs.
pub(super) struct Cluster {
    pub(super) bookies: Arc<FakeBookies>,
    pub(super) metadata: Arc<FakeMetadata>,
    pub(super) client: LedgerClient,
}

impl Cluster {
    /// A cluster of `count` bookies. Inside [`in_runtime`] only.
    pub(super) fn new(count: u64) -> Self {
        // Long: no test but the one about it may depend on when the hint is sent.
        Self::telling_after(count, Duration::from_secs(60))
    }

    /// The same, telling the last add confirmed after this much idleness.
    pub(super) fn telling_after(count: u64, idle: Duration) -> Self {
        let bookies = Arc::new(FakeBookies::new(count));
        let metadata = Arc::new(FakeMetadata::default());
        let client = LedgerClient::new(
            real::runtime(),
            Arc::<FakeMetadata>::clone(&metadata),
            Arc::<FakeBookies>::clone(&bookies),
            LedgerConfig {
                add_timeout: Duration::from_millis(400),
                read_timeout: Duration::from_millis(100),
                speculative_read_delay: Duration::from_millis(20),
                explicit_last_add_confirmed_interval: idle,
                recovery_read_batch: 4,
                ..LedgerConfig::default()
            },
        );
        Self { bookies, metadata, client }
    }
}

/// Runs a test on the production runtime with one thread: what the test does between two waits is done before
/// any other task goes on.
pub(super) fn in_one_thread<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an executor for the test");
    executor.block_on(test());
}

/// Runs a test on the production runtime.
pub(crate) fn in_runtime<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("an executor for the test");
    executor.block_on(test());
}
