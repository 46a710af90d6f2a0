//! The state of one member and the one function that changes it; which action handles which event.

use std::collections::{BTreeMap, BTreeSet};

use super::progress::Progress;
use super::read_index::Reads;
use super::{
    Body, Effect, Entry, Event, HardState, Index, Log, MemberId, Membership, Message, Refusal,
    Settings, SnapshotMark, Term, Ticket, Write,
};
use crate::{invariant, mutant};

/// What a member found on its disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Term and vote.
    pub hard_state: HardState,
    /// The newest snapshot.
    pub snapshot: SnapshotMark,
    /// The log behind it.
    pub entries: Vec<Entry>,
}

impl Restored {
    /// What each founding member begins with: an empty state at index 1 of term 1, so that a member that
    /// joins later, with nothing, is sent a snapshot and with it the membership.
    pub fn founding(membership: Membership) -> Self {
        Self {
            hard_state: HardState { term: 1, vote: None },
            snapshot: SnapshotMark { index: 1, term: 1, membership },
            entries: Vec::new(),
        }
    }
}

/// What a member is in its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Takes entries from a leader, or waits for one.
    Follower,
    /// Asks whether it could win an election.
    PreCandidate,
    /// Asks for votes.
    Candidate,
    /// Puts entries into the log.
    Leader,
}

/// A role with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Follower,
    /// Who said yes, this member included.
    PreCandidate {
        granted: BTreeSet<MemberId>,
    },
    /// Who voted for this member, itself included.
    Candidate {
        granted: BTreeSet<MemberId>,
    },
    Leader(Box<Leading>),
}

/// What only a leader knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    /// Each other member.
    pub(super) progress: BTreeMap<MemberId, Progress>,
    /// This member's own log is durable up to here.
    pub(super) persisted: Index,
    /// Proposals not yet committed, by index.
    pub(super) proposals: BTreeMap<Index, (Term, Ticket)>,
    pub(super) reads: Reads,
    /// Whom leadership is being handed to, and whether a quorum check has passed since it began.
    pub(super) transfer: Option<(MemberId, bool)>,
}

/// A snapshot being received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiving {
    pub(super) mark: SnapshotMark,
    pub(super) term: Term,
    pub(super) next: u64,
}

/// One member of the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    pub(super) id: MemberId,
    pub(super) settings: Settings,
    pub(super) hard_state: HardState,
    pub(super) log: Log,
    pub(super) commit: Index,
    pub(super) part: Part,
    /// The leader of this term, once heard.
    pub(super) leader: Option<MemberId>,
    /// A leader was heard within the shortest election time-out: nobody else is voted for.
    pub(super) is_quiet: bool,
    pub(super) receiving: Option<Receiving>,
    pub(super) effects: Vec<Effect>,
}

impl Machine {
    /// A member that begins, or begins again, with what was on its disk.
    pub fn restore(id: MemberId, settings: Settings, restored: Restored) -> Self {
        let commit = restored.snapshot.index;
        let mut log = Log::behind(restored.snapshot);
        for entry in restored.entries {
            log.push(entry);
        }
        Self {
            id,
            settings,
            hard_state: restored.hard_state,
            log,
            commit,
            part: Part::Follower,
            leader: None,
            is_quiet: false,
            receiving: None,
            effects: Vec::new(),
        }
    }

    /// Handles one event. The effects must be performed in order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let members = self.log.membership_index();
        match event {
            Event::Message { from, message } => self.on_message(from, message),
            Event::LeaderSilent => self.on_leader_silent(),
            Event::ElectionTimeout => self.on_election_timeout(),
            Event::Heartbeat => self.on_heartbeat(),
            Event::QuorumCheck => self.on_quorum_check(),
            Event::Persisted { index, term } => self.on_persisted(index, term),
            Event::Propose(commands) => self.on_propose(commands),
            Event::Read { ticket } => self.on_read(ticket),
            Event::Change { ticket, membership } => self.on_change(ticket, membership),
            Event::Transfer { to } => self.on_transfer(to),
            Event::SnapshotTaken { mark, keep_from } => self.on_snapshot_taken(mark, keep_from),
            Event::Unreachable { member } => self.on_unreachable(member),
        }
        if self.log.membership_index() != members {
            let membership = self.log.membership().clone();
            self.effects.push(Effect::MembershipChanged(membership));
        }
        std::mem::take(&mut self.effects)
    }

    fn on_message(&mut self, from: MemberId, message: Message) {
        if from == self.id {
            return;
        }
        let Message { term, body } = message;
        // These two speak of a term that has not begun and may never.
        match body {
            Body::PreVote { last_index, last_term } => {
                return self.on_pre_vote(from, term, last_index, last_term);
            }
            Body::PreVoteAnswer { granted } if granted => {
                return self.on_pre_vote_granted(from, term);
            }
            _ => {}
        }
        if term > self.term() {
            if let Body::Vote { transfer: false, .. } = body
                && self.refuses_elections()
            {
                crate::reached!("consensus: a vote was not looked at while the leader is heard");
                return;
            }
            self.become_follower(term);
        }
        if term < self.term() && !(mutant!("M20") && matches!(body, Body::AppendAnswer(_))) {
            return self.on_old_message(from, &body);
        }
        match body {
            Body::PreVote { .. } | Body::PreVoteAnswer { .. } => {}
            Body::Vote { last_index, last_term, .. } => self.on_vote(from, last_index, last_term),
            Body::VoteAnswer { granted } => self.on_vote_answer(from, granted),
            Body::Append(append) => self.on_append(from, append),
            Body::AppendAnswer(answer) => self.on_append_answer(from, answer),
            Body::Snapshot(part) => self.on_snapshot_part(from, part),
            Body::SnapshotAnswer { index, next, done } => {
                self.on_snapshot_answer(from, index, next, done);
            }
            Body::TimeoutNow => self.on_timeout_now(),
        }
    }

    /// Whoever still acts in an older term must hear of the newer one, or it would go on for ever.
    fn on_old_message(&mut self, from: MemberId, body: &Body) {
        match body {
            Body::Append(_) | Body::Snapshot(_) => {
                let answer = super::AppendAnswer {
                    round: 0,
                    result: super::AppendResult::Conflict {
                        refused: 0,
                        hint_index: 0,
                        hint_term: None,
                    },
                };
                self.send(from, Body::AppendAnswer(answer));
            }
            Body::Vote { .. } => self.send(from, Body::VoteAnswer { granted: false }),
            _ => {}
        }
    }

    /// Enters a term as follower, or steps down within this one (`term` is the current one).
    pub(super) fn become_follower(&mut self, term: Term) {
        self.give_up_leading();
        self.part = Part::Follower;
        if term > self.term() {
            self.leader = None;
            self.is_quiet = false;
            self.receiving = None;
            self.persist_hard_state(HardState { term, vote: None });
        }
    }

    /// Answers everyone who waits for this leader. Their entries may still be committed by the next one.
    fn give_up_leading(&mut self) {
        let Part::Leader(leading) = &mut self.part else { return };
        let proposals = std::mem::take(&mut leading.proposals);
        let reads = std::mem::take(&mut leading.reads);
        self.leader = None;
        for (index, (_, ticket)) in proposals {
            self.effects.push(match mutant!("P8") {
                true => Effect::Committed { ticket, index },
                false => Effect::Unknown { ticket },
            });
        }
        for ticket in reads.into_tickets() {
            self.refuse(ticket, Refusal::NotLeader { leader: None });
        }
        self.effects.push(Effect::RestartElectionTimer);
    }

    /// Term and vote, durable before anything that follows.
    pub(super) fn persist_hard_state(&mut self, hard_state: HardState) {
        invariant!(hard_state.term >= self.hard_state.term, "the term went back");
        self.hard_state = hard_state;
        self.effects
            .push(Effect::Persist(Write { hard_state: Some(hard_state), entries: Vec::new() }));
    }

    pub(super) fn send(&mut self, to: MemberId, body: Body) {
        let term = self.term();
        self.effects.push(Effect::Send { to, message: Message { term, body } });
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, refusal: Refusal) {
        self.effects.push(Effect::Refused { ticket, refusal });
    }

    pub(super) fn not_leader(&self) -> Refusal {
        Refusal::NotLeader { leader: self.leader }
    }

    pub(super) fn others(&self) -> Vec<MemberId> {
        self.log.membership().members().into_iter().filter(|member| *member != self.id).collect()
    }

    pub(super) fn leading(&mut self) -> Option<&mut Leading> {
        match &mut self.part {
            Part::Leader(leading) => Some(leading),
            _ => None,
        }
    }

    /// This member.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// The newest term heard of.
    pub fn term(&self) -> Term {
        self.hard_state.term
    }

    /// Term and vote.
    pub fn hard_state(&self) -> HardState {
        self.hard_state
    }

    /// What it is in this term.
    pub fn role(&self) -> Role {
        match self.part {
            Part::Follower => Role::Follower,
            Part::PreCandidate { .. } => Role::PreCandidate,
            Part::Candidate { .. } => Role::Candidate,
            Part::Leader(_) => Role::Leader,
        }
    }

    /// The leader of this term, itself included, once known.
    pub fn leader(&self) -> Option<MemberId> {
        self.leader
    }

    /// Everything up to here is committed.
    pub fn commit(&self) -> Index {
        self.commit
    }

    /// The log held in memory.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// How far each other member's log is known to agree; empty unless this member leads.
    pub fn matched(&self) -> BTreeMap<MemberId, Index> {
        match &self.part {
            Part::Leader(leading) => leading
                .progress
                .iter()
                .map(|(member, progress)| (*member, progress.matched))
                .collect(),
            _ => BTreeMap::new(),
        }
    }
}
