//! Telling many tasks to stop, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Default)]
struct State {
    triggered: AtomicBool,
    notify: Notify,
}

/// The side that asks for the stop.
#[derive(Clone, Default)]
pub struct Shutdown(Arc<State>);

/// The side that is asked to stop.
#[derive(Clone)]
pub struct ShutdownSignal(Arc<State>);

impl Shutdown {
    /// Not yet triggered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every holder of a signal to stop. Idempotent.
    pub fn trigger(&self) {
        self.0.triggered.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// A signal to hand to a task.
    pub fn signal(&self) -> ShutdownSignal {
        ShutdownSignal(Arc::clone(&self.0))
    }
}

impl ShutdownSignal {
    /// True once the stop was asked for.
    pub fn is_triggered(&self) -> bool {
        self.0.triggered.load(Ordering::SeqCst)
    }

    /// Completes once the stop was asked for.
    pub async fn triggered(&self) {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        // Registered before the flag is read, so a trigger between the two is not missed.
        notified.as_mut().enable();
        if !self.is_triggered() {
            notified.await;
        }
    }
}
