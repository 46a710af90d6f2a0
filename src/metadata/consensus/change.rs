//! Membership changes: through a joint membership when voters change, which the leader leaves by itself
//! once it is committed.

use super::progress::Progress;
use super::{Machine, Membership, Payload, Refusal, Ticket};
use crate::mutant;

impl Machine {
    pub(super) fn on_change(&mut self, ticket: Ticket, wanted: Membership) {
        let refusal = self.not_leader();
        if self.leading().is_none() {
            return self.refuse(ticket, refusal);
        }
        if let Err(refusal) = self.check_change(&wanted).and_then(|()| self.admit(ticket)) {
            return self.refuse(ticket, refusal);
        }
        let next = self.next_membership(wanted);
        self.append_own(Payload::Membership(next));
        self.note_membership();
        self.replicate_to_all();
    }

    fn check_change(&self, wanted: &Membership) -> Result<(), Refusal> {
        // Two changes that do not know of each other can have quorums that do not meet. So the one before
        // must be committed, and by way of an entry of this term: an older leader's change that this member
        // has not seen can then not be committed any more.
        let is_settled = self.log.membership_index() <= self.commit
            && !self.log.membership().is_joint()
            && self.log.term(self.commit) == Some(self.term());
        if !is_settled && !mutant!("M7") {
            return Err(Refusal::ChangeUnderWay);
        }
        if wanted.voters.is_empty() || !wanted.voters.is_disjoint(&wanted.learners) {
            return Err(Refusal::BadMembership);
        }
        let lag = self.settings.promotion_lag;
        let matched = self.matched();
        // Of one that has nothing yet it is not known whether it can be fed at all, however short the log is.
        let least = self.log.start_index().max(1);
        for member in wanted.voters.difference(&self.log.membership().voters) {
            let has = matched.get(member).copied().unwrap_or(0);
            let is_behind = has < least || has.saturating_add(lag) < self.log.last_index();
            if *member != self.id && is_behind {
                return Err(Refusal::NotCaughtUp { member: *member });
            }
        }
        Ok(())
    }

    fn next_membership(&self, wanted: Membership) -> Membership {
        let current = self.log.membership();
        let mut next = wanted;
        next.outgoing = if next.voters == current.voters || mutant!("M8") {
            Default::default()
        } else {
            current.voters.clone()
        };
        for (member, address) in &current.addresses {
            if next.outgoing.contains(member) {
                next.addresses.entry(*member).or_insert_with(|| address.clone());
            }
        }
        next
    }

    /// The newest membership of a leader's log changed: new members are fed, those that left no longer.
    pub(super) fn note_membership(&mut self) {
        let others = self.others();
        let next = self.log.last_index();
        let Some(leading) = self.leading() else { return };
        leading.progress.retain(|member, _| others.contains(member));
        for member in others {
            leading.progress.entry(member).or_insert_with(|| Progress::new(next));
        }
    }
}
