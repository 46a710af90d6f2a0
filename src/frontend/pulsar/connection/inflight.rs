//! Publishes of one connection that have no outcome yet: over the bound the connection is not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Count and bytes of pending publishes.
pub(in crate::frontend::pulsar) struct Inflight {
    count: AtomicUsize,
    bytes: AtomicUsize,
    count_max: usize,
    bytes_max: usize,
    freed: Notify,
}

impl Inflight {
    pub(super) fn new(count_max: usize, bytes_max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            count_max,
            bytes_max,
            freed: Notify::new(),
        }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    pub(super) fn remove(&self, count: usize, bytes: usize) {
        self.count.fetch_sub(count, Ordering::SeqCst);
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        if self.is_half_free() {
            self.freed.notify_one();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.count_max
            || self.bytes.load(Ordering::SeqCst) >= self.bytes_max
    }

    fn is_half_free(&self) -> bool {
        self.count.load(Ordering::SeqCst) <= self.count_max / 2
            && self.bytes.load(Ordering::SeqCst) <= self.bytes_max / 2
    }

    /// Completes when half is free. One waiter, the reader.
    pub(super) async fn half_free(&self) {
        while !self.is_half_free() {
            self.freed.notified().await;
        }
    }
}
