//! Counts of connections and messages for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since start; `active` is a gauge.
#[derive(Debug, Default)]
pub struct PulsarCounters {
    active: AtomicU64,
    created: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    protocol_errors: AtomicU64,
}

/// A reading of [`PulsarCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PulsarCounts {
    /// Connections now.
    pub active_connections: u64,
    /// Connections ever accepted and served.
    pub connections_created: u64,
    /// Connections ended, for whatever reason.
    pub connections_closed: u64,
    /// Connections refused because there were too many.
    pub connections_refused: u64,
    /// Connections closed because of what the client sent.
    pub protocol_errors: u64,
}

impl PulsarCounters {
    pub(super) fn opened(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, by_protocol_error: bool) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        self.closed.fetch_add(1, Ordering::Relaxed);
        if by_protocol_error {
            self.protocol_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections open now.
    pub fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// A reading.
    pub fn read(&self) -> PulsarCounts {
        PulsarCounts {
            active_connections: self.active(),
            connections_created: self.created.load(Ordering::Relaxed),
            connections_closed: self.closed.load(Ordering::Relaxed),
            connections_refused: self.refused.load(Ordering::Relaxed),
            protocol_errors: self.protocol_errors.load(Ordering::Relaxed),
        }
    }
}
