//! Repairing one ledger: plan, copy, and only then change the record.
//!
//! The record is changed under the version that was read **before** the first copy was sent. Whoever drops
//! copies that no record names (a bookie's garbage collection) changes that version first, so a copy that
//! was dropped under way can never be named: the compare-and-set fails, and the target is looked at again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::copy::Copier;
use super::lock::LedgerLock;
use super::plan::plan;
use super::{
    BookieStandings, CopyFailure, CopyMachine, CopyOrder, Pacer, RepairAction, RepairConfig,
    RepairMarker, RepairStats, RepairTask, Standing,
};
use crate::domain::{BookieId, EntryId, Instant, LedgerId};
use crate::ledger::ensemble::{Placement, Spread};
use crate::ledger::reader::ask_last_add_confirmed;
use crate::ledger::records::{Records, Swap, VersionedRecord};
use crate::ledger::{BookiePool, LedgerClient, LedgerConfig, LedgerRecord, LedgerState, Quorum};
use crate::metadata::{Metadata, MetadataError};
use crate::runtime::{Random, Runtime};
use crate::{in_state, mutant, reached};

/// Conflicts and targets that refused, of one attempt at a ledger, before it is left for later.
const SETBACKS_MAX: u32 = 20;

/// What repair works with.
pub(super) struct Environment {
    pub(super) runtime: Runtime,
    pub(super) metadata: Metadata,
    pub(super) records: Records,
    pub(super) ledgers: LedgerClient,
    pub(super) bookies: Arc<dyn BookiePool>,
    pub(super) standings: Arc<dyn BookieStandings>,
    pub(super) ledger_config: LedgerConfig,
    pub(super) config: RepairConfig,
    pub(super) random: Random,
    pub(super) stats: Arc<RepairStats>,
    /// Who this is, for people.
    pub(super) holder: String,
}

/// What an attempt at a ledger came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repaired {
    /// Nothing is left to do.
    Clean,
    /// Not everything could be done; why.
    Later(String),
}

/// What outlasts one attempt.
#[derive(Default)]
pub(super) struct Memory {
    /// Since when an open tail waits. Bounded by the number of markers.
    pub(super) tails: BTreeMap<LedgerId, Instant>,
    /// The rate limit.
    pub(super) pacer: Option<Pacer>,
}

type Place = (EntryId, usize, BookieId);

/// One attempt at one ledger.
pub(super) struct Attempt<'a> {
    pub(super) environment: &'a Environment,
    pub(super) marker: &'a RepairMarker,
    /// Bookies asked to leave.
    pub(super) drains: &'a BTreeSet<BookieId>,
    pub(super) memory: &'a mut Memory,
    pub(super) lock: &'a mut LedgerLock,
    pub(super) done: BTreeSet<Place>,
    pub(super) failed: BTreeMap<Place, String>,
    pub(super) refused: BTreeSet<BookieId>,
    /// A target that holds everything, whose compare-and-set met a conflict.
    pub(super) pending: Option<(Place, BookieId)>,
}

impl Environment {
    /// Where a bookie stands, those asked to leave included that are away.
    pub(super) fn standing(&self, drains: &BTreeSet<BookieId>, bookie: BookieId) -> Standing {
        if drains.contains(&bookie) {
            return Standing::Draining;
        }
        self.standings.standing(bookie)
    }

    /// The highest entry that is certainly confirmed; of a closed ledger nobody needs it.
    pub(super) async fn confirmed(&self, record: &LedgerRecord) -> EntryId {
        if matches!(record.state, LedgerState::Closed { .. }) {
            return EntryId::NONE;
        }
        let (clock, config) = (&self.runtime.clock, &self.ledger_config);
        match ask_last_add_confirmed(clock, &self.bookies, config, record).await {
            Ok(confirmed) => confirmed,
            Err(_) => record.fragments.last().map_or(EntryId::NONE, |f| f.first_entry.previous()),
        }
    }
}

impl Attempt<'_> {
    /// Does what can be done now.
    pub(super) async fn run(mut self) -> Result<Repaired, MetadataError> {
        let _state = in_state!("repair: a ledger");
        let environment = self.environment;
        let ledger = self.marker.ledger;
        let mut setbacks = 0;
        while setbacks < SETBACKS_MAX {
            let Some(found) = environment.records.load(ledger).await? else {
                reached!("repair: a marked ledger is gone");
                return Ok(Repaired::Clean);
            };
            let confirmed = environment.confirmed(&found.record).await;
            let standing = |bookie| environment.standing(self.drains, bookie);
            let plan = plan(&found.record, &self.marker.flaws, standing, confirmed);
            let place_of = |task: &RepairTask| (task.fragment, task.position, task.bookie);
            let open = plan.tasks.iter().find(|task| {
                let place = place_of(task);
                !self.done.contains(&place) && !self.failed.contains_key(&place)
            });
            match open.copied() {
                Some(task) => {
                    let place = place_of(&task);
                    match self.perform(task, place, &found).await? {
                        Step::Done => _ = self.done.insert(place),
                        Step::Failed(why) => _ = self.failed.insert(place, why),
                        Step::Again => setbacks += 1,
                    }
                }
                None if plan.has_open_tail => {
                    if let Some(later) = self.settle_tail(&found.record).await {
                        return Ok(Repaired::Later(later));
                    }
                    setbacks += 1;
                }
                None => {
                    self.memory.tails.remove(&ledger);
                    return Ok(match self.failed.into_values().next() {
                        Some(why) => Repaired::Later(why),
                        None if plan.is_waiting => {
                            Repaired::Later("a bookie with damaged copies is away".to_owned())
                        }
                        None => Repaired::Clean,
                    });
                }
            }
        }
        Ok(Repaired::Later("the record kept changing".to_owned()))
    }

    /// Leaves an open tail alone for the grace time, then has the ledger recovered: its writer is fenced,
    /// its end is found while enough of its bookies live, and it can be moved. The reason to come back
    /// later, if it is not closed. Without a spare bookie nothing could be copied, and the writer could not
    /// begin another ledger: as long as it finds its ack quorum it is better left alone.
    async fn settle_tail(&mut self, record: &LedgerRecord) -> Option<String> {
        let ledger = record.ledger;
        if record.state == LedgerState::Open && !self.has_spare(record) {
            reached!("repair: an open tail without a spare is left alone");
            self.memory.tails.remove(&ledger);
            return Some("its last fragment is open and there is no spare bookie".to_owned());
        }
        let now = self.environment.runtime.clock.now();
        let since = *self.memory.tails.entry(ledger).or_insert(now);
        if now.since(since) < self.environment.config.open_tail_grace {
            return Some("its last fragment is open; waiting for the grace time".to_owned());
        }
        reached!("repair: an open tail was fenced");
        match self.environment.ledgers.recover(ledger).await {
            Ok(_) => None,
            Err(error) => Some(format!("its end cannot be decided now: {error}")),
        }
    }

    async fn perform(
        &mut self,
        task: RepairTask,
        place: Place,
        found: &VersionedRecord,
    ) -> Result<Step, MetadataError> {
        match task.action {
            RepairAction::Refill => self.refill(task, found).await,
            RepairAction::Replace => self.replace(task, place, found).await,
        }
    }

    async fn refill(
        &mut self,
        task: RepairTask,
        found: &VersionedRecord,
    ) -> Result<Step, MetadataError> {
        match self.copy(task, task.bookie, true, &found.record).await {
            Ok(()) => {
                reached!("repair: copies written again where they were missing");
                self.environment.stats.repaired_place();
                Ok(Step::Done)
            }
            Err(failure) => Ok(Step::Failed(failure.to_string())),
        }
    }

    async fn replace(
        &mut self,
        task: RepairTask,
        place: Place,
        found: &VersionedRecord,
    ) -> Result<Step, MetadataError> {
        let Some(ensemble) = ensemble_of(&found.record, task.fragment) else {
            return Ok(Step::Again);
        };
        let kept = self.pending.take().filter(|(pending, _)| *pending == place);
        let (target, probes) = match kept {
            Some((_, target)) if !ensemble.contains(&target) => (target, true),
            _ => match self.choose_target(found.record.quorum, ensemble, task.position) {
                Some(target) => (target, false),
                None => {
                    reached!("repair: no spare bookie for a copy");
                    return Ok(Step::Failed("no spare bookie takes the copies".to_owned()));
                }
            },
        };
        if mutant!("R-early") {
            self.swap(task, place, target, found).await?;
        }
        match self.copy(task, target, probes, &found.record).await {
            Ok(()) => self.swap(task, place, target, found).await,
            Err(CopyFailure::Target { is_firm, .. }) => {
                reached!("repair: another target is chosen");
                if is_firm || self.refused.len() < SETBACKS_MAX as usize {
                    self.refused.insert(target);
                }
                Ok(Step::Again)
            }
            Err(CopyFailure::Deleted) => Ok(Step::Again),
            Err(failure) => Ok(Step::Failed(failure.to_string())),
        }
    }

    /// Bookies that may be given copies.
    fn takers(&self) -> Vec<BookieId> {
        let is_willing =
            |bookie: &BookieId| !self.refused.contains(bookie) && !self.drains.contains(bookie);
        self.environment.bookies.writable().into_iter().filter(is_willing).collect()
    }

    /// Whether the last fragment could be moved, and another ledger like this one begun.
    fn has_spare(&self, record: &LedgerRecord) -> bool {
        let takers = self.takers();
        let ensemble = record.fragments.last().map_or(&[][..], |last| &last.ensemble[..]);
        takers.len() >= record.quorum.ensemble as usize
            && takers.iter().any(|bookie| !ensemble.contains(bookie))
    }

    fn choose_target(
        &self,
        quorum: Quorum,
        ensemble: &[BookieId],
        position: usize,
    ) -> Option<BookieId> {
        let Environment { bookies, ledger_config, random, .. } = self.environment;
        let placement = Placement {
            writable: &self.takers(),
            rack_of: &|bookie| bookies.rack(bookie),
            spread: Spread { quorum, racks_min: ledger_config.racks_min },
        };
        let chosen = placement.replacements(ensemble, &[position], random);
        chosen.first().map(|(_, bookie)| *bookie)
    }

    async fn copy(
        &mut self,
        task: RepairTask,
        target: BookieId,
        probes: bool,
        record: &LedgerRecord,
    ) -> Result<(), CopyFailure> {
        let environment = self.environment;
        let ensemble = ensemble_of(record, task.fragment).unwrap_or_default().to_vec();
        let preferred = ensemble
            .iter()
            .copied()
            .filter(|bookie| environment.standings.standing(*bookie) != Standing::Missing)
            .collect();
        let order = CopyOrder {
            record: record.clone(),
            ensemble,
            position: task.position,
            target,
            first: task.fragment,
            last: task.last,
            probes,
            preferred,
        };
        let pacer = self.memory.pacer.unwrap_or(Pacer::new(environment.config.bytes_per_second));
        let mut machine = CopyMachine::new(order, &environment.config, pacer);
        let copier = Copier {
            clock: &environment.runtime.clock,
            bookies: &environment.bookies,
            read_timeout: environment.ledger_config.read_timeout,
        };
        let result = copier.run(&mut machine, record, target).await;
        self.memory.pacer = Some(machine.pacer());
        let count = machine.count();
        environment.stats.copied(count.entries, count.bytes);
        if count.entries > 0 {
            self.lock.publish(count.entries, count.bytes).await;
        }
        result.map(|_| ())
    }

    /// Puts the target in the bookie's place, if the record is still the one the copy began with.
    async fn swap(
        &mut self,
        task: RepairTask,
        place: Place,
        target: BookieId,
        found: &VersionedRecord,
    ) -> Result<Step, MetadataError> {
        let mut record = found.record.clone();
        let fragment = record.fragments.iter_mut().find(|f| f.first_entry == task.fragment);
        let Some(seat) = fragment.and_then(|fragment| fragment.ensemble.get_mut(task.position))
        else {
            return Ok(Step::Again);
        };
        *seat = target;
        let mut version = found.version;
        if mutant!("R-stale")
            && let Some(now) = self.environment.records.load(record.ledger).await?
        {
            version = now.version;
        }
        match self.environment.records.swap(&record, version).await? {
            Swap::Done(_) => {
                reached!("repair: a bookie's place was given to another");
                self.environment.stats.repaired_place();
                Ok(Step::Done)
            }
            Swap::ReadAgain => {
                reached!("repair: the record changed during a copy");
                self.pending = Some((place, target));
                Ok(Step::Again)
            }
        }
    }
}

enum Step {
    Done,
    Failed(String),
    /// Something changed: plan again.
    Again,
}

fn ensemble_of(record: &LedgerRecord, fragment: EntryId) -> Option<&[BookieId]> {
    let found = record.fragments.iter().find(|found| found.first_entry == fragment);
    found.map(|found| found.ensemble.as_slice())
}
