//! What repair did on this node, counted where it happens.

use std::sync::atomic::{AtomicU64, Ordering};

/// Figures since start.
#[derive(Debug, Default)]
pub struct RepairStats {
    marked: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    fragments: AtomicU64,
    failures: AtomicU64,
    is_auditor: AtomicU64,
}

impl RepairStats {
    /// Ledgers marked as under-replicated when this node last looked.
    pub fn under_replicated(&self) -> u64 {
        self.marked.load(Ordering::Relaxed)
    }

    /// Entries copied.
    pub fn entries_copied(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Payload bytes copied.
    pub fn bytes_copied(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Places in ensembles made whole: a bookie replaced, or its missing copies written again.
    pub fn places_repaired(&self) -> u64 {
        self.fragments.load(Ordering::Relaxed)
    }

    /// Attempts at a ledger that left it marked.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// True while this node is the auditor, as far as it knows.
    pub fn is_auditor(&self) -> bool {
        self.is_auditor.load(Ordering::Relaxed) == 1
    }

    pub(super) fn set_under_replicated(&self, count: usize) {
        self.marked.store(count as u64, Ordering::Relaxed);
    }

    pub(super) fn copied(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn repaired_place(&self) {
        self.fragments.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_auditor(&self, leads: bool) {
        self.is_auditor.store(u64::from(leads), Ordering::Relaxed);
    }
}
