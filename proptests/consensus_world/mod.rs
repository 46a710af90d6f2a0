//! A group of consensus machines without a runtime: messages lie in a heap until someone delivers them,
//! disks keep exactly what was persisted, and every effect is held against what must be true.

mod action;
mod history;
mod node;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use seawall::metadata::consensus::{
    AppendResult, Body, Effect, Event, Index, Machine, MemberId, Membership, Message, Restored,
    Role, Settings, SnapshotPart,
};

pub use action::{Action, Budget, propose};
pub use history::{History, Violation};
pub use node::Node;

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flying {
    pub from: MemberId,
    pub to: MemberId,
    pub message: Message,
}

/// The group, its network and what has been seen so far.
#[derive(Clone)]
pub struct World {
    pub nodes: BTreeMap<MemberId, Arc<Node>>,
    /// Each with how many copies of it are on their way.
    pub network: BTreeMap<Arc<Flying>, u8>,
    pub history: Arc<History>,
    pub settings: Settings,
    /// Late messages that can change nothing any more are forgotten. Sound, but not under every mutant.
    pub prunes: bool,
}

pub fn member(number: u64) -> MemberId {
    MemberId(number)
}

/// A membership of these voters and learners.
pub fn membership(voters: &[u64], learners: &[u64]) -> Membership {
    let named = |number: &u64| (member(*number), format!("n{number}"));
    let mut membership = Membership::of_voters(voters.iter().map(named));
    membership.learners = learners.iter().map(|number| member(*number)).collect();
    membership.addresses.extend(learners.iter().map(named));
    membership
}

impl World {
    /// `nodes` members, of which `voters` found the group; the others have nothing yet.
    pub fn new(nodes: u64, voters: &[u64], settings: Settings) -> Self {
        let founding = Restored::founding(membership(voters, &[]));
        let nodes = (1..=nodes)
            .map(|number| {
                let restored =
                    if voters.contains(&number) { founding.clone() } else { Restored::default() };
                (member(number), Arc::new(Node::new(member(number), settings, restored)))
            })
            .collect();
        Self {
            nodes,
            network: BTreeMap::new(),
            history: Arc::new(History::new()),
            settings,
            prunes: true,
        }
    }

    pub fn machine(&self, id: MemberId) -> &Machine {
        &self.nodes[&id].machine
    }

    pub fn leaders(&self) -> Vec<MemberId> {
        let leads = |node: &&Arc<Node>| node.machine.role() == Role::Leader;
        self.nodes.values().filter(leads).map(|node| node.machine.id()).collect()
    }

    /// Takes one copy off the network.
    pub fn take(&mut self, flying: &Arc<Flying>) {
        if let Some(copies) = self.network.get_mut(flying) {
            *copies -= 1;
            if *copies == 0 {
                self.network.remove(flying);
            }
        }
    }

    /// Lets `event` happen at a member and performs the effects, all of them or, followed by a crash and a
    /// restart, only the first `until`. Answers how many there were.
    pub fn step(
        &mut self,
        id: MemberId,
        event: Event,
        until: Option<usize>,
    ) -> Result<usize, Violation> {
        let mut node = Arc::clone(&self.nodes[&id]);
        let changed = Arc::make_mut(&mut node);
        let mut performed = 0;
        let mut queue = vec![event];
        let mut crashed = false;
        'all: while let Some(event) = queue.pop() {
            if let Event::Read { ticket } = &event {
                Arc::make_mut(&mut self.history).read_began(*ticket);
            }
            let effects = changed.machine.step(event);
            let mut persisted = None;
            for effect in effects {
                if until == Some(performed) {
                    crashed = true;
                    break 'all;
                }
                performed += 1;
                if let Some(event) = self.perform(changed, effect)? {
                    persisted = Some(event);
                }
            }
            queue.extend(persisted);
        }
        if crashed {
            changed.restart(self.settings);
        }
        changed.rehash();
        self.nodes.insert(id, node);
        self.prune();
        self.check(id)?;
        Ok(performed)
    }

    /// A crash between two events: what is only in memory is gone.
    pub fn crash(&mut self, id: MemberId) {
        let mut node = Arc::clone(&self.nodes[&id]);
        let changed = Arc::make_mut(&mut node);
        changed.restart(self.settings);
        changed.rehash();
        self.nodes.insert(id, node);
        self.prune();
    }

    fn perform(&mut self, node: &mut Node, effect: Effect) -> Result<Option<Event>, Violation> {
        let from = node.machine.id();
        match effect {
            Effect::Persist(write) => return Ok(node.persist(write)),
            Effect::Send { to, message } => self.post(from, to, message),
            Effect::SendSnapshot { to, term, mark, offset } => {
                let Some(part) = node.snapshot_part(&mark, offset) else { return Ok(None) };
                self.post(from, to, Message { term, body: Body::Snapshot(part) });
            }
            Effect::StorePart { offset, data } => node.store_part(offset, &data),
            Effect::InstallSnapshot { mark, hard_state, entries } => {
                node.install(mark, hard_state, entries);
                self.history.check_installed(node)?;
            }
            Effect::Apply(entries) => {
                for entry in entries {
                    node.apply(&entry);
                    Arc::make_mut(&mut self.history).applied(node, &entry, &self.nodes)?;
                }
            }
            Effect::Committed { ticket, index } => {
                Arc::make_mut(&mut self.history).committed(ticket, index)?;
            }
            Effect::ReadReady { ticket, index } => {
                Arc::make_mut(&mut self.history).read_answered(ticket, index)?;
            }
            Effect::Refused { .. }
            | Effect::Unknown { .. }
            | Effect::RestartElectionTimer
            | Effect::StartLeaderTimers
            | Effect::MembershipChanged(_) => {}
        }
        Ok(None)
    }

    fn post(&mut self, from: MemberId, to: MemberId, message: Message) {
        let copies = self.network.entry(Arc::new(Flying { from, to, message })).or_insert(0);
        // Two equal messages and more can do the same things.
        *copies = (*copies + 1).min(2);
    }

    /// True if the message can never again do anything but tell a leader what it knows already.
    fn is_dead(&self, flying: &Flying) -> bool {
        let Some(receiver) = self.nodes.get(&flying.to).map(|node| &node.machine) else {
            return true;
        };
        if !self.prunes {
            return false;
        }
        let (term, now) = (flying.message.term, receiver.term());
        let is_over = |role| term < now || (term == now && receiver.role() != role);
        match &flying.message.body {
            Body::VoteAnswer { granted } => is_over(Role::Candidate) || (!granted && term <= now),
            Body::AppendAnswer(answer) => {
                is_over(Role::Leader)
                    || (term == now
                        && matches!(answer.result, AppendResult::Matched(index)
                            if self.is_known(receiver, flying.from, index, answer.round)))
            }
            Body::SnapshotAnswer { .. } => is_over(Role::Leader),
            Body::TimeoutNow => term < now,
            Body::Append(append) => {
                let log = receiver.log();
                let end = append.entries.last().map_or(append.previous_index, |entry| entry.index);
                term == now
                    && receiver.leader() == Some(flying.from)
                    && append.commit <= receiver.commit()
                    && log.term(append.previous_index) == Some(append.previous_term)
                    && append.entries.iter().all(|entry| log.term(entry.index) == Some(entry.term))
                    && self.is_known(self.machine(flying.from), flying.to, end, append.round)
            }
            _ => false,
        }
    }

    /// True if this leader, if it still is one, would learn nothing from this answer.
    fn is_known(&self, leader: &Machine, from: MemberId, index: Index, round: u64) -> bool {
        leader.role() != Role::Leader
            || (round == 0 && leader.matched().get(&from).is_none_or(|matched| index <= *matched))
    }

    fn prune(&mut self) {
        let dead: Vec<Arc<Flying>> =
            self.network.keys().filter(|flying| self.is_dead(flying)).cloned().collect();
        for flying in dead {
            self.network.remove(&flying);
        }
    }

    fn check(&mut self, changed: MemberId) -> Result<(), Violation> {
        let machine = &self.nodes[&changed].machine;
        if machine.role() == Role::Leader {
            let news = self.history.leader_of(machine.term()) != Some(changed);
            if news {
                Arc::make_mut(&mut self.history).leads(machine)?;
            }
        }
        for other in self.nodes.values().filter(|other| other.machine.id() != changed) {
            history::check_logs_match(machine, &other.machine)?;
        }
        Ok(())
    }

    /// A number equal for equal states; different ones share it with a chance of 2^-128.
    pub fn fingerprint(&self, budget: &Budget) -> u128 {
        let half = |salt: u64| {
            let mut hasher = std::hash::DefaultHasher::new();
            salt.hash(&mut hasher);
            for node in self.nodes.values() {
                node.hash.hash(&mut hasher);
            }
            self.network.hash(&mut hasher);
            self.history.hash(&mut hasher);
            budget.hash(&mut hasher);
            hasher.finish()
        };
        (u128::from(half(1)) << 64) | u128::from(half(2))
    }
}

/// A piece of four bytes.
pub fn part_of(
    mark: &seawall::metadata::consensus::SnapshotMark,
    state: u64,
    offset: u64,
) -> SnapshotPart {
    let bytes = state.to_le_bytes();
    let from = usize::try_from(offset).unwrap_or(8).min(8);
    let to = (from + 4).min(8);
    SnapshotPart {
        mark: mark.clone(),
        offset,
        data: bytes::Bytes::copy_from_slice(&bytes[from..to]),
        last: to == 8,
    }
}
