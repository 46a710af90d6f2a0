//! Answers that may say that another member leads.

use tonic::Streaming;

use crate::rpc::generated::metadata as wire;
use crate::rpc::generated::metadata::failure::Kind;

/// An answer of the metadata service.
pub(super) trait Answer {
    /// Who leads instead, or nothing if that is not known; `None` if it is an answer proper.
    fn not_leader(&self) -> Option<&str>;
}

fn hint(failure: Option<&wire::Failure>) -> Option<&str> {
    match failure.and_then(|failure| failure.kind.as_ref()) {
        Some(Kind::NotLeader(leader)) => Some(leader),
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

/// A watch that a member refuses fails as a call, so a stream is always one.
impl Answer for Streaming<wire::WatchAnswer> {
    fn not_leader(&self) -> Option<&str> {
        None
    }
}
