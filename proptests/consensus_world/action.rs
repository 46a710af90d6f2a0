//! What can happen next, and how often.

use std::sync::Arc;

use bytes::Bytes;
use seawall::metadata::consensus::{Event, MemberId, Membership, Role, Ticket};

use super::{Flying, Violation, World, member};

/// One thing that can happen.
#[derive(Clone, Debug)]
pub enum Action {
    /// A message arrives; with a number, its receiver crashes after so many effects. `again`: a copy of it
    /// stays on its way.
    Deliver { flying: Arc<Flying>, crash: Option<usize>, again: bool },
    /// An event of its own at a member.
    Event { id: MemberId, event: Event, crash: Option<usize> },
    /// A crash between two events.
    Crash(MemberId),
    /// A snapshot, keeping so many entries before it.
    Snapshot { id: MemberId, keep: u64 },
}

/// How much of each thing may still happen. Part of a state: less can happen with less left.
#[derive(Clone, Debug, Default, Hash)]
pub struct Budget {
    pub elections: u8,
    pub heartbeats: u8,
    pub proposals: u8,
    pub reads: u8,
    pub crashes: u8,
    /// Crashes in the middle of an event's effects, beside those between events.
    pub torn: u8,
    pub duplicates: u8,
    pub snapshots: u8,
    pub changes: Vec<Membership>,
    pub transfers: u8,
    pub tickets: u64,
}

impl World {
    /// Everything that can happen now within the budget.
    pub fn actions(&self, budget: &Budget) -> Vec<Action> {
        let mut actions = Vec::new();
        for flying in self.network.keys() {
            let flying = Arc::clone(flying);
            actions.push(Action::Deliver {
                flying: Arc::clone(&flying),
                crash: None,
                again: false,
            });
            if budget.duplicates > 0 {
                actions.push(Action::Deliver { flying, crash: None, again: true });
            }
        }
        // Before the first election all members are alike: one stands for all.
        let is_first = self.history.terms() == 0 && self.network.is_empty();
        for node in self.nodes.values() {
            let id = node.machine.id();
            let mut own = |event| actions.push(Action::Event { id, event, crash: None });
            let ticket = Ticket(budget.tickets + 1);
            let is_leader = node.machine.role() == Role::Leader;
            if budget.elections > 0 && !is_leader && (!is_first || id == member(1)) {
                own(Event::ElectionTimeout);
            }
            if is_leader {
                if budget.heartbeats > 0 {
                    own(Event::Heartbeat);
                }
                if budget.proposals > 0 {
                    own(propose(ticket));
                }
                if budget.reads > 0 {
                    own(Event::Read { ticket });
                }
                if let Some(membership) = budget.changes.last() {
                    own(Event::Change { ticket, membership: membership.clone() });
                }
                if budget.transfers > 0 {
                    for to in self.nodes.keys().filter(|to| **to != id) {
                        own(Event::Transfer { to: *to });
                    }
                }
            }
            if budget.crashes > 0 && !is_first {
                actions.push(Action::Crash(id));
            }
            if budget.snapshots > 0 && node.applied > node.disk.snapshot.index {
                actions.push(Action::Snapshot { id, keep: 0 });
            }
        }
        actions
    }

    /// Lets it happen. Answers how many effects there were.
    pub fn act(&mut self, action: &Action, budget: &mut Budget) -> Result<usize, Violation> {
        match action {
            Action::Deliver { flying, crash, again } => {
                if *again {
                    budget.duplicates -= 1;
                } else {
                    self.take(flying);
                }
                budget.torn -= u8::from(crash.is_some());
                let event = Event::Message { from: flying.from, message: flying.message.clone() };
                self.step(flying.to, event, *crash)
            }
            Action::Event { id, event, crash } => {
                budget.torn -= u8::from(crash.is_some());
                match event {
                    Event::ElectionTimeout => budget.elections -= 1,
                    Event::Heartbeat => budget.heartbeats -= 1,
                    Event::Propose(_) => budget.proposals -= 1,
                    Event::Read { .. } => budget.reads -= 1,
                    Event::Change { .. } => {
                        budget.changes.pop();
                    }
                    Event::Transfer { .. } => budget.transfers -= 1,
                    _ => {}
                }
                budget.tickets += 1;
                self.step(*id, event.clone(), *crash)
            }
            Action::Crash(id) => {
                budget.crashes -= 1;
                self.crash(*id);
                Ok(0)
            }
            Action::Snapshot { id, keep } => {
                budget.snapshots = budget.snapshots.saturating_sub(1);
                self.snapshot(*id, *keep)?;
                Ok(0)
            }
        }
    }

    /// A member takes a snapshot.
    pub fn snapshot(&mut self, id: MemberId, keep: u64) -> Result<(), Violation> {
        let mut node = Arc::clone(&self.nodes[&id]);
        let event = Arc::make_mut(&mut node).take_snapshot(keep);
        self.nodes.insert(id, node);
        match event {
            Some(event) => self.step(id, event, None).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// A proposal of a command that names its ticket.
pub fn propose(ticket: Ticket) -> Event {
    Event::Propose(vec![(ticket, Bytes::copy_from_slice(&ticket.0.to_le_bytes()))])
}

impl Action {
    /// The same with a crash after so many effects, if that can be.
    pub fn torn(&self, after: usize) -> Option<Self> {
        match self.clone() {
            Self::Deliver { flying, again: false, .. } => {
                Some(Self::Deliver { flying, crash: Some(after), again: false })
            }
            Self::Event { id, event, .. } => Some(Self::Event { id, event, crash: Some(after) }),
            _ => None,
        }
    }
}
