//! Commands enter the log.

use bytes::Bytes;

use super::{Effect, Entry, Machine, Payload, Refusal, Ticket, Write};
use crate::mutant;

impl Machine {
    pub(super) fn on_propose(&mut self, commands: Vec<(Ticket, Bytes)>) {
        let mut entries = Vec::with_capacity(commands.len());
        for (ticket, command) in commands {
            if let Err(refusal) = self.admit(ticket) {
                self.refuse(ticket, refusal);
                continue;
            }
            let (index, term) = (self.log.last_index() + 1, self.term());
            let entry = Entry { index, term, payload: Payload::Command(command) };
            self.log.push(entry.clone());
            entries.push(entry);
            if mutant!("M1") {
                self.leading().map(|leading| leading.proposals.remove(&index));
                self.effects.push(Effect::Committed { ticket, index });
            }
        }
        let Some(last) = entries.last() else { return };
        crate::invariant!(last.term == self.term(), "an entry of another term was proposed");
        // The others write it while this member does: what it promised before is durable already.
        self.replicate_to_all();
        self.effects.push(Effect::Persist(Write { hard_state: None, entries }));
    }

    /// Enters the proposal that will stand behind the log.
    pub(super) fn admit(&mut self, ticket: Ticket) -> Result<(), Refusal> {
        let (index, term) = (self.log.last_index() + 1, self.term());
        let (most, refusal) = (self.settings.proposals, self.not_leader());
        let Some(leading) = self.leading() else { return Err(refusal) };
        if leading.proposals.len() >= most || leading.transfer.is_some() {
            return Err(Refusal::Busy);
        }
        leading.proposals.insert(index, (term, ticket));
        Ok(())
    }
}
