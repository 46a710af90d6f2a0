//! Works off the markers, one ledger at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::drain::Drains;
use super::ledger_repair::{Attempt, Environment, Memory, Repaired};
use super::lock::LedgerLock;
use super::marker::{Markers, RepairMarker};
use super::session::under_session;
use crate::domain::{Instant, LedgerId};
use crate::metadata::{MetadataError, SessionId};
use crate::{mutant, reached};

/// Pauses after attempts at one ledger double up to this many times.
const DOUBLINGS_MAX: u32 = 4;

/// When to try a ledger again.
struct Backoff {
    due: Instant,
    failures: u32,
}

/// One node's replicator.
pub(super) struct Replicator<'a> {
    environment: &'a Environment,
    markers: Markers,
    drains: Drains,
    memory: Memory,
    /// Bounded by the number of markers.
    backoffs: BTreeMap<LedgerId, Backoff>,
}

impl<'a> Replicator<'a> {
    pub(super) fn new(environment: &'a Environment) -> Self {
        Self {
            environment,
            markers: Markers::new(environment.metadata.clone()),
            drains: Drains::new(environment.metadata.clone()),
            memory: Memory::default(),
            backoffs: BTreeMap::new(),
        }
    }

    /// Works for ever.
    pub(super) async fn run(mut self) {
        let environment = self.environment;
        let clock = &environment.runtime.clock;
        loop {
            clock.sleep(environment.config.replicator_interval).await;
            let markers = match self.markers.list().await {
                Ok(markers) => markers,
                Err(error) => {
                    tracing::info!(%error, "cannot list the ledgers to repair");
                    continue;
                }
            };
            environment.stats.set_under_replicated(markers.len());
            let marked: BTreeSet<LedgerId> = markers.iter().map(|marker| marker.ledger).collect();
            self.backoffs.retain(|ledger, _| marked.contains(ledger));
            self.memory.tails.retain(|ledger, _| marked.contains(ledger));
            let now = clock.now();
            let is_due = |marker: &RepairMarker| {
                self.backoffs.get(&marker.ledger).is_none_or(|backoff| backoff.due <= now)
            };
            let mut due: Vec<RepairMarker> = markers.into_iter().filter(is_due).collect();
            if due.is_empty() {
                continue;
            }
            // Replicators that begin at different places rarely meet at a lock.
            let places = due.len() as u64;
            due.rotate_left(environment.random.below(places) as usize);
            let time_to_live = environment.config.session_time_to_live;
            let this = &mut self;
            let pass = move |session| this.pass(session, due);
            let passed = under_session(clock, &environment.metadata, time_to_live, pass).await;
            if let Err(error) = passed {
                tracing::info!(%error, "a round of repair ended early");
            }
        }
    }

    async fn pass(&mut self, session: SessionId, due: Vec<RepairMarker>) {
        for marker in due {
            if let Err(error) = self.try_one(session, marker.ledger).await {
                tracing::info!(ledger = %marker.ledger, %error, "cannot repair a ledger now");
                self.failed(marker.ledger);
            }
        }
    }

    async fn try_one(&mut self, session: SessionId, ledger: LedgerId) -> Result<(), MetadataError> {
        let environment = self.environment;
        let nonce = environment.random.next();
        let metadata = &environment.metadata;
        let lock = LedgerLock::take(metadata, session, ledger, &environment.holder, nonce).await?;
        let Some(mut lock) = lock else { return Ok(()) };
        // Read under the lock: its version is what the removal names.
        let result = match self.markers.load(ledger).await {
            Ok(Some(found)) => {
                self.repair(&found.marker, &mut lock).await.map(|done| (done, found.version))
            }
            Ok(None) => {
                lock.release().await;
                return Ok(());
            }
            Err(error) => Err(error),
        };
        let result = match result {
            Ok((Repaired::Clean, version)) => {
                self.backoffs.remove(&ledger);
                self.markers.clear(ledger, version).await
            }
            Ok((Repaired::Later(reason), version)) => {
                tracing::info!(%ledger, reason, "a ledger stays marked");
                self.failed(ledger);
                if mutant!("R-marker") { self.markers.clear(ledger, version).await } else { Ok(()) }
            }
            Err(error) => Err(error),
        };
        lock.release().await;
        result
    }

    async fn repair(
        &mut self,
        marker: &RepairMarker,
        lock: &mut LedgerLock,
    ) -> Result<Repaired, MetadataError> {
        let drains: BTreeSet<_> =
            self.drains.list().await?.into_iter().map(|record| record.bookie).collect();
        let attempt = Attempt {
            environment: self.environment,
            marker,
            drains: &drains,
            memory: &mut self.memory,
            lock,
            done: BTreeSet::new(),
            failed: BTreeMap::new(),
            refused: BTreeSet::new(),
            pending: None,
        };
        attempt.run().await
    }

    fn failed(&mut self, ledger: LedgerId) {
        reached!("repair: a ledger is left for later");
        self.environment.stats.failed();
        let interval = self.environment.config.replicator_interval;
        let now = self.environment.runtime.clock.now();
        let backoff = self.backoffs.entry(ledger).or_insert(Backoff { due: now, failures: 0 });
        backoff.due = now + interval * 2_u32.pow(backoff.failures.min(DOUBLINGS_MAX));
        backoff.failures += 1;
    }
}
