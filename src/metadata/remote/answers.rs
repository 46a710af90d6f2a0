//! Answers that may say that another member leads.

use tonic::Streaming;

use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::failure::Kind;

/// An answer to a change: the store, not the way to it, said something.
pub(super) fn is_unknown(answer: &wire::ChangeAnswer) -> bool {
    let kind = answer.failure.as_ref().and_then(|failure| failure.kind.as_ref());
    matches!(kind, Some(Kind::OutcomeUnknown(_)))
}

/// The store does not know the client that asked.
pub(super) fn is_forgotten(answer: &wire::ChangeAnswer) -> bool {
    let kind = answer.failure.as_ref().and_then(|failure| failure.kind.as_ref());
    matches!(kind, Some(Kind::ClientForgotten(_)))
}

/// An answer of the metadata service.
pub(super) trait Answer {
    /// Who leads instead, or nothing if that is not known or this node cannot answer now; `None` if it is an
    /// answer proper. Nothing was changed.
    fn not_leader(&self) -> Option<&str>;
}

fn hint(failure: Option<&wire::Failure>) -> Option<&str> {
    match failure.and_then(|failure| failure.kind.as_ref()) {
        Some(Kind::NotLeader(leader)) => Some(leader),
        // Busy, handing over, or stopping: another member, or this one a little later, may answer.
        Some(Kind::Unavailable(_)) => Some(""),
        _ => None,
    }
}

impl Answer for wire::GetAnswer {
    fn not_leader(&self) -> Option<&str> {
        hint(self.failure.as_ref())
    }
}

impl Answer for wire::ListAnswer {
    fn not_leader(&self) -> Option<&str> {
        hint(self.failure.as_ref())
    }
}

impl Answer for wire::ChangeAnswer {
    fn not_leader(&self) -> Option<&str> {
        hint(self.failure.as_ref())
    }
}

impl Answer for wire::ListMembersAnswer {
    fn not_leader(&self) -> Option<&str> {
        hint(self.failure.as_ref())
    }
}

/// One that may not be given.
impl<T: Answer> Answer for Option<T> {
    fn not_leader(&self) -> Option<&str> {
        self.as_ref().and_then(Answer::not_leader)
    }
}

/// A watch that a member refuses fails as a call, so a stream is always one.
impl Answer for Streaming<wire::WatchAnswer> {
    fn not_leader(&self) -> Option<&str> {
        None
    }
}
