//! The two tasks of repair on one node.

use std::sync::Arc;
use std::time::Duration;

use super::auditor::Auditor;
use super::ledger_repair::Environment;
use super::replicator::Replicator;
use super::{BookieStandings, Markers, RepairConfig, RepairStats};
use crate::ledger::records::Records;
use crate::ledger::{BookiePool, LedgerClient, LedgerConfig};
use crate::metadata::Metadata;
use crate::runtime::{Runtime, ShutdownSignal};

/// What repair is made of.
pub struct RepairParts {
    /// The node's runtime.
    pub runtime: Runtime,
    /// The store.
    pub metadata: Metadata,
    /// The node's client of ledgers: it fences and recovers.
    pub ledgers: LedgerClient,
    /// All bookies.
    pub bookies: Arc<dyn BookiePool>,
    /// Where they stand.
    pub standings: Arc<dyn BookieStandings>,
    /// Time-outs of requests.
    pub ledger_config: LedgerConfig,
    /// Limits and times of repair.
    pub config: RepairConfig,
    /// Who this is, for people.
    pub holder: String,
}

/// A node's share of repair: a candidate for the auditor's office, and a replicator.
pub struct RepairService {
    stats: Arc<RepairStats>,
}

impl RepairService {
    /// Runs both until `stop`.
    pub fn start(parts: RepairParts, stop: &ShutdownSignal) -> Self {
        let stats = Arc::new(RepairStats::default());
        let environment = Arc::new(Environment {
            records: Records::new(parts.metadata.clone()),
            random: parts.runtime.random.fork("repair"),
            runtime: parts.runtime,
            metadata: parts.metadata,
            ledgers: parts.ledgers,
            bookies: parts.bookies,
            standings: parts.standings,
            ledger_config: parts.ledger_config,
            config: parts.config,
            stats: Arc::clone(&stats),
            holder: parts.holder,
        });
        let (tasks, audited, stopped) =
            (&environment.runtime.tasks, Arc::clone(&environment), stop.clone());
        drop(tasks.spawn("auditor", async move {
            tokio::select! {
                biased;
                () = stopped.triggered() => {}
                () = Auditor::new(&audited).run() => {}
            }
        }));
        let (repaired, stopped) = (Arc::clone(&environment), stop.clone());
        drop(tasks.spawn("replicator", async move {
            tokio::select! {
                biased;
                () = stopped.triggered() => {}
                () = Replicator::new(&repaired).run() => {}
            }
        }));
        Self { stats }
    }

    /// Takes no part, only counts what is marked, for a node's metrics.
    pub fn watch(
        runtime: &Runtime,
        metadata: Metadata,
        interval: Duration,
        stop: &ShutdownSignal,
    ) -> Self {
        let stats = Arc::new(RepairStats::default());
        let (counted, clock, stop) = (Arc::clone(&stats), runtime.clock.clone(), stop.clone());
        let markers = Markers::new(metadata);
        drop(runtime.tasks.spawn("repair watch", async move {
            loop {
                tokio::select! {
                    biased;
                    () = stop.triggered() => return,
                    () = clock.sleep(interval) => {}
                }
                if let Ok(marked) = markers.list().await {
                    counted.set_under_replicated(marked.len());
                }
            }
        }));
        Self { stats }
    }

    /// Figures since start.
    pub fn stats(&self) -> Arc<RepairStats> {
        Arc::clone(&self.stats)
    }
}
