//! Elections: pre-vote, vote, and the first acts of a leader.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::{Leading, Part};
use super::progress::Progress;
use super::read_index::Reads;
use super::{Body, Effect, HardState, Index, Machine, MemberId, Message, Payload, Term};
use crate::{mutant, reached};

impl Machine {
    pub(super) fn on_leader_silent(&mut self) {
        self.is_quiet = false;
    }

    pub(super) fn on_election_timeout(&mut self) {
        if matches!(self.part, Part::Leader(_)) {
            return;
        }
        self.is_quiet = false;
        self.leader = None;
        self.effects.push(Effect::RestartElectionTimer);
        if !self.may_campaign() {
            self.part = Part::Follower;
            return;
        }
        if self.settings.pre_vote {
            self.begin_pre_vote();
        } else {
            self.campaign(false);
        }
    }

    /// Asks first, so that a member that was cut off does not depose a leader the others can hear.
    fn begin_pre_vote(&mut self) {
        self.part = Part::PreCandidate { granted: BTreeSet::from([self.id]) };
        let term = self.term() + 1;
        let (last_index, last_term) = (self.log.last_index(), self.log.last_term());
        for to in self.others() {
            let body = Body::PreVote { last_index, last_term };
            self.effects.push(Effect::Send { to, message: Message { term, body } });
        }
        self.campaign_if_granted();
    }

    pub(super) fn on_pre_vote(
        &mut self,
        from: MemberId,
        term: Term,
        last_index: Index,
        last_term: Term,
    ) {
        let granted = term > self.term()
            && !self.refuses_elections()
            && self.is_up_to_date(last_index, last_term);
        // A yes names the term asked for, a no the term this member is in.
        let term = if granted { term } else { self.term() };
        let body = Body::PreVoteAnswer { granted };
        self.effects.push(Effect::Send { to: from, message: Message { term, body } });
    }

    pub(super) fn on_pre_vote_granted(&mut self, from: MemberId, term: Term) {
        let asked = self.term() + 1;
        if let Part::PreCandidate { granted } = &mut self.part
            && term == asked
        {
            granted.insert(from);
            self.campaign_if_granted();
        }
    }

    fn campaign_if_granted(&mut self) {
        let Part::PreCandidate { granted } = &self.part else { return };
        if self.log.membership().is_quorum(|member| granted.contains(&member)) {
            self.campaign(false);
        }
    }

    /// Begins a term and asks for its votes.
    pub(super) fn campaign(&mut self, transfer: bool) {
        let term = self.term() + 1;
        self.leader = None;
        self.is_quiet = false;
        self.receiving = None;
        self.part = Part::Candidate { granted: BTreeSet::from([self.id]) };
        self.persist_hard_state(HardState { term, vote: Some(self.id) });
        self.effects.push(Effect::RestartElectionTimer);
        let last_index = self.log.last_index();
        let last_term = if mutant!("M11") { self.term() } else { self.log.last_term() };
        for to in self.others() {
            self.send(to, Body::Vote { last_index, last_term, transfer });
        }
        self.lead_if_elected();
    }

    pub(super) fn on_vote(&mut self, from: MemberId, last_index: Index, last_term: Term) {
        let is_free = match self.hard_state.vote {
            None => true,
            Some(voted) => voted == from,
        };
        let granted = is_free && self.leader.is_none() && self.is_up_to_date(last_index, last_term);
        if granted {
            let hard_state = HardState { term: self.term(), vote: Some(from) };
            if mutant!("M5") {
                self.hard_state = hard_state;
            } else if self.hard_state != hard_state {
                self.persist_hard_state(hard_state);
            }
            self.part = Part::Follower;
            self.effects.push(Effect::RestartElectionTimer);
        }
        self.send(from, Body::VoteAnswer { granted });
    }

    pub(super) fn on_vote_answer(&mut self, from: MemberId, granted: bool) {
        if let Part::Candidate { granted: votes } = &mut self.part
            && granted
        {
            votes.insert(from);
            self.lead_if_elected();
        }
    }

    fn lead_if_elected(&mut self) {
        let Part::Candidate { granted } = &self.part else { return };
        if self.log.membership().is_quorum(|member| granted.contains(&member)) {
            self.become_leader();
        }
    }

    /// Voters campaign, and so does who was one in any membership that may still be the committed one: the only
    /// members that have the entry which removes them may be they, and then nobody else can be elected. What
    /// is known to be committed may lag behind by several memberships. (Ongaro's dissertation, 4.2.2.)
    pub(super) fn may_campaign(&self) -> bool {
        self.log.votes_since(self.commit, self.id)
    }

    fn become_leader(&mut self) {
        let next = self.log.last_index() + 1;
        let progress: BTreeMap<MemberId, Progress> =
            self.others().into_iter().map(|member| (member, Progress::new(next))).collect();
        self.leader = Some(self.id);
        self.part = Part::Leader(Box::new(Leading {
            progress,
            // A member performs each write before it hears of anything else.
            persisted: self.log.last_index(),
            proposals: BTreeMap::new(),
            reads: Reads::default(),
            transfer: None,
        }));
        self.effects.push(Effect::StartLeaderTimers);
        self.append_own(Payload::Noop);
        self.replicate_to_all();
    }

    /// While a leader is heard, nobody else is helped to depose it. A leader that a quorum has left finds
    /// out by its own check.
    pub(super) fn refuses_elections(&self) -> bool {
        self.settings.pre_vote && (self.is_quiet || matches!(self.part, Part::Leader(_)))
    }

    /// The other log holds at least everything committed, as far as this member can tell.
    fn is_up_to_date(&self, last_index: Index, last_term: Term) -> bool {
        if mutant!("M-stale-vote") {
            return last_term >= self.log.last_term();
        }
        let is_up_to_date =
            (last_term, last_index) >= (self.log.last_term(), self.log.last_index());
        if !is_up_to_date {
            reached!("consensus: a vote was refused to a log that is behind");
        }
        is_up_to_date
    }
}
