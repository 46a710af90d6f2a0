//! Deleting a subscription, by a consumer of it or by an administrator.

use std::sync::Arc;

use super::command::{ConsumerAddress, Reply};
use super::dispatching::identity;
use super::job::{Finished, SubscriptionIdentity};
use super::task::TopicTask;
use crate::broker::managed_ledger::ManagedLedgerError;
use crate::broker::messages::CloseReason;
use crate::broker::service::BrokerError;

impl TopicTask {
    pub(super) fn unsubscribe(
        &mut self,
        address: &ConsumerAddress,
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        let Some(subscription) = self.subscription_of(address) else {
            let _ = reply.send(Err(BrokerError::NotReady("the consumer is closed".to_owned())));
            return;
        };
        if subscription.consumers.len() > 1 && !force {
            let error = BrokerError::ConsumerBusy(format!(
                "subscription {} has other consumers",
                subscription.name
            ));
            let _ = reply.send(Err(error));
            return;
        }
        let name = Arc::clone(&subscription.name);
        self.remove_subscription(&name, Some(address), reply);
    }

    pub(super) fn delete_subscription(
        &mut self,
        name: &str,
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        let Some(subscription) = self.subscriptions.get(name) else {
            let _ = reply.send(Err(BrokerError::SubscriptionNotFound(name.to_owned())));
            return;
        };
        if !subscription.consumers.is_empty() && !force {
            let error = BrokerError::InUse(format!("subscription {name} has consumers"));
            let _ = reply.send(Err(error));
            return;
        }
        let name = Arc::clone(&subscription.name);
        self.remove_subscription(&name, None, reply);
    }

    fn remove_subscription(
        &mut self,
        name: &Arc<str>,
        caller: Option<&ConsumerAddress>,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(name) else { return };
        if let Some(reason) = subscription.fenced {
            let error = BrokerError::NotReady(format!("the subscription is {reason}"));
            let _ = reply.send(Err(error));
            return;
        }
        subscription.fenced = Some("being deleted");
        let durable = subscription.durable;
        let subscription = identity(subscription);
        self.close_consumers(name, &CloseReason::SubscriptionDeleted, caller);
        self.reads.abort_of(&subscription);
        if !durable {
            self.subscriptions.remove(name);
            let _ = reply.send(Ok(()));
            return;
        }
        let ledger = self.ledger.clone();
        self.jobs.push(Box::pin(async move {
            let result = ledger.delete_cursor(&subscription.name).await;
            Finished::SubscriptionDeleted { subscription, result, reply }
        }));
    }

    pub(super) fn subscription_deleted(
        &mut self,
        subscription: &SubscriptionIdentity,
        result: Result<(), ManagedLedgerError>,
        reply: Reply<Result<(), BrokerError>>,
    ) {
        if self.is_current(subscription) {
            if result.is_ok() {
                self.subscriptions.remove(&subscription.name);
            } else if let Some(kept) = self.subscriptions.get_mut(&subscription.name) {
                kept.fenced = None;
            }
        }
        let _ = reply.send(result.map_err(BrokerError::from));
    }
}
