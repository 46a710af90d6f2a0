//! What the simulator adds to a recording of the world: phases, strikes, what nodes say of themselves, what clients
//! do and are told, and what the nodes log.

use crate::runtime::sim::{NOTES_BEGIN, Note};

/// The name of the phase in which everything is healed and the cluster has to come back.
pub const COME_BACK: &str = "come back";

/// What is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Noted {
    /// A phase of the run began; the text is its name.
    Phase = NOTES_BEGIN,
    /// The nemesis struck: the strike's number; the text is its kind.
    Strike,
    /// A node serves.
    Serves,
    /// A node gave up by itself; the text says why.
    GaveUp,
    /// A node leads the metadata group: term.
    Leads,
    /// It does no longer.
    LeadsNoMore,
    /// A broker serves topics: how many; the text is which.
    Owns,
    /// A node's code logged something: 1 error to 4 debug.
    Log,
    /// A client sent a message: its number, the producer; the text is the topic.
    Publish,
    /// It was committed: the message's number, ledger, entry.
    Committed,
    /// It was rejected: the message's number.
    Rejected,
    /// A consumer got a message: its number, ledger, entry; the text is topic, subscription and session.
    Delivered,
    /// A consumer acknowledged a message: the acknowledgement's number, ledger, entry.
    Acknowledge,
    /// It was told that the acknowledgement is stored: its number, ledger, entry.
    Acknowledged,
    /// A client asked metadata: the call's number, the register; the text is the question.
    Ask,
    /// It was answered: the call's number, the register; the text is the answer.
    Answered,
    /// A client's session ended; the text says whose and why.
    SessionEnded,
}

impl Noted {
    /// Every one.
    pub const ALL: [Self; 17] = [
        Self::Phase,
        Self::Strike,
        Self::Serves,
        Self::GaveUp,
        Self::Leads,
        Self::LeadsNoMore,
        Self::Owns,
        Self::Log,
        Self::Publish,
        Self::Committed,
        Self::Rejected,
        Self::Delivered,
        Self::Acknowledge,
        Self::Acknowledged,
        Self::Ask,
        Self::Answered,
        Self::SessionEnded,
    ];
}

impl From<Noted> for Note {
    fn from(noted: Noted) -> Self {
        Self { is_traffic: noted == Noted::Log, ..Self::of(noted as u8) }
    }
}
