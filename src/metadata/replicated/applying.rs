//! Committed entries become visible, and whoever waited for one is answered.

use std::collections::BTreeMap;

use super::driver::Driver;
use super::waiters::Waiter;
use crate::metadata::MetadataError;
use crate::metadata::consensus::{Entry, Index, Payload, Ticket};
use crate::metadata::store::{Command, Done, decode_group};
use crate::mutant;

/// What applying entries gave, until those who wait have been told.
pub(super) type Results = BTreeMap<Index, Result<Done, MetadataError>>;

impl Driver {
    /// Applies in order. An entry that cannot be understood stops this member: skipping it would make its
    /// state another one than everybody's.
    pub(super) fn apply(&mut self, entries: &[Entry]) -> Result<(), String> {
        let mut visible = self.shared.visible();
        let mut events = Vec::new();
        for entry in entries {
            crate::invariant!(
                entry.index == self.applied + 1,
                "entry {} applied behind {}",
                entry.index,
                self.applied
            );
            self.applied = entry.index;
            self.config.observer.tell(|observer| observer.applied(&self.machine, entry));
            let Payload::Command(group) = &entry.payload else { continue };
            let commands = decode_group(group.clone())
                .map_err(|damage| format!("entry {} of the log: {damage}", entry.index))?;
            let mut result = Ok(Done::Nothing);
            if mutant!("T4") {
                let to_ms = self.runtime.clock.wall().0;
                events.extend(visible.store.apply(&Command::AdvanceTime { to_ms }).events);
            }
            for command in &commands {
                let applied = visible.store.apply(command);
                events.extend(applied.events);
                result = applied.result;
            }
            self.results.insert(entry.index, result);
        }
        visible.watches.dispatch(&events);
        Ok(())
    }

    /// Tells who proposed the entry what applying it gave.
    pub(super) fn answer_committed(&mut self, ticket: Ticket, index: Index) {
        let result = self.results.remove(&index);
        match self.waiters.take(ticket) {
            Some(Waiter::Change(answer, _room)) => {
                let result = result.unwrap_or_else(|| {
                    Err(MetadataError::OutcomeUnknown("its result is gone".to_owned()))
                });
                drop(answer.send(result));
            }
            Some(Waiter::Proof(answer)) => drop(answer.send(Ok(()))),
            Some(Waiter::Nobody) | None => {}
        }
    }
}
