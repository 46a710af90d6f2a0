//! What metadata's clients were told in one run, and what the members of its group did.

use crate::metadata::consensus::{Entry, Index, Machine, MemberId, Payload, SnapshotMark, Term};
use crate::metadata::{MemberObserver, Observer};
use crate::runtime::mix;

use super::history::SharedHistory;

/// What a client asked of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterQuestion {
    /// What is in it?
    Read,
    /// Put this in; each value of a run is put once.
    Write {
        /// The value.
        value: u64,
        /// The condition.
        expect: RegisterExpect,
    },
    /// Empty it.
    Delete {
        /// The condition.
        expect: RegisterExpect,
    },
}

/// A condition on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterExpect {
    /// None.
    Any,
    /// It is empty.
    Absent,
    /// It is at this version.
    Version(u64),
}

/// What a client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAnswer {
    /// The value and its version; `None` if it is empty.
    Read(Option<(u64, u64)>),
    /// Written, under this version.
    Written(u64),
    /// Emptied.
    Deleted,
    /// The condition did not hold: this version was found.
    Mismatch(Option<u64>),
    /// Nobody told.
    Unknown,
}

/// One call on one register.
#[derive(Clone, Copy, Debug)]
pub struct RegisterCall {
    /// Which register.
    pub key: u32,
    /// Virtual nanoseconds when it was asked.
    pub asked_at: u64,
    /// When the answer came; never, if the outcome is unknown.
    pub answered_at: u64,
    /// The question.
    pub question: RegisterQuestion,
    /// The answer.
    pub answer: RegisterAnswer,
}

/// One number drawn from a counter.
#[derive(Clone, Copy, Debug)]
pub struct NumberCall {
    /// Virtual nanoseconds when it was asked.
    pub asked_at: u64,
    /// When the answer came.
    pub answered_at: u64,
    /// The number.
    pub number: u64,
}

/// One event of a watch on all registers.
#[derive(Clone, Copy, Debug)]
pub struct WatchSight {
    /// Which opening of the watch.
    pub stream: u32,
    /// Part of the state the stream began with.
    pub is_first_state: bool,
    /// Which register.
    pub key: u32,
    /// The revision of the change.
    pub version: u64,
}

/// An entry of a member's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlace {
    /// Where.
    pub index: Index,
    /// Of which term.
    pub term: Term,
    /// Of what it asks for.
    pub digest: u64,
}

/// Something a member of the metadata group did.
#[derive(Clone, Debug)]
pub enum ConsensusFact {
    /// It led a term from then on.
    Leads {
        /// Who.
        member: u64,
        /// The term.
        term: Term,
        /// Everything up to here is in its snapshot.
        start: Index,
        /// Its log behind that.
        log: Vec<LogPlace>,
    },
    /// It applied an entry.
    Applied {
        /// Who.
        member: u64,
        /// The term it was in then.
        in_term: Term,
        /// What.
        place: LogPlace,
    },
    /// It took another member's state.
    Installed {
        /// Who.
        member: u64,
        /// Up to where.
        index: Index,
    },
}

/// What the clients of metadata were told, and what its members did.
#[derive(Debug, Default)]
pub struct MetadataHistory {
    /// Calls on registers.
    pub registers: Vec<RegisterCall>,
    /// Numbers drawn.
    pub numbers: Vec<NumberCall>,
    /// Events of watches.
    pub sights: Vec<WatchSight>,
    /// What the members did, in order.
    pub consensus: Vec<ConsensusFact>,
    next_value: u64,
    next_stream: u32,
    next_call: u64,
}

impl MetadataHistory {
    /// A value nobody has written.
    pub fn new_value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    /// A fresh number for a call on a register.
    pub fn new_call(&mut self) -> u64 {
        self.next_call += 1;
        self.next_call
    }

    /// A fresh number for a watch.
    pub fn new_stream(&mut self) -> u32 {
        self.next_stream += 1;
        self.next_stream
    }
}

fn place(entry: &Entry) -> LogPlace {
    let fold = |bytes: &[u8]| {
        bytes.chunks(8).fold(bytes.len() as u64, |digest, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(digest ^ u64::from_le_bytes(word))
        })
    };
    let digest = match &entry.payload {
        Payload::Noop => 0,
        Payload::Command(command) => fold(command),
        Payload::Membership(membership) => fold(format!("{membership:?}").as_bytes()),
    };
    LogPlace { index: entry.index, term: entry.term, digest }
}

/// Writes down what members do.
struct Recorder(SharedHistory);

impl MemberObserver for Recorder {
    fn leads(&self, machine: &Machine) {
        let log = machine.log();
        let fact = ConsensusFact::Leads {
            member: machine.id().0,
            term: machine.term(),
            start: log.start_index(),
            log: log.entries().map(place).collect(),
        };
        self.0.lock().metadata.consensus.push(fact);
    }

    fn applied(&self, machine: &Machine, entry: &Entry) {
        let fact = ConsensusFact::Applied {
            member: machine.id().0,
            in_term: machine.term(),
            place: place(entry),
        };
        self.0.lock().metadata.consensus.push(fact);
    }

    fn installed(&self, member: MemberId, mark: &SnapshotMark) {
        let fact = ConsensusFact::Installed { member: member.0, index: mark.index };
        self.0.lock().metadata.consensus.push(fact);
    }
}

/// An observer that writes everything down.
pub fn recorder(history: &SharedHistory) -> Observer {
    Observer(Some(std::sync::Arc::new(Recorder(history.clone()))))
}
