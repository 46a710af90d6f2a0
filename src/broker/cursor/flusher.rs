//! The task that makes a cursor's state durable. While one write is on its way, further
//! acknowledgements gather for the next.

use std::sync::Arc;
use std::time::Duration;

use super::handle::Inner;
use super::store::StoreError;
use crate::broker::managed_ledger::lock;

/// Pause after a failed write.
const RETRY: Duration = Duration::from_millis(500);

/// Runs until the cursor ends.
pub(super) async fn run(inner: Arc<Inner>) {
    loop {
        let (dirty, awaited, ended) = {
            let mut guarded = lock(&inner.guarded);
            guarded.waiters.retain(|waiter| !waiter.is_closed());
            (guarded.dirty, !guarded.waiters.is_empty(), guarded.ended)
        };
        if ended {
            return;
        }
        if !dirty && !awaited {
            inner.work.notified().await;
            continue;
        }
        if !awaited {
            // Nobody waits for a receipt: gather for a while, unless someone comes who does.
            let clock = &inner.place.runtime.clock;
            let deadline = clock.now() + inner.place.config.cursor_flush_interval;
            let mut due = clock.sleep_until(deadline);
            loop {
                tokio::select! {
                    biased;
                    () = &mut due => break,
                    () = inner.work.notified() => {
                        let guarded = lock(&inner.guarded);
                        if guarded.ended || guarded.waiters.last().is_some_and(|w| !w.is_closed()) {
                            break;
                        }
                    }
                }
            }
        }
        match inner.flush().await {
            Ok(()) => {}
            Err(StoreError::Deposed) => {
                inner.deposed();
                return;
            }
            Err(StoreError::Failed(error)) => {
                tracing::warn!(cursor = inner.name, topic = inner.place.topic, error, "not stored");
                inner.place.runtime.clock.sleep(RETRY).await;
            }
        }
    }
}
