//! Work of a topic's task that waits for something: run beside the mailbox, ended in a turn of the task.

use futures_util::future::BoxFuture;

use super::command::{Reply, SubscribeRequest};
use super::read::ReadAnswer;
use crate::broker::cursor::Cursor;
use crate::broker::dispatch::ReadId;
use crate::broker::managed_ledger::ManagedLedgerError;
use crate::broker::service::BrokerError;

/// Work under way.
pub(super) type Job = BoxFuture<'static, Finished>;

/// A subscription, told from another one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriptionIdentity {
    pub(super) name: std::sync::Arc<str>,
    pub(super) number: u64,
}

/// What came of it.
pub(super) enum Finished {
    /// It answered by itself, or was called off.
    Nothing,
    Read {
        subscription: SubscriptionIdentity,
        id: ReadId,
        result: Result<ReadAnswer, ManagedLedgerError>,
    },
    /// Nobody had taken the topic over when the consumer came, or somebody had.
    Proven {
        request: SubscribeRequest,
        result: Result<(), ManagedLedgerError>,
    },
    CursorOpened {
        name: String,
        result: Result<Cursor, ManagedLedgerError>,
    },
    Sought {
        subscription: SubscriptionIdentity,
        result: Result<(), ManagedLedgerError>,
        reply: Reply<Result<(), BrokerError>>,
    },
    SubscriptionDeleted {
        subscription: SubscriptionIdentity,
        result: Result<(), ManagedLedgerError>,
        reply: Reply<Result<(), BrokerError>>,
    },
    Trimmed(Result<(), ManagedLedgerError>),
    /// The managed ledger is closed or deleted: the topic ends.
    LedgerClosed(Result<(), BrokerError>),
}

impl From<ManagedLedgerError> for BrokerError {
    fn from(error: ManagedLedgerError) -> Self {
        match error {
            ManagedLedgerError::Fenced => {
                Self::NotReady("the topic is served elsewhere or closing".to_owned())
            }
            ManagedLedgerError::Metadata(reason) => Self::Metadata(reason),
            ManagedLedgerError::Storage(reason) => Self::Storage(reason),
            ManagedLedgerError::NotFound => Self::Storage("nothing is stored there".to_owned()),
        }
    }
}
