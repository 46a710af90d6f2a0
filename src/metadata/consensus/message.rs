//! What members tell each other. Every message carries the sender's term; each question has one answer.
//! Messages may be lost, late, repeated and out of order.

use bytes::Bytes;

use super::{Entry, Index, SnapshotMark, Term};

/// A message and the term its sender was in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// The sender's term; of a pre-vote, and of its granted answer, the term it would begin.
    pub term: Term,
    /// What it says.
    pub body: Body,
}

/// What a message says, and the file that handles it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// Would you vote for me? Changes nothing (`vote.rs`).
    PreVote {
        /// The asker's last index.
        last_index: Index,
        /// The term of its last entry.
        last_term: Term,
    },
    /// Answer to `PreVote` (`vote.rs`).
    PreVoteAnswer {
        /// Yes.
        granted: bool,
    },
    /// Vote for me (`vote.rs`).
    Vote {
        /// The candidate's last index.
        last_index: Index,
        /// The term of its last entry.
        last_term: Term,
        /// The leader itself asked for this election, so a leader heard lately is no reason to refuse.
        transfer: bool,
    },
    /// Answer to `Vote` (`vote.rs`).
    VoteAnswer {
        /// The vote was given, and is durable.
        granted: bool,
    },
    /// Entries, or none (a heartbeat) (`append.rs`).
    Append(Append),
    /// Answer to `Append` (`replicate.rs`).
    AppendAnswer(AppendAnswer),
    /// A part of the leader's snapshot (`snapshot.rs`).
    Snapshot(SnapshotPart),
    /// How far the snapshot has got (`snapshot.rs`).
    SnapshotAnswer {
        /// The snapshot's index.
        index: Index,
        /// The byte wanted next.
        next: u64,
        /// All of it is durable and applied.
        done: bool,
    },
    /// Campaign now: the leader hands over (`transfer.rs`).
    TimeoutNow,
}

/// Entries behind a place where both logs must agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Append {
    /// The place before the first entry.
    pub previous_index: Index,
    /// The term of the entry there.
    pub previous_term: Term,
    /// The entries, without a gap.
    pub entries: Vec<Entry>,
    /// The leader's commit index.
    pub commit: Index,
    /// The read round this proves leadership for, once answered.
    pub round: u64,
}

/// What came of an `Append`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppendAnswer {
    /// The round of the `Append`.
    pub round: u64,
    /// What came of it.
    pub result: AppendResult,
}

/// What came of an `Append`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppendResult {
    /// Both logs agree up to this index, durably.
    Matched(Index),
    /// The entry at `previous_index` is missing or another.
    Conflict {
        /// The `previous_index` refused.
        refused: Index,
        /// The first index of the follower's term there, or the first one it lacks.
        hint_index: Index,
        /// The follower's term there; `None` if it lacks the entry.
        hint_term: Option<Term>,
    },
}

/// A piece of a snapshot's bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotPart {
    /// Which snapshot.
    pub mark: SnapshotMark,
    /// Where in its bytes the piece begins.
    pub offset: u64,
    /// The piece.
    pub data: Bytes,
    /// The piece is the last.
    pub last: bool,
}
