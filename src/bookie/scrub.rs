//! The scrubber: reads everything in use in the entry logs again, slowly, and counts what is damaged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::read::read_whole_run;
use super::shared::Shared;
use crate::domain::{EntryId, LedgerId, ReadError};
use crate::reached;

/// Between two rounds.
const ROUND_WAIT: Duration = Duration::from_secs(60);

/// Scrubs round after round until the bookie stops.
pub(super) async fn run(shared: Arc<Shared>) {
    if shared.config.scrub_bytes_per_second == 0 {
        return;
    }
    let stop = shared.shutdown.signal();
    tokio::select! {
        biased;
        () = stop.triggered() => {}
        () = rounds(&shared) => {}
    }
}

async fn rounds(shared: &Shared) {
    loop {
        shared.runtime.clock.sleep(ROUND_WAIT).await;
        let mut from = (LedgerId(0), EntryId::FIRST);
        while let Ok(page) = shared.index_said(shared.index.page(from.0, from.1)) {
            let Some(last) = page.last() else { break };
            from = (last.ledger, last.first.next());
            for run in &page {
                // The damage is counted where it is found.
                if let Err(ReadError::Corrupt(damage)) = read_whole_run(shared, run).await {
                    reached!("bookie: damaged copy found by the scrubber");
                    tracing::error!(damage, "damaged copy");
                }
                let micros =
                    u64::from(run.length) * 1_000_000 / shared.config.scrub_bytes_per_second;
                shared.runtime.clock.sleep(Duration::from_micros(micros)).await;
            }
        }
        let found = shared.counters.corrupt_found.load(Ordering::Relaxed);
        tracing::debug!(found, "scrub round done");
    }
}
