//! Accepts connections up to a bound, and stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::AdminState;
use super::connection;
use super::routes;
use crate::reached;
use crate::runtime::{Listener, Runtime, ShutdownSignal};

/// After a failed accept (out of file descriptors, for one) the next try waits this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections now and refused so far.
#[derive(Default)]
pub(crate) struct Counters {
    open: AtomicUsize,
    refused: AtomicU64,
}

impl Counters {
    /// Open connections.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections closed at once because too many were open.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Counts one connection for as long as it lives.
struct OpenConnection(Arc<AdminState>);

impl OpenConnection {
    /// `None` at the bound.
    fn enter(state: &Arc<AdminState>) -> Option<Self> {
        let before = state.counters.open.fetch_add(1, Ordering::Relaxed);
        let entered = Self(Arc::clone(state));
        (before < state.config.connections_max).then_some(entered)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts until told to stop.
pub(crate) async fn serve(
    runtime: Runtime,
    listener: Listener,
    state: Arc<AdminState>,
    stop: ShutdownSignal,
) {
    let router = routes::router(Arc::clone(&state));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.triggered() => return,
            accepted = listener.accept() => accepted,
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection was not accepted");
                runtime.clock.sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(open) = OpenConnection::enter(&state) else {
            reached!("admin: connection refused at the bound");
            state.counters.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let limits = connection::Limits::of(&state.config);
        let serving = connection::serve(
            runtime.clock.clone(),
            accepted,
            router.clone(),
            limits,
            stop.clone(),
        );
        drop(runtime.tasks.spawn("admin connection", async move {
            serving.await;
            drop(open);
        }));
    }
}
