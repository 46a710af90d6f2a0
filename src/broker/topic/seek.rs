//! Seek: fence the subscription, close its consumers, move the cursor, open again.

use std::sync::Arc;
use std::time::Duration;

use super::command::{ConsumerAddress, Reply};
use super::dispatching::identity;
use super::job::{Finished, SubscriptionIdentity};
use super::task::TopicTask;
use crate::broker::cursor::Cursor;
use crate::broker::dispatch::Event;
use crate::broker::managed_ledger::{ManagedLedger, ManagedLedgerError};
use crate::broker::messages::{CloseReason, SeekTarget};
use crate::broker::service::BrokerError;
use crate::broker::subscription::Subscription;
use crate::domain::Position;

/// How long a reader may take to come back after a seek.
const RETURN_TIME: Duration = Duration::from_secs(60);

impl TopicTask {
    pub(super) fn seek(
        &mut self,
        address: &ConsumerAddress,
        target: SeekTarget,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        let Some(subscription) = self.subscription_of(address) else {
            let _ = reply.send(Err(BrokerError::NotReady("the consumer is closed".to_owned())));
            return;
        };
        if let Some(reason) = subscription.fenced {
            let error = BrokerError::NotReady(format!("the subscription is {reason}"));
            let _ = reply.send(Err(error));
            return;
        }
        subscription.fenced = Some("seeking");
        let (name, cursor) = (Arc::clone(&subscription.name), subscription.cursor.clone());
        let subscription = identity(subscription);
        // No acknowledgement of what came before the seek may reach the cursor after it: the consumers go
        // first, and commands of consumers that are gone are not obeyed.
        self.close_consumers(&name, &CloseReason::Seek, None);
        let ledger = self.ledger.clone();
        self.jobs.push(Box::pin(async move {
            let result = move_cursor(&ledger, &cursor, target).await;
            Finished::Sought { subscription, result, reply }
        }));
    }

    pub(super) fn sought(
        &mut self,
        subscription: &SubscriptionIdentity,
        result: Result<(), ManagedLedgerError>,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        if self.is_current(subscription)
            && let Some(current) = self.subscriptions.get_mut(&subscription.name)
        {
            current.fenced = None;
            if !current.durable {
                current.expires_at = Some(self.now + RETURN_TIME);
            }
            // Wherever the cursor is now, also after a failure.
            let next = current.first_unacked();
            self.drive(&subscription.name, Event::Reset { next });
        }
        let _ = reply.send(result.map_err(BrokerError::from));
    }
}

impl TopicTask {
    /// Ends readers' subscriptions that nobody came back to.
    pub(super) fn expire_subscriptions(&mut self) {
        let now = self.now;
        let late = |one: &Subscription| one.expires_at.is_some_and(|at| at <= now);
        self.subscriptions.retain(|_, one| !late(one));
    }
}

async fn move_cursor(
    ledger: &ManagedLedger,
    cursor: &Cursor,
    target: SeekTarget,
) -> Result<(), ManagedLedgerError> {
    let end = ledger.next_position(ledger.last_confirmed());
    let clamp = |position: Position| position.min(end).max(ledger.first_position());
    let (next, ack_set) = match target {
        SeekTarget::Earliest => (ledger.first_position(), None),
        SeekTarget::Latest => (end, None),
        SeekTarget::At(position, ack_set) => {
            let next = clamp(position);
            (next, ack_set.filter(|_| next == position))
        }
        SeekTarget::Time(time) => match ledger.last_before(time).await? {
            Some(last) => (clamp(ledger.next_position(last)), None),
            None => (ledger.first_position(), None),
        },
    };
    cursor.reset(next, ack_set).await
}
