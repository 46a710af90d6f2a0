//! Figures of the node's parts under the names of the metric table.

use std::sync::Arc;

use crate::bookie::Bookie;
use crate::frontend::pulsar::PulsarCounters;
use crate::ledger::repair::RepairStats;
use crate::telemetry::metrics;
use crate::telemetry::{MetricSource, Sample};

/// The bookie's figures.
pub(super) struct BookieMetrics(pub(super) Bookie);

impl MetricSource for BookieMetrics {
    fn samples(&self) -> Vec<Sample> {
        let stats = self.0.stats();
        let flag = |on: bool| f64::from(u8::from(on));
        let mut samples = vec![
            Sample::plain(&metrics::BOOKIE_ENTRIES, stats.entries_added as f64),
            Sample::plain(&metrics::BOOKIE_BYTES, stats.bytes_added as f64),
            Sample::plain(&metrics::BOOKIE_ENTRY_LOG_BYTES, stats.entry_log_bytes as f64),
            Sample::plain(&metrics::BOOKIE_READ_ONLY, flag(stats.read_only)),
            Sample::plain(&metrics::BOOKIE_DRAINING, flag(stats.draining)),
            Sample::plain(&metrics::BOOKIE_POISONED, flag(stats.poisoned.is_some())),
            Sample::plain(&metrics::BOOKIE_CORRUPT, stats.corrupt_found as f64),
            Sample::plain(&metrics::BOOKIE_READ_CACHE_HITS, stats.read_cache_hits as f64),
            Sample::plain(&metrics::BOOKIE_READ_CACHE_MISSES, stats.read_cache_misses as f64),
        ];
        for (journal, number) in stats.journals.iter().zip(1..) {
            for (metric, value) in [
                (&metrics::BOOKIE_JOURNAL_SYNCS, journal.syncs as f64),
                (&metrics::BOOKIE_JOURNAL_BYTES, journal.bytes as f64),
            ] {
                // One needs no label to tell it from others.
                let labels = match stats.journals.len() {
                    1 => Vec::new(),
                    _ => vec![("journal", number.to_string())],
                };
                samples.push(Sample { metric, labels, value });
            }
        }
        samples
    }
}

/// Repair's figures.
pub(super) struct RepairMetrics(pub(super) Arc<RepairStats>);

impl MetricSource for RepairMetrics {
    fn samples(&self) -> Vec<Sample> {
        let stats = &self.0;
        let auditor = f64::from(u8::from(stats.is_auditor()));
        vec![
            Sample::plain(&metrics::REPAIR_LEDGERS, stats.under_replicated() as f64),
            Sample::plain(&metrics::REPAIR_ENTRIES, stats.entries_copied() as f64),
            Sample::plain(&metrics::REPAIR_BYTES, stats.bytes_copied() as f64),
            Sample::plain(&metrics::REPAIR_PLACES, stats.places_repaired() as f64),
            Sample::plain(&metrics::REPAIR_FAILURES, stats.failures() as f64),
            Sample::plain(&metrics::REPAIR_AUDITOR, auditor),
        ]
    }
}

/// The Pulsar port's figures.
pub(super) struct ConnectionMetrics(pub(super) Arc<PulsarCounters>);

impl MetricSource for ConnectionMetrics {
    fn samples(&self) -> Vec<Sample> {
        let counts = self.0.read();
        vec![
            Sample::plain(&metrics::ACTIVE_CONNECTIONS, counts.active_connections as f64),
            Sample::plain(&metrics::CONNECTIONS_CREATED, counts.connections_created as f64),
            Sample::plain(&metrics::CONNECTIONS_CLOSED, counts.connections_closed as f64),
            Sample::plain(&metrics::CONNECTIONS_REFUSED, counts.connections_refused as f64),
            Sample::plain(&metrics::PROTOCOL_ERRORS, counts.protocol_errors as f64),
        ]
    }
}
