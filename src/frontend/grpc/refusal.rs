//! A call that did not succeed: its gRPC code, its words, and the facts a program needs.
//!
//! | code | when |
//! | --- | --- |
//! | `INVALID_ARGUMENT` | the request breaks a rule |
//! | `NOT_FOUND` | no such stream or ledger |
//! | `PERMISSION_DENIED` | the ledger is not one of this API's |
//! | `FAILED_PRECONDITION` | another broker serves the stream; the token is stale; the writer is fenced |
//! | `ABORTED` | the expected number is not the next one: read, decide, try again |
//! | `OUT_OF_RANGE` | trimmed, or beyond the end |
//! | `RESOURCE_EXHAUSTED` | a limit of the node; certainly not stored |
//! | `UNAVAILABLE` | not now; certainly not stored |
//! | `UNKNOWN` | a write **may or may not** be stored; given for nothing else |

use tonic::{Code, Status};

use crate::broker::{BrokerError, NumberedError};
use crate::domain::EntryId;
use crate::ledger::{CloseError, CreateError, DeleteError, LedgerReadError, RecoveryError};
use crate::metadata::MetadataError;
use crate::rpc::generated::public::{Failure, Outcome, Reason};
use crate::rpc::status_of_failure;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    code: Code,
    message: String,
    failure: Box<Failure>,
}

impl Refusal {
    pub(super) fn new(code: Code, reason: Reason, message: impl Into<String>) -> Self {
        let failure = Failure { reason: reason.into(), ..Failure::default() };
        Self { code, message: message.into(), failure: Box::new(failure) }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, Reason::Invalid, message)
    }

    /// The client's side of the call broke, or sent what cannot be decoded.
    pub(super) fn unreadable(status: &Status) -> Self {
        Self::invalid(format!("the request cannot be read: {}", status.message()))
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, Reason::NotFound, message)
    }

    pub(super) fn not_ready(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, Reason::NotReady, message)
    }

    pub(super) fn limit(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, Reason::Limit, message)
    }

    pub(super) fn storage(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, Reason::Storage, message)
    }

    /// A write may or may not be stored, or a change made.
    pub(super) fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(Code::Unknown, reason, message).with(|failure| {
            failure.outcome = Outcome::Unknown.into();
        })
    }

    /// Adds facts.
    pub(super) fn with(mut self, tell: impl FnOnce(&mut Failure)) -> Self {
        tell(&mut self.failure);
        self
    }

    /// The first write without an answer, and all after it, are certainly not stored.
    pub(super) fn rejected(self) -> Self {
        self.with(|failure| failure.outcome = Outcome::Rejected.into())
    }

    pub(super) fn last_confirmed(self, entry: EntryId) -> Self {
        self.with(|failure| failure.last_confirmed = Some(entry.0))
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        status_of_failure(refusal.code, refusal.message, &refusal.failure)
    }
}

impl From<BrokerError> for Refusal {
    fn from(error: BrokerError) -> Self {
        let message = error.to_string();
        let refusal = match error {
            BrokerError::TopicNotFound(_) | BrokerError::SubscriptionNotFound(_) => {
                Self::not_found(message)
            }
            BrokerError::Invalid(_) | BrokerError::NotAllowed(_) | BrokerError::TopicExists(_) => {
                Self::invalid(message)
            }
            BrokerError::InUse(_) | BrokerError::ConsumerBusy(_) | BrokerError::ProducerBusy(_) => {
                Self::limit(message)
            }
            BrokerError::NotServed(_) | BrokerError::NotReady(_) | BrokerError::Metadata(_) => {
                Self::not_ready(message)
            }
            BrokerError::Storage(_) => Self::storage(message),
        };
        // All of these come before anything is written.
        refusal.rejected()
    }
}

impl From<NumberedError> for Refusal {
    fn from(error: NumberedError) -> Self {
        let message = error.to_string();
        match error {
            NumberedError::Trimmed { first } => {
                Self::new(Code::OutOfRange, Reason::Trimmed, message)
                    .with(|failure| failure.first_number = Some(first))
            }
            NumberedError::BeyondEnd { next } => {
                Self::new(Code::OutOfRange, Reason::BeyondEnd, message)
                    .with(|failure| failure.next_number = Some(next))
            }
            NumberedError::StaleToken { current } => {
                Self::new(Code::FailedPrecondition, Reason::StaleToken, message)
                    .with(|failure| failure.token = Some(current))
                    .rejected()
            }
            // A change of the stream's record may have been made; reads do not end like this.
            NumberedError::Ledger(error) => Self::not_ready(error.to_string()),
        }
    }
}

impl From<MetadataError> for Refusal {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::OutcomeUnknown(_) => Self::unknown(Reason::NotReady, error.to_string()),
            _ => Self::not_ready(error.to_string()),
        }
    }
}

impl From<CreateError> for Refusal {
    fn from(error: CreateError) -> Self {
        // A record that may be left behind holds nothing and has no writer.
        Self::not_ready(error.to_string()).rejected()
    }
}

impl From<LedgerReadError> for Refusal {
    fn from(error: LedgerReadError) -> Self {
        let message = error.to_string();
        match error {
            LedgerReadError::NoLedger(_) => Self::not_found(message),
            LedgerReadError::BeyondEnd { last_confirmed, .. } => {
                Self::new(Code::OutOfRange, Reason::BeyondEnd, message)
                    .last_confirmed(last_confirmed)
            }
            LedgerReadError::NoGoodReplica { .. } => Self::storage(message),
            LedgerReadError::Metadata(_) => Self::not_ready(message),
        }
    }
}

impl From<RecoveryError> for Refusal {
    fn from(error: RecoveryError) -> Self {
        let message = error.to_string();
        match error {
            RecoveryError::NoLedger(_) => Self::not_found(message),
            RecoveryError::Undecidable { .. } | RecoveryError::WriteBack { .. } => {
                Self::storage(message)
            }
            RecoveryError::Metadata(_) => Self::not_ready(message),
        }
    }
}

impl From<CloseError> for Refusal {
    fn from(error: CloseError) -> Self {
        let message = error.to_string();
        match error {
            CloseError::InRecovery | CloseError::ClosedElsewhere { .. } => {
                Self::new(Code::FailedPrecondition, Reason::LedgerFenced, message)
            }
            CloseError::Deleted => Self::not_found(message),
            CloseError::Metadata(_) => Self::unknown(Reason::NotReady, message),
        }
    }
}

impl From<DeleteError> for Refusal {
    fn from(error: DeleteError) -> Self {
        let DeleteError::Metadata(error) = error;
        error.into()
    }
}
