//! Handles of a topic, its producers and its consumers: what front ends hold. They only pass on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::command::{Command, ConsumerAddress, Reply, SubscribeRequest};
use super::producers::ProducerKey;
use crate::broker::managed_ledger::NumberedLog;
use crate::broker::messages::{
    AckError, AckRequest, ConsumerSink, LastMessage, ProducerSink, Publish, SeekTarget,
    SubscribeOptions,
};
use crate::broker::service::{BrokerError, ProducerOptions};
use crate::broker::{ConsumerStats, TopicStats};
use crate::domain::{Position, TopicName};
use crate::runtime::MailboxSender;

/// What all handles of a topic share with its task.
pub(in crate::broker) struct TopicShared {
    pub(super) name: TopicName,
    pub(super) mailbox: MailboxSender<Command>,
    /// Entries admitted and without outcome yet.
    pub(super) pending: AtomicUsize,
    pub(super) pending_max: usize,
    pub(super) closing: AtomicBool,
    pub(super) log: NumberedLog,
    /// Messages and bytes published and delivered here.
    pub(super) carried_messages: AtomicU64,
    pub(super) carried_bytes: AtomicU64,
}

impl TopicShared {
    pub(super) fn carry(&self, messages: u64, bytes: u64) {
        self.carried_messages.fetch_add(messages, Ordering::Relaxed);
        self.carried_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Messages and bytes published and delivered since it was loaded.
    pub(in crate::broker) fn carried(&self) -> (u64, u64) {
        let messages = self.carried_messages.load(Ordering::Relaxed);
        (messages, self.carried_bytes.load(Ordering::Relaxed))
    }

    /// No longer to be used; a new load will replace it.
    pub(in crate::broker) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire) || self.mailbox.is_closed()
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, BrokerError> {
        let gone = || BrokerError::NotReady("the topic is closing".to_owned());
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

/// A loaded topic. Cheap to clone.
#[derive(Clone)]
pub struct Topic {
    pub(super) inner: Arc<TopicShared>,
}

impl Topic {
    /// Its name.
    pub fn name(&self) -> &TopicName {
        &self.inner.name
    }

    /// Its log by sequence numbers.
    pub fn log(&self) -> &NumberedLog {
        &self.inner.log
    }

    pub(in crate::broker) fn shared(&self) -> &Arc<TopicShared> {
        &self.inner
    }

    /// Adds a producer.
    pub async fn add_producer(
        &self,
        options: ProducerOptions,
        sink: Arc<dyn ProducerSink>,
    ) -> Result<Producer, BrokerError> {
        self.inner.ask(|reply| Command::AddProducer { options, sink, reply }).await?
    }

    /// Adds a consumer; creates the subscription if it is new.
    pub async fn subscribe(
        &self,
        options: SubscribeOptions,
        sink: Arc<dyn ConsumerSink>,
    ) -> Result<Consumer, BrokerError> {
        let request = |reply| Command::Subscribe(SubscribeRequest { options, sink, reply });
        self.inner.ask(request).await?
    }

    /// Names of its subscriptions.
    pub async fn subscriptions(&self) -> Result<Vec<String>, BrokerError> {
        self.inner.ask(Command::Subscriptions).await
    }

    /// Deletes a subscription; without `force` refuses while it has consumers.
    pub async fn delete_subscription(&self, name: &str, force: bool) -> Result<(), BrokerError> {
        let name = name.to_owned();
        self.inner.ask(|reply| Command::DeleteSubscription { name, force, reply }).await?
    }

    /// What it tells about itself; all zero once it is closed.
    pub async fn stats(&self) -> TopicStats {
        self.inner.ask(Command::Stats).await.unwrap_or_default()
    }

    /// Closes the topic here: clients look up again and it is loaded anew.
    pub async fn unload(&self) {
        // An error means that it is closed already.
        let _ = self.inner.ask(Command::Unload).await;
    }

    /// Fails if the topic may not be deleted now.
    pub(in crate::broker) async fn check_unused(&self, force: bool) -> Result<(), BrokerError> {
        self.inner.ask(|reply| Command::CheckUnused { force, reply }).await?
    }

    /// Closes its handles and deletes what is stored.
    pub(in crate::broker) async fn delete(&self, force: bool) -> Result<(), BrokerError> {
        self.inner.ask(|reply| Command::Delete { force, reply }).await?
    }
}

pub(super) struct ProducerShared {
    pub(super) key: ProducerKey,
    pub(super) name: String,
    pub(super) topic: Arc<TopicShared>,
}

impl Drop for ProducerShared {
    fn drop(&mut self) {
        // A front end that lost its handle must not leave a producer behind.
        let _ = self.topic.mailbox.push(Command::CloseProducer { producer: self.key, reply: None });
    }
}

/// A connected producer. It is closed when its last handle is dropped.
#[derive(Clone)]
pub struct Producer {
    pub(super) inner: Arc<ProducerShared>,
}

impl Producer {
    /// Its name, given or made.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Publishes entries in order; never blocks. Every one gets its outcome at the sink, in order, unless
    /// the sink is told `closed` first. Over the topic's limit of pending entries the whole call is refused
    /// with `TooManyPending`.
    pub fn publish(&self, mut entries: Vec<Publish>) {
        let topic = &self.inner.topic;
        let admitted = topic.pending.load(Ordering::Relaxed) < topic.pending_max;
        if admitted {
            topic.pending.fetch_add(entries.len(), Ordering::Relaxed);
        } else {
            for entry in &mut entries {
                entry.client_bytes = Bytes::new();
            }
        }
        // When the task is gone the sink has been told so.
        let producer = self.inner.key;
        let _ = topic.mailbox.push(Command::Publish { producer, entries, admitted });
    }

    /// Closes it; outcomes of what is pending still come first.
    pub async fn close(&self) {
        let producer = self.inner.key;
        let command = |reply| Command::CloseProducer { producer, reply: Some(reply) };
        let _ = self.inner.topic.ask(command).await;
    }
}

pub(super) struct ConsumerShared {
    pub(super) address: ConsumerAddress,
    pub(super) topic: Arc<TopicShared>,
    /// Permits given and not yet seen by the task.
    pub(super) permits: Arc<AtomicU64>,
}

impl Drop for ConsumerShared {
    fn drop(&mut self) {
        let consumer = self.address.clone();
        let _ = self.topic.mailbox.push(Command::CloseConsumer { consumer, reply: None });
    }
}

/// A connected consumer. It is closed when its last handle is dropped.
#[derive(Clone)]
pub struct Consumer {
    pub(super) inner: Arc<ConsumerShared>,
}

impl Consumer {
    /// Allows this many more messages.
    pub fn flow(&self, permits: u32) {
        // One item in the mailbox however often this is called before the task gets to it.
        if self.inner.permits.fetch_add(u64::from(permits), Ordering::AcqRel) == 0 {
            let _ = self.inner.topic.mailbox.push(Command::Flow(self.inner.address.clone()));
        }
    }

    /// The sink has room again.
    pub fn resume(&self) {
        let _ = self.inner.topic.mailbox.push(Command::Resume(self.inner.address.clone()));
    }

    /// Acknowledges. The answer comes when it is durable; dropping the receiver is fine. When the topic's
    /// queue is full the acknowledgement is not taken and the answer says so.
    pub fn acknowledge(&self, request: AckRequest) -> oneshot::Receiver<Result<(), AckError>> {
        let (reply, answer) = oneshot::channel();
        let consumer = self.inner.address.clone();
        let mailbox = &self.inner.topic.mailbox;
        let refused = mailbox.try_send(Command::Acknowledge { consumer, request, reply });
        if let Err(Command::Acknowledge { reply, .. }) = refused {
            let error = if mailbox.is_closed() {
                AckError::ConsumerClosed
            } else {
                AckError::OutcomeUnknown("the topic's queue is full".to_owned())
            };
            let _ = reply.send(Err(error));
        }
        answer
    }

    /// Asks for entries again: these, or everything unacknowledged of this consumer. Not heard when the
    /// topic's queue is full: clients ask again after their time-out.
    pub fn redeliver(&self, positions: Option<Vec<Position>>, consumer_epoch: Option<u64>) {
        let consumer = self.inner.address.clone();
        let command = Command::Redeliver { consumer, positions, epoch: consumer_epoch };
        let _ = self.inner.topic.mailbox.try_send(command);
    }

    /// Its figures; all zero once it is closed.
    pub async fn stats(&self) -> ConsumerStats {
        let consumer = self.inner.address.clone();
        let command = |reply| Command::ConsumerStats { consumer, reply };
        self.inner.topic.ask(command).await.unwrap_or_default()
    }

    /// Moves the subscription. All its consumers are closed with `Seek` first.
    pub async fn seek(&self, target: SeekTarget) -> Result<(), BrokerError> {
        let consumer = self.inner.address.clone();
        self.inner.topic.ask(|reply| Command::Seek { consumer, target, reply }).await?
    }

    /// The topic's end.
    pub async fn last_message(&self) -> Result<LastMessage, BrokerError> {
        let consumer = self.inner.address.clone();
        self.inner.topic.ask(|reply| Command::LastMessage { consumer, reply }).await?
    }

    /// Deletes the subscription; refused while other consumers are connected, unless `force`.
    pub async fn unsubscribe(&self, force: bool) -> Result<(), BrokerError> {
        let consumer = self.inner.address.clone();
        self.inner.topic.ask(|reply| Command::Unsubscribe { consumer, force, reply }).await?
    }

    /// Closes it; what it holds unacknowledged goes to others.
    pub async fn close(&self) {
        let consumer = self.inner.address.clone();
        let command = |reply| Command::CloseConsumer { consumer, reply: Some(reply) };
        let _ = self.inner.topic.ask(command).await;
    }
}
