//! Who waits for what, by ticket.

use std::collections::BTreeMap;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::metadata::MetadataError;
use crate::metadata::consensus::{MemberId, Refusal, Ticket};
use crate::metadata::store::Done;

/// Told what became of a change.
pub(super) type ChangeAnswer = oneshot::Sender<Result<Done, MetadataError>>;
/// Told that everything it must see is applied.
pub(super) type ReadAnswer = oneshot::Sender<Result<(), MetadataError>>;

/// One who waits.
pub(super) enum Waiter {
    /// For a change, which holds its share of the queue's bytes.
    Change(ChangeAnswer, OwnedSemaphorePermit),
    /// For a read, or for a membership change.
    Proof(ReadAnswer),
    /// Nobody: the driver's own command.
    Nobody,
}

/// Everybody who waits. Bounded by the machine's own bounds on proposals and reads.
#[derive(Default)]
pub(super) struct Waiters {
    last: u64,
    waiting: BTreeMap<Ticket, Waiter>,
}

impl Waiters {
    pub(super) fn enter(&mut self, waiter: Waiter) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.waiting.insert(ticket, waiter);
        ticket
    }

    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Waiter> {
        self.waiting.remove(&ticket)
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

impl Waiter {
    pub(super) fn fail(self, error: MetadataError) {
        // Who asked may have gone.
        match self {
            Self::Change(answer, _room) => drop(answer.send(Err(error))),
            Self::Proof(answer) => drop(answer.send(Err(error))),
            Self::Nobody => {}
        }
    }
}

/// A refusal as users of metadata know it. Each means that nothing was changed.
pub(super) fn refused(
    refusal: Refusal,
    address: impl Fn(MemberId) -> Option<String>,
) -> MetadataError {
    match refusal {
        Refusal::NotLeader { leader } => {
            MetadataError::NotLeader { leader: leader.and_then(address) }
        }
        Refusal::Busy | Refusal::ChangeUnderWay | Refusal::NotCaughtUp { .. } => {
            MetadataError::Unavailable(refusal.to_string())
        }
        Refusal::BadMembership => MetadataError::Refused(refusal.to_string()),
    }
}
