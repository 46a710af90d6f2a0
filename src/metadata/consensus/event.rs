//! What happens to a member.

use bytes::Bytes;

use super::{Index, MemberId, Membership, Message, SnapshotMark, Term, Ticket};

/// What happens to a member. Any event may come at any time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A member said something.
    Message {
        /// Who.
        from: MemberId,
        /// What.
        message: Message,
    },
    /// No leader was heard for the shortest election time-out: others may be voted for.
    LeaderSilent,
    /// No leader was heard for this member's own election time-out: campaign.
    ElectionTimeout,
    /// Time for a leader to tell the others that it is there.
    Heartbeat,
    /// An election time-out has passed for a leader: is a quorum still with it?
    QuorumCheck,
    /// All writes up to this entry are durable.
    Persisted {
        /// The last entry written.
        index: Index,
        /// Its term: an entry of another term at that place is not the one written.
        term: Term,
    },
    /// Append commands, in one write.
    Propose(Vec<(Ticket, Bytes)>),
    /// Prove that this member leads, so that its state may be read.
    Read {
        /// Who asks.
        ticket: Ticket,
    },
    /// Give the group these voters and learners.
    Change {
        /// Who asks.
        ticket: Ticket,
        /// The membership wanted; its `outgoing` is not looked at.
        membership: Membership,
    },
    /// Hand leadership over.
    Transfer {
        /// To whom.
        to: MemberId,
    },
    /// A snapshot of the state up to `mark.index` is durable: the log before `keep_from` may go.
    SnapshotTaken {
        /// The snapshot.
        mark: SnapshotMark,
        /// The first entry to keep, for followers that are a little behind; at most one past the mark.
        keep_from: Index,
    },
    /// The connection to a member broke: what was on its way is lost.
    Unreachable {
        /// The member.
        member: MemberId,
    },
}
