//! What the log is made of.

use bytes::Bytes;

use super::Membership;

/// Number of an election. 0 before the first.
pub type Term = u64;
/// Place in the log, from 1. 0 is the place before the first entry; its term is 0.
pub type Index = u64;

/// What an entry asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payload {
    /// Nothing: the first entry of each leader, whose commit commits everything before it.
    Noop,
    /// A command of the state machine, opaque here.
    Command(Bytes),
    /// The group is made of these members from this entry on, committed or not.
    Membership(Membership),
}

/// One place of the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Where it stands.
    pub index: Index,
    /// The term of the leader that put it there. With `index` it names the entry: no two differ.
    pub term: Term,
    /// What it asks for.
    pub payload: Payload,
}

impl Entry {
    /// Bytes it takes in a message or in memory, roughly.
    pub fn cost(&self) -> usize {
        32 + match &self.payload {
            Payload::Noop => 0,
            Payload::Command(command) => command.len(),
            Payload::Membership(membership) => membership.cost(),
        }
    }
}

/// What a member must never forget, beside its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HardState {
    /// The newest term heard of.
    pub term: Term,
    /// Whom this member voted for in that term.
    pub vote: Option<super::MemberId>,
}
