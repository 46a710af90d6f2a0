//! What is committed, and what follows from it.

use super::machine::Part;
use super::{Effect, Index, Machine, Payload};
use crate::{invariant, mutant, reached};

impl Machine {
    /// Looks how far a quorum has the leader's log. An entry of an older term is never committed by counting
    /// its copies (a later leader may still replace it), only with one of this term behind it.
    pub(super) fn advance_commit(&mut self) {
        let Part::Leader(leading) = &self.part else { return };
        let has = |member| {
            if member == self.id {
                leading.persisted
            } else {
                leading.progress.get(&member).map_or(0, |progress| progress.matched)
            }
        };
        let index = self.log.membership().quorum_index(has);
        let is_of_this_term = self.log.term(index) == Some(self.term());
        if index > self.commit && (is_of_this_term || mutant!("M-old-term")) {
            self.commit_to(index);
            self.on_leader_committed();
        }
    }

    /// Commits up to `index`: the entries are applied in order.
    pub(super) fn commit_to(&mut self, index: Index) {
        if index <= self.commit {
            return;
        }
        invariant!(index <= self.log.last_index(), "commit {index} lies behind the log");
        let entries = self.log.slice(self.commit + 1, index, usize::MAX, usize::MAX);
        invariant!(
            entries.len() as u64 == index - self.commit,
            "committed entries are missing from the log"
        );
        self.commit = index;
        self.effects.push(Effect::Apply(entries));
    }

    /// What a leader does once more is committed: answer, leave a joint membership, step down if it was
    /// removed, tell the others.
    fn on_leader_committed(&mut self) {
        self.answer_proposals();
        let membership_committed = self.log.membership_index() <= self.commit;
        if membership_committed && self.log.membership().is_joint() {
            reached!("consensus: a joint membership was left");
            let left = self.log.membership().left();
            self.append_own(Payload::Membership(left));
            self.note_membership();
            self.replicate_to_all();
        } else if membership_committed && !self.log.membership().is_voter(self.id) {
            reached!("consensus: a removed leader stepped down");
            // The others learn of the commit from the next leader's first entry.
            let term = self.term();
            self.tell_commit();
            return self.become_follower(term);
        }
        self.start_reads();
        self.tell_commit();
    }

    /// Followers apply, and answer their watchers, as soon as they know.
    fn tell_commit(&mut self) {
        for member in self.others() {
            self.send_heartbeat(member);
        }
    }

    fn answer_proposals(&mut self) {
        let commit = self.commit;
        let Some(leading) = self.leading() else { return };
        let pending = leading.proposals.split_off(&(commit + 1));
        let done = std::mem::replace(&mut leading.proposals, pending);
        for (index, (_, ticket)) in done {
            self.effects.push(Effect::Committed { ticket, index });
        }
    }
}
