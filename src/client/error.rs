//! What can go wrong, so that a caller can tell "not done" from "perhaps done".

use crate::frontend::pulsar::codec::proto::ServerError;

/// An operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// No connection could be made. Nothing was done.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The address tried last.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The connection broke during the operation: it may or may not have been done.
    #[error("disconnected: {0}")]
    Disconnected(String),
    /// No answer in time: it may or may not have been done.
    #[error("{operation} was not answered in time")]
    Elapsed {
        /// What was asked for.
        operation: &'static str,
    },
    /// The broker refused.
    #[error("{code:?}: {message}")]
    Refused {
        /// Its code.
        code: ServerError,
        /// Its words.
        message: String,
    },
    /// The broker broke the protocol.
    #[error("the broker broke the protocol: {0}")]
    Protocol(String),
    /// A message that cannot be read.
    #[error("cannot read a message: {0}")]
    Unreadable(String),
    /// Arguments that cannot be.
    #[error("invalid: {0}")]
    Invalid(String),
    /// It was closed before.
    #[error("closed")]
    Closed,
}

impl ClientError {
    /// Whether the broker asked to try again.
    pub const fn is_not_ready(&self) -> bool {
        matches!(
            self,
            Self::Refused { code: ServerError::ServiceNotReady | ServerError::MetadataError, .. }
        )
    }

    /// Whether trying again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Disconnected(_) | Self::Elapsed { .. } => true,
            Self::Refused { code, .. } => matches!(
                code,
                ServerError::ServiceNotReady
                    | ServerError::MetadataError
                    | ServerError::PersistenceError
                    | ServerError::UnknownError
                    | ServerError::ProducerBusy
                    | ServerError::ConsumerBusy
                    | ServerError::TooManyRequests
            ),
            _ => false,
        }
    }
}

/// A message got no receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Certainly not stored by this send.
    #[error("rejected: {0}")]
    Rejected(ClientError),
    /// It may or may not be stored.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The broker broke the protocol, for example with receipts out of order.
    #[error("the broker broke the protocol: {0}")]
    Violation(String),
}
