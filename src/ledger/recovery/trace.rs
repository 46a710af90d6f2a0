//! What a recovery tells the log: who answered what, and what was decided from it. Nothing is put into words while
//! nobody listens. A line with a bookie is one answer; the others tell how far the recovery is.

use super::machine::{Phase, RecoveryMachine};
use crate::domain::{AddAnswer, BookieId, Entry, EntryId, LastAddConfirmed, LedgerId, ReadError};
use crate::ledger::ensemble::Listed;

/// One attempt, as far as it was told.
pub(super) struct Trace {
    ledger: LedgerId,
    told: (Phase, EntryId),
}

impl Trace {
    pub(super) fn new(ledger: LedgerId) -> Self {
        Self { ledger, told: (Phase::Fencing, EntryId::NONE) }
    }

    pub(super) fn fence_answered(
        &self,
        bookie: BookieId,
        answer: &Result<LastAddConfirmed, ReadError>,
    ) {
        let ledger = self.ledger;
        match answer {
            Ok(LastAddConfirmed { last_add_confirmed, last_entry, fenced }) => {
                tracing::debug!(%ledger, %bookie, fenced, %last_add_confirmed, %last_entry, "answer to a fence");
            }
            Err(error) => tracing::debug!(%ledger, %bookie, %error, "no fence"),
        }
    }

    pub(super) fn read_answered(
        &self,
        bookie: BookieId,
        entry: EntryId,
        answer: &Result<Vec<Entry>, ReadError>,
    ) {
        let ledger = self.ledger;
        match answer {
            Ok(entries) => {
                tracing::debug!(%ledger, %bookie, %entry, count = entries.len(), "entries read");
            }
            Err(error) => tracing::debug!(%ledger, %bookie, %entry, %error, "entry not read"),
        }
    }

    pub(super) fn add_answered(&self, answer: &AddAnswer) {
        let AddAnswer { bookie, ledger, entries, result } = answer;
        let Some(entry) = entries.first() else { return };
        let count = entries.len();
        match result {
            Ok(()) => tracing::debug!(%ledger, %bookie, %entry, count, "entries written back"),
            Err(error) => {
                tracing::debug!(%ledger, %bookie, %entry, count, %error, "entries not written back");
            }
        }
    }

    /// What the machine decided since it was looked at last.
    pub(super) fn decided(&mut self, machine: &RecoveryMachine) {
        let now = (machine.phase(), machine.last_found());
        let before = std::mem::replace(&mut self.told, now);
        let (ledger, (phase, last_entry)) = (self.ledger, now);
        match (before.0, phase) {
            _ if before == now => {}
            (Phase::Fencing, Phase::Reading) => {
                tracing::debug!(%ledger, last_add_confirmed = %last_entry, "fenced, reads what comes after");
            }
            (Phase::Reading, Phase::Reading) => {
                tracing::debug!(%ledger, %last_entry, "entries found");
            }
            (Phase::Reading, Phase::Measuring | Phase::Finishing) => {
                tracing::debug!(%ledger, %last_entry, "the end is found");
            }
            _ => {}
        }
    }

    /// Spares were looked for in place of bookies that take nothing back.
    pub(super) fn replaced(&self, found: &[(usize, BookieId)], machine: &RecoveryMachine) {
        let ledger = self.ledger;
        if found.is_empty() {
            tracing::debug!(%ledger, "no spare for a bookie that takes nothing back");
        } else {
            let ensemble = machine.ensemble();
            let ensemble = Listed(&ensemble);
            tracing::debug!(%ledger, %ensemble, "writes back to other bookies");
        }
    }
}
