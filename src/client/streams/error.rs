//! A call of the stream API that did not succeed.

use tonic::Status;

use crate::rpc::failure_of_status;
use crate::rpc::generated::public::{Failure, Outcome, Reason};

/// What the server said, or that it said nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StreamError {
    /// In words.
    pub message: String,
    /// The facts. Without a word from the server: no reason, outcome unknown.
    pub failure: Box<Failure>,
}

impl StreamError {
    /// The arguments are wrong; nothing was sent.
    pub(super) fn usage(reason: &dyn std::fmt::Display) -> Self {
        let failure = Failure {
            reason: Reason::Invalid.into(),
            outcome: Outcome::Rejected.into(),
            ..Failure::default()
        };
        Self { message: reason.to_string(), failure: Box::new(failure) }
    }

    /// The server did not answer.
    pub(super) fn silent(what: &dyn std::fmt::Display) -> Self {
        let failure = Failure { outcome: Outcome::Unknown.into(), ..Failure::default() };
        Self { message: what.to_string(), failure: Box::new(failure) }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        self.failure.reason()
    }

    /// The first record without an answer may be stored.
    pub fn is_unknown(&self) -> bool {
        self.failure.outcome() == Outcome::Unknown
    }
}

impl From<Status> for StreamError {
    fn from(status: Status) -> Self {
        match failure_of_status(&status) {
            Some(failure) => {
                Self { message: status.message().to_owned(), failure: Box::new(failure) }
            }
            None => Self::silent(&format!("{:?}: {}", status.code(), status.message())),
        }
    }
}
