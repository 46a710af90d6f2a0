//! Linearizable reads without a clock: the commit index of when the read was asked, handed out once a quorum
//! has said, after that, that this member still leads (a *round*).

use super::{Effect, Index, Machine, Refusal, Ticket};
use crate::{mutant, reached};

/// Reads under way. One round at a time: reads asked meanwhile share the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reads {
    /// The newest round begun.
    round: u64,
    /// Its reads, and the commit index they were asked at.
    running: Vec<Ticket>,
    index: Index,
    /// Reads for the next round.
    waiting: Vec<Ticket>,
}

impl Reads {
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    fn count(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    pub(super) fn into_tickets(self) -> impl Iterator<Item = Ticket> {
        self.running.into_iter().chain(self.waiting)
    }
}

impl Machine {
    pub(super) fn on_read(&mut self, ticket: Ticket) {
        let (most, refusal, commit) = (self.settings.reads, self.not_leader(), self.commit);
        let Some(leading) = self.leading() else { return self.refuse(ticket, refusal) };
        if mutant!("M-read") {
            self.effects.push(Effect::ReadReady { ticket, index: commit });
            return;
        }
        if leading.reads.count() >= most {
            return self.refuse(ticket, Refusal::Busy);
        }
        leading.reads.waiting.push(ticket);
        self.start_reads();
    }

    /// Begins a round for the reads that wait, unless one is running. Before the first entry of this term is
    /// committed, the commit index may be older than what earlier leaders have answered.
    pub(super) fn start_reads(&mut self) {
        let commit = self.commit;
        let is_known = self.log.term(commit) == Some(self.term());
        let Some(leading) = self.leading() else { return };
        let reads = &mut leading.reads;
        if !is_known {
            reached!("consensus: a read waited for the first commit of a term");
            return;
        }
        if !reads.running.is_empty() || reads.waiting.is_empty() {
            return;
        }
        reads.running = std::mem::take(&mut reads.waiting);
        reads.index = commit;
        reads.round += 1;
        for member in self.others() {
            self.send_heartbeat(member);
        }
        self.confirm_reads();
    }

    /// Hands out the running round's reads if a quorum has answered it.
    pub(super) fn confirm_reads(&mut self) {
        let id = self.id;
        let membership = self.log.membership().clone();
        let Some(leading) = self.leading() else { return };
        if leading.reads.running.is_empty() {
            return;
        }
        let round = leading.reads.round;
        let progress = &leading.progress;
        let is_confirmed = membership.is_quorum(|member| {
            member == id || progress.get(&member).is_some_and(|progress| progress.round >= round)
        });
        if !is_confirmed {
            return;
        }
        let index = leading.reads.index;
        for ticket in std::mem::take(&mut leading.reads.running) {
            self.effects.push(Effect::ReadReady { ticket, index });
        }
        self.start_reads();
    }
}
