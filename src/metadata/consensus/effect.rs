//! What is to be done about an event, in order.

use super::{Entry, HardState, Index, MemberId, Membership, Message, Term};

/// Who asked for something; drawn by the caller, given back in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a snapshot stands for: the state after `index`, and the group there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotMark {
    /// The last entry in it.
    pub index: Index,
    /// That entry's term.
    pub term: Term,
    /// The newest membership at or before `index`.
    pub membership: Membership,
}

/// One write to the durable log. After it the log ends with `entries`: what stood at the index of the first
/// one and behind is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Write {
    /// Term and vote, if they changed.
    pub hard_state: Option<HardState>,
    /// Entries without a gap, or none.
    pub entries: Vec<Entry>,
}

/// Why a request was turned down. Nothing was changed and nothing will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refusal {
    /// Another member leads, or none does.
    #[error("this node does not lead the metadata group")]
    NotLeader {
        /// Who leads, as far as is known.
        leader: Option<MemberId>,
    },
    /// As many requests are under way as are allowed, or leadership is being handed over.
    #[error("the metadata leader is busy")]
    Busy,
    /// Another membership change is under way, or this leader has not committed anything yet.
    #[error("a membership change is under way")]
    ChangeUnderWay,
    /// The membership asked for has no voter, or a member that is both voter and learner.
    #[error("not a membership a group can have")]
    BadMembership,
    /// A member that is to vote has not got the log yet.
    #[error("member {member} has not caught up")]
    NotCaughtUp {
        /// The member.
        member: MemberId,
    },
}

/// What is to be done. Performed one after the other, each finished before the next begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write and sync. Afterwards `Event::Persisted` with the last entry, if there was one.
    Persist(Write),
    /// Send; may be lost.
    Send {
        /// To whom.
        to: MemberId,
        /// What.
        message: Message,
    },
    /// Read a piece of the snapshot from disk and send it as `Body::Snapshot`, under this term.
    SendSnapshot {
        /// To whom.
        to: MemberId,
        /// The term to send under.
        term: Term,
        /// Which snapshot.
        mark: SnapshotMark,
        /// Where the piece begins.
        offset: u64,
    },
    /// Keep a piece of a snapshot being received. A piece at 0 begins anew.
    StorePart {
        /// Where it belongs.
        offset: u64,
        /// The piece.
        data: bytes::Bytes,
    },
    /// The pieces received are a whole snapshot: make it durable and the state, and begin the log anew
    /// behind it; in this order.
    InstallSnapshot {
        /// What it stands for.
        mark: SnapshotMark,
        /// Term and vote, which begin the new log.
        hard_state: HardState,
        /// Entries of the old log that still hold, behind the snapshot.
        entries: Vec<Entry>,
    },
    /// Apply these committed entries to the state machine.
    Apply(Vec<Entry>),
    /// The proposal stands at this index, now applied: answer what applying it gave.
    Committed {
        /// Who asked.
        ticket: Ticket,
        /// Where.
        index: Index,
    },
    /// The proposal is certainly not in the log, or the request was never begun.
    Refused {
        /// Who asked.
        ticket: Ticket,
        /// Why.
        refusal: Refusal,
    },
    /// Whether the proposal will be committed is no longer followed here: its outcome is unknown.
    Unknown {
        /// Who asked.
        ticket: Ticket,
    },
    /// The state after `index` answers the read.
    ReadReady {
        /// Who asked.
        ticket: Ticket,
        /// What must be applied first.
        index: Index,
    },
    /// Begin the election time-out anew, with a new draw.
    RestartElectionTimer,
    /// Begin heartbeat and quorum timers: this member leads.
    StartLeaderTimers,
    /// The newest membership of the log changed.
    MembershipChanged(Membership),
}
