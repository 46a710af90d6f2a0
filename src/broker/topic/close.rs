//! The end of a topic here: unloaded, deleted, or lost to another owner.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::command::Reply;
use super::job::Finished;
use super::task::TopicTask;
use crate::broker::messages::CloseReason;
use crate::broker::service::BrokerError;
use crate::reached;

/// The managed ledger is given this long to close or delete itself; then the topic ends without it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A topic on its way out.
pub(super) struct Closing {
    reason: CloseReason,
    unload_replies: Vec<Reply<()>>,
    delete_reply: Option<Reply<Result<(), BrokerError>>>,
}

impl TopicTask {
    pub(super) fn unload(&mut self, reply: Reply<()>) {
        if let Some(closing) = &mut self.closing {
            closing.unload_replies.push(reply);
            return;
        }
        self.begin_close(CloseReason::TopicMoved);
        if let Some(closing) = &mut self.closing {
            closing.unload_replies.push(reply);
        }
        let (ledger, clock) = (self.ledger.clone(), self.runtime.clock.clone());
        self.jobs.push(Box::pin(async move {
            let closed = clock.timeout(CLOSE_TIMEOUT, ledger.close()).await;
            Finished::LedgerClosed(closed.map_err(|late| BrokerError::Storage(late.to_string())))
        }));
    }

    /// Fails if the topic may not be deleted now.
    pub(super) fn check_unused(&self, force: bool) -> Result<(), BrokerError> {
        if self.closing.is_some() {
            return Err(BrokerError::NotReady("the topic is closing".to_owned()));
        }
        if force {
            return Ok(());
        }
        let producers = self.producers.open_count();
        let subscriptions = self.subscriptions.len() + self.opening.len();
        if producers > 0 || subscriptions > 0 {
            return Err(BrokerError::InUse(format!(
                "topic {} has {producers} producers and {subscriptions} subscriptions",
                self.shared.name
            )));
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, force: bool, reply: Reply<Result<(), BrokerError>>) {
        if let Err(error) = self.check_unused(force) {
            let _ = reply.send(Err(error));
            return;
        }
        // Everything published before the request is on its way; its outcome comes before the end.
        self.append_batch();
        self.begin_close(CloseReason::TopicDeleted);
        if let Some(closing) = &mut self.closing {
            closing.delete_reply = Some(reply);
        }
        let (ledger, clock) = (self.ledger.clone(), self.runtime.clock.clone());
        self.jobs.push(Box::pin(async move {
            Finished::LedgerClosed(match clock.timeout(CLOSE_TIMEOUT, ledger.delete()).await {
                Ok(deleted) => deleted.map_err(BrokerError::from),
                Err(late) => Err(BrokerError::Storage(late.to_string())),
            })
        }));
    }

    /// Nothing new from here on; consumers go first, so that no acknowledgement comes after their cursors
    /// are written.
    fn begin_close(&mut self, reason: CloseReason) {
        self.append_batch();
        self.shared.closing.store(true, Ordering::Release);
        self.close_all_consumers(&reason);
        self.closing = Some(Closing { reason, unload_replies: Vec::new(), delete_reply: None });
    }

    fn close_all_consumers(&mut self, reason: &CloseReason) {
        self.reads.abort_all();
        for (_, subscription) in std::mem::take(&mut self.subscriptions) {
            for consumer in subscription.consumers.into_values() {
                consumer.sink.closed(reason.clone());
            }
        }
        // Dropping a waiting request answers "closing".
        self.opening.clear();
    }

    pub(super) fn ledger_closed(&mut self, result: Result<(), BrokerError>) {
        if let Err(error) = &result {
            tracing::warn!(topic = %self.shared.name, %error, "the managed ledger did not close");
        }
        self.end("the topic was closed", result);
    }

    pub(super) fn fenced(&mut self, reason: &str) {
        reached!("topic: fenced");
        tracing::warn!(topic = %self.shared.name, reason, "the topic is lost here");
        self.shared.closing.store(true, Ordering::Release);
        if self.closing.is_none() {
            self.close_all_consumers(&CloseReason::TopicMoved);
        }
        self.end(reason, Err(BrokerError::NotReady(reason.to_owned())));
    }

    fn end(&mut self, reason: &str, result: Result<(), BrokerError>) {
        self.abandon_pending(reason);
        // Before anyone is told: who looks up again must find room for a new load.
        if let Some(on_end) = self.on_end.take() {
            on_end();
        }
        let (close_reason, unload_replies, delete_reply) = match self.closing.take() {
            Some(closing) => (closing.reason, closing.unload_replies, closing.delete_reply),
            None => (CloseReason::TopicMoved, Vec::new(), None),
        };
        for producer in self.producers.take_all() {
            if !producer.closing {
                producer.sink.closed(close_reason.clone());
            }
            for reply in producer.close_replies {
                let _ = reply.send(());
            }
        }
        for reply in unload_replies {
            let _ = reply.send(());
        }
        if let Some(reply) = delete_reply {
            let _ = reply.send(result);
        }
        self.ended = true;
    }
}
