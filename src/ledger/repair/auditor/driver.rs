//! Runs for the auditor's office and does its work.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::check::check_ledger;
use super::machine::{AuditMachine, AuditWork};
use crate::domain::{BookieId, Instant};
use crate::ledger::LedgerRecord;
use crate::ledger::repair::drain::{DrainState, Drains};
use crate::ledger::repair::ledger_repair::Environment;
use crate::ledger::repair::marker::Markers;
use crate::ledger::repair::session::under_session;
use crate::ledger::repair::{Flaw, Pacer, Standing};
use crate::metadata::{Expect, MetadataError, SessionId};
use crate::{mutant, reached};

/// The key whoever audits holds, under its session.
const AUDITOR_KEY: &str = "/repair/auditor";
/// How often the auditor looks at the list of bookies.
const LOOK: Duration = Duration::from_secs(1);
/// Records asked of metadata at once.
const PAGE: usize = 500;

/// One node's candidate.
pub(in crate::ledger::repair) struct Auditor<'a> {
    environment: &'a Environment,
    markers: Markers,
    drains: Drains,
}

impl<'a> Auditor<'a> {
    pub(in crate::ledger::repair) fn new(environment: &'a Environment) -> Self {
        let metadata = &environment.metadata;
        let (markers, drains) = (Markers::new(metadata.clone()), Drains::new(metadata.clone()));
        Self { environment, markers, drains }
    }

    /// Stands for election for ever.
    pub(in crate::ledger::repair) async fn run(self) {
        let environment = self.environment;
        let clock = &environment.runtime.clock;
        let time_to_live = environment.config.session_time_to_live;
        loop {
            let looked = environment.metadata.get(AUDITOR_KEY).await;
            if matches!(looked, Ok(None)) {
                let term = |session| self.term(session);
                let served = under_session(clock, &environment.metadata, time_to_live, term).await;
                environment.stats.set_auditor(false);
                if let Err(error) = served {
                    tracing::info!(%error, "the auditor's term ended");
                }
            }
            clock.sleep(environment.config.audit_interval.min(time_to_live)).await;
        }
    }

    async fn term(&self, session: SessionId) {
        let environment = self.environment;
        let holder = Bytes::from(environment.holder.clone());
        let elected =
            environment.metadata.put(AUDITOR_KEY, holder, Expect::Absent, Some(session)).await;
        if elected.is_err() {
            reached!("auditor: another was elected");
            return;
        }
        tracing::info!(holder = environment.holder, "elected auditor");
        environment.stats.set_auditor(true);
        let clock = &environment.runtime.clock;
        let now = || match mutant!("T11") {
            true => Instant(0) + Duration::from_millis(clock.wall().0),
            false => clock.now(),
        };
        let mut machine = AuditMachine::new(environment.config.clone(), now());
        let mut drains = BTreeMap::new();
        loop {
            let leaving: BTreeSet<BookieId> = drains.keys().copied().collect();
            machine.observe(|bookie| environment.standing(&leaving, bookie), now());
            match machine.due(now()) {
                Some(AuditWork::Scan) => {
                    let scanned = self.scan(&machine, &mut drains).await;
                    let named = scanned
                        .inspect_err(|error| tracing::info!(%error, "a scan was not completed"));
                    machine.scanned(named.ok(), now());
                    // Bookies first named by this scan have not been looked at.
                    continue;
                }
                Some(AuditWork::Check) => {
                    if let Err(error) = self.check().await {
                        tracing::info!(%error, "a check was not completed");
                    }
                    machine.checked(now());
                }
                None => clock.sleep(LOOK.min(environment.config.audit_interval)).await,
            }
        }
    }

    /// Compares every ledger with what is known of bookies. Answers which bookies are named. A list that
    /// cannot be read is an error, never an empty one.
    async fn scan(
        &self,
        machine: &AuditMachine,
        drains: &mut BTreeMap<BookieId, DrainState>,
    ) -> Result<BTreeSet<BookieId>, MetadataError> {
        let records = self.drains.list().await?;
        *drains = records.into_iter().map(|record| (record.bookie, record.state)).collect();
        // Whoever does not yet know that it is to leave may still be given new ledgers.
        let standings = &self.environment.standings;
        let leaving: Vec<BookieId> = drains
            .iter()
            .filter(|(_, state)| **state != DrainState::Decommissioned)
            .map(|(bookie, _)| *bookie)
            .filter(|bookie| standings.standing(*bookie) != Standing::Serving)
            .collect();
        let mut named = BTreeSet::new();
        let mut after: Option<String> = None;
        while let Some(records) = self.page(&mut after).await? {
            for record in records {
                let members: BTreeSet<BookieId> =
                    record.fragments.iter().flat_map(|f| f.ensemble.iter().copied()).collect();
                let flaws: Vec<Flaw> = members
                    .iter()
                    .filter_map(|bookie| {
                        Some(Flaw { bookie: *bookie, kind: machine.flaw(*bookie)? })
                    })
                    .collect();
                if !flaws.is_empty() {
                    self.markers.note(record.ledger, &flaws).await?;
                }
                named.extend(members);
            }
        }
        for bookie in leaving {
            let is_named = named.contains(&bookie);
            let state = if is_named { DrainState::Draining } else { DrainState::Drained };
            self.drains.set(bookie, state).await?;
        }
        Ok(named)
    }

    async fn check(&self) -> Result<(), MetadataError> {
        let mut pacer = Pacer::new(self.environment.config.bytes_per_second);
        let mut after: Option<String> = None;
        while let Some(records) = self.page(&mut after).await? {
            for record in records {
                let flaws = check_ledger(self.environment, &record, &mut pacer).await;
                if !flaws.is_empty() {
                    tracing::warn!(ledger = %record.ledger, ?flaws, "copies are missing or damaged");
                    self.markers.note(record.ledger, &flaws).await?;
                }
            }
        }
        Ok(())
    }

    /// The next records; `None` after the last.
    async fn page(
        &self,
        after: &mut Option<String>,
    ) -> Result<Option<Vec<LedgerRecord>>, MetadataError> {
        let metadata = &self.environment.metadata;
        let page = metadata.list(LedgerRecord::PREFIX, after.as_deref(), PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        *after = Some(last.clone());
        let decode = |(key, found): &(String, crate::metadata::Versioned)| {
            serde_json::from_slice(&found.value)
                .map_err(|error| MetadataError::Refused(format!("record {key}: {error}")))
        };
        page.iter().map(decode).collect::<Result<Vec<_>, _>>().map(Some)
    }
}
