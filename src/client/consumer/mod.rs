//! A consumer: messages out one by one, acknowledgements in. Owned by one caller; reconnects while it
//! receives.

mod unbatch;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::connection::{Connection, refused};
use super::error::ClientError;
use super::message::{Message, MessageId, to_pairs};
use super::opening::{Handle, Opening};
use super::options::{ConsumerOptions, StartPosition};
use super::pulsar_client::{PulsarClient, unexpected};
use crate::broker::SubscriptionType;
use crate::domain::{Instant, TopicName};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::runtime::{Mailbox, MailboxSender, mailbox};

use proto::command_ack::AckType;
use proto::command_subscribe::{InitialPosition, SubType};

/// What a connection tells a consumer.
pub(super) enum ConsumerEvent {
    /// An entry.
    Message { message: proto::CommandMessage, entry: Bytes },
    /// Whether this consumer is the active one of its Failover subscription.
    Active(bool),
    /// The connection broke or the broker closed the consumer.
    Lost,
}

type Event = (u64, ConsumerEvent);

/// An open consumer; closed by [`Consumer::close`] or when dropped.
pub struct Consumer {
    client: PulsarClient,
    topic: TopicName,
    subscription: String,
    options: ConsumerOptions,
    consumer_id: u64,
    connection: Arc<Connection>,
    session: u64,
    inbox: MailboxSender<Event>,
    events: Mailbox<Event>,
    taken: VecDeque<Event>,
    ready: VecDeque<Message>,
    /// Permits used since they were last given.
    used: u32,
    /// Permits the broker has left. A batch may take them below zero, nothing may be sent then.
    permits: i64,
    /// Rises with each request for everything again; what was sent before it is of an older one.
    epoch: u64,
    /// The last message handed out, where a reader goes on after a reconnect.
    last: Option<MessageId>,
    is_active: Option<bool>,
    lost: bool,
    /// The broker knows of no consumer of ours any more.
    closed: bool,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if !self.closed {
            self.connection.forget_consumer(self.consumer_id);
            Handle::Consumer(self.consumer_id).close_unanswered(&self.connection);
        }
    }
}

impl Consumer {
    pub(super) async fn open(
        client: PulsarClient,
        topic: TopicName,
        subscription: String,
        options: ConsumerOptions,
    ) -> Result<Self, ClientError> {
        let consumer_id = client.next_id();
        // Bounded by the permits given.
        let (inbox, events) = mailbox(usize::MAX);
        let connection = client.topic_connection(&topic).await?;
        let mut consumer = Self {
            client,
            topic,
            subscription,
            options,
            consumer_id,
            connection,
            session: 0,
            inbox,
            events,
            taken: VecDeque::new(),
            ready: VecDeque::new(),
            used: 0,
            permits: 0,
            epoch: 0,
            last: None,
            is_active: None,
            lost: false,
            closed: true,
        };
        consumer.subscribe().await?;
        consumer.closed = false;
        Ok(consumer)
    }

    async fn subscribe(&mut self) -> Result<(), ClientError> {
        let connection = Arc::clone(&self.connection);
        connection.route_consumer(self.consumer_id, self.inbox.clone(), self.session)?;
        let opening = Opening::new(&connection, Handle::Consumer(self.consumer_id));
        let answer = connection.request("a subscription", |id| self.subscribe_command(id)).await;
        opening.settle(answer, |command| match command {
            Command::Success(_) => Ok(()),
            other => Err(unexpected(&other)),
        })?;
        self.lost = false;
        self.used = 0;
        self.permits = 0;
        self.give_permits(self.options.receiver_queue.max(1));
        Ok(())
    }

    fn subscribe_command(&self, request_id: u64) -> Command {
        let sub_type = match self.options.subscription_type {
            SubscriptionType::Exclusive => SubType::Exclusive,
            SubscriptionType::Shared => SubType::Shared,
            SubscriptionType::Failover => SubType::Failover,
            SubscriptionType::KeyShared => SubType::KeyShared,
        };
        let initial = match self.options.start {
            StartPosition::Latest => InitialPosition::Latest,
            StartPosition::Earliest | StartPosition::At(_) => InitialPosition::Earliest,
        };
        let start = match (self.options.durable, self.last, self.options.start) {
            (true, ..) => None,
            (false, Some(last), _) => Some(last.to_wire()),
            (false, None, StartPosition::At(id)) => Some(id.to_wire()),
            (false, None, _) => None,
        };
        Command::Subscribe(proto::CommandSubscribe {
            topic: self.topic.to_string(),
            subscription: self.subscription.clone(),
            sub_type: sub_type.into(),
            consumer_id: self.consumer_id,
            request_id,
            consumer_name: Some(self.options.name.clone()),
            priority_level: Some(self.options.priority_level),
            durable: Some(self.options.durable),
            start_message_id: start,
            initial_position: Some(initial.into()),
            subscription_properties: to_pairs(&self.options.subscription_properties),
            consumer_epoch: Some(self.epoch),
            ..Default::default()
        })
    }

    fn give_permits(&mut self, permits: u32) {
        self.permits += i64::from(permits);
        self.connection.push_command(&Command::Flow(proto::CommandFlow {
            consumer_id: self.consumer_id,
            message_permits: permits,
        }));
    }

    fn use_permits(&mut self, count: u32) {
        self.used = self.used.saturating_add(count);
        if self.used >= (self.options.receiver_queue / 2).max(1) && !self.lost {
            self.give_permits(self.used);
            self.used = 0;
        }
    }

    /// Whether this consumer is the active one, if the broker told.
    pub const fn is_active(&self) -> Option<bool> {
        self.is_active
    }

    /// The next message, or `None` when `limit` has passed. Reconnects meanwhile if need be.
    pub async fn receive(&mut self, limit: Duration) -> Result<Option<Message>, ClientError> {
        let deadline = self.client.runtime().clock.now() + limit;
        loop {
            // Whatever has arrived is read before permits are given back: the broker had none for more.
            self.taken.extend(self.events.take_ready());
            while let Some(event) = self.taken.pop_front() {
                self.take(event)?;
            }
            if let Some(message) = self.ready.pop_front() {
                self.use_permits(1);
                self.last = Some(message.id);
                return Ok(Some(message));
            }
            if self.lost && !self.reopen(deadline).await? {
                return Ok(None);
            }
            let now = self.client.runtime().clock.now();
            let waiting = self.events.take_all();
            match self.client.runtime().clock.timeout(deadline.since(now), waiting).await {
                Ok(Some(events)) => self.taken = events,
                Ok(None) => return Err(ClientError::Closed),
                Err(_) => return Ok(None),
            }
        }
    }

    fn take(&mut self, (session, event): Event) -> Result<(), ClientError> {
        if session != self.session {
            return Ok(());
        }
        match event {
            ConsumerEvent::Message { message, entry } => {
                if self.permits <= 0 {
                    return Err(ClientError::Protocol("a message without a permit".to_owned()));
                }
                let limit = self.client.options().frame_bytes_max;
                let entry = match unbatch::read(&message, &entry, limit) {
                    Ok(entry) => entry,
                    Err(error) => {
                        self.permits -= 1;
                        self.use_permits(1);
                        return Err(error);
                    }
                };
                self.permits -= entry.messages.len() as i64;
                if message.consumer_epoch.is_some_and(|epoch| epoch < self.epoch) {
                    // Sent before the broker heard that everything is wanted again, and comes again.
                    self.use_permits(entry.messages.len() as u32);
                    return Ok(());
                }
                for message in entry.messages {
                    let is_new =
                        self.options.durable || self.last.is_none_or(|last| message.id > last);
                    if is_new {
                        self.ready.push_back(message);
                    } else {
                        self.use_permits(1);
                    }
                }
            }
            ConsumerEvent::Active(is_active) => self.is_active = Some(is_active),
            ConsumerEvent::Lost => self.lost = true,
        }
        Ok(())
    }

    /// Connects and subscribes again until `deadline`; false if it passed.
    async fn reopen(&mut self, deadline: Instant) -> Result<bool, ClientError> {
        if !self.options.reconnect {
            return Err(ClientError::Disconnected("the consumer was lost".to_owned()));
        }
        self.ready.clear();
        let clock = self.client.runtime().clock.clone();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let left = deadline.since(clock.now());
            if clock.timeout(left, self.client.back_off(attempt)).await.is_err() {
                return Ok(false);
            }
            self.session += 1;
            let opened = match self.client.topic_connection(&self.topic).await {
                Ok(connection) => {
                    self.connection = connection;
                    self.subscribe().await
                }
                Err(error) => Err(error),
            };
            match opened {
                Ok(()) => return Ok(true),
                Err(error) if error.is_transient() => {
                    tracing::debug!(topic = %self.topic, %error, "consumer not open again yet");
                    if clock.now() >= deadline {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Acknowledges messages and waits until that is durable.
    pub async fn acknowledge(&self, ids: &[MessageId]) -> Result<(), ClientError> {
        self.acknowledgement(ids).await
    }

    /// The same apart from the consumer, which can go on receiving: sent when it is first polled.
    pub fn acknowledgement(
        &self,
        ids: &[MessageId],
    ) -> impl Future<Output = Result<(), ClientError>> + Send + use<> {
        let command = self.ack_command(AckType::Individual, ids);
        ask_ack(Arc::clone(&self.connection), command)
    }

    /// Acknowledges everything up to a message, inclusive, and waits until that is durable.
    pub async fn acknowledge_cumulative(&self, id: MessageId) -> Result<(), ClientError> {
        let command = self.ack_command(AckType::Cumulative, &[id]);
        ask_ack(Arc::clone(&self.connection), command).await
    }

    /// Acknowledges messages without waiting; may be lost, then they come again.
    pub fn acknowledge_later(&self, ids: &[MessageId]) {
        let command = self.ack_command(AckType::Individual, ids);
        self.connection.push_command(&Command::Ack(command));
    }

    fn ack_command(&self, ack_type: AckType, ids: &[MessageId]) -> proto::CommandAck {
        // Messages of one batch go together: bits that are set stay unacknowledged.
        let mut entries: BTreeMap<MessageId, Vec<u64>> = BTreeMap::new();
        for id in ids {
            let words = entries.entry(MessageId::entry(id.position)).or_default();
            let (Some(index), size) = (id.batch_index, id.batch_size) else { continue };
            if words.is_empty() {
                *words = unbatch::all_set(size);
            }
            let clear_from = if ack_type == AckType::Cumulative { 0 } else { index };
            unbatch::clear(words, clear_from, index);
        }
        let message_id = entries
            .into_iter()
            .map(|(id, words)| {
                let ack_set = match words.iter().all(|word| *word == 0) {
                    true => Vec::new(),
                    false => words.into_iter().map(|word| word as i64).collect(),
                };
                proto::MessageIdData { ack_set, ..id.to_wire() }
            })
            .collect();
        proto::CommandAck {
            consumer_id: self.consumer_id,
            ack_type: ack_type.into(),
            message_id,
            ..Default::default()
        }
    }

    /// Asks for entries again; empty: for everything not acknowledged. Whole batches come again.
    pub fn redeliver(&self, ids: &[MessageId]) {
        self.connection.push_command(&Command::RedeliverUnacknowledgedMessages(
            proto::CommandRedeliverUnacknowledgedMessages {
                consumer_id: self.consumer_id,
                message_ids: ids.iter().map(|id| id.to_wire()).collect(),
                consumer_epoch: None,
            },
        ));
    }

    /// Asks for everything not acknowledged again, in order; what is on its way is dropped. For
    /// subscriptions with one active consumer.
    pub fn redeliver_all(&mut self) {
        self.epoch += 1;
        self.connection.push_command(&Command::RedeliverUnacknowledgedMessages(
            proto::CommandRedeliverUnacknowledgedMessages {
                consumer_id: self.consumer_id,
                message_ids: Vec::new(),
                consumer_epoch: Some(self.epoch),
            },
        ));
        let dropped = self.ready.len() as u32;
        self.ready.clear();
        self.use_permits(dropped);
    }

    /// Moves the subscription to a place.
    pub async fn seek(&mut self, to: StartPosition) -> Result<(), ClientError> {
        const LATEST: u64 = i64::MAX as u64;
        let id = |number| proto::MessageIdData {
            ledger_id: number,
            entry_id: number,
            ..Default::default()
        };
        let target = match to {
            StartPosition::Earliest => id(u64::MAX),
            StartPosition::Latest => id(LATEST),
            StartPosition::At(id) => id.to_wire(),
        };
        self.seek_command(Some(target), None).await?;
        // A reader's subscription may be gone with its consumer: it begins anew here.
        self.options.start = to;
        Ok(())
    }

    /// Moves the subscription to after the last message published before this time, ms since 1970.
    pub async fn seek_time(&mut self, publish_time: u64) -> Result<(), ClientError> {
        self.seek_command(None, Some(publish_time)).await
    }

    async fn seek_command(
        &mut self,
        message_id: Option<proto::MessageIdData>,
        message_publish_time: Option<u64>,
    ) -> Result<(), ClientError> {
        let consumer_id = self.consumer_id;
        let answer = self
            .connection
            .request("a seek", |request_id| {
                Command::Seek(proto::CommandSeek {
                    consumer_id,
                    request_id,
                    message_id,
                    message_publish_time,
                })
            })
            .await?;
        let Command::Success(_) = answer else { return Err(unexpected(&answer)) };
        // What was on its way is of before the seek.
        self.last = None;
        let mut dropped = self.ready.len() as u32;
        self.ready.clear();
        let mut events = std::mem::take(&mut self.taken);
        events.extend(self.events.take_ready());
        for (session, event) in events {
            match event {
                ConsumerEvent::Message { message, entry } if session == self.session => {
                    let limit = self.client.options().frame_bytes_max;
                    let count = unbatch::read(&message, &entry, limit)
                        .map_or(1, |entry| entry.messages.len() as u32);
                    self.permits -= i64::from(count);
                    dropped += count;
                }
                ConsumerEvent::Lost if session == self.session => self.lost = true,
                _ => {}
            }
        }
        if !self.lost {
            self.use_permits(dropped);
        }
        Ok(())
    }

    /// The last message of the topic, `None` if it is empty.
    pub async fn last_message_id(&self) -> Result<Option<MessageId>, ClientError> {
        let consumer_id = self.consumer_id;
        let answer = self
            .connection
            .request("the last message", |request_id| {
                Command::GetLastMessageId(proto::CommandGetLastMessageId {
                    consumer_id,
                    request_id,
                })
            })
            .await?;
        match answer {
            Command::GetLastMessageIdResponse(answer) => {
                let id = MessageId::from_wire(&answer.last_message_id);
                Ok((id.position.entry.0 >= 0).then_some(id))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Deletes the subscription and closes.
    pub async fn unsubscribe(mut self, force: bool) -> Result<(), ClientError> {
        let consumer_id = self.consumer_id;
        let answer = self
            .connection
            .request("an unsubscribe", |request_id| {
                Command::Unsubscribe(proto::CommandUnsubscribe {
                    consumer_id,
                    request_id,
                    force: Some(force),
                })
            })
            .await?;
        self.connection.forget_consumer(consumer_id);
        self.closed = true;
        match answer {
            Command::Success(_) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Closes it; what it holds goes to others.
    pub async fn close(mut self) {
        self.closed = true;
        self.connection.forget_consumer(self.consumer_id);
        self.close_at_broker().await;
    }

    async fn close_at_broker(&self) {
        if self.connection.is_closed() {
            return;
        }
        let consumer_id = self.consumer_id;
        // A broker that does not answer closes it with the connection.
        let _ = self
            .connection
            .request("a close", |request_id| {
                Command::CloseConsumer(proto::CommandCloseConsumer {
                    consumer_id,
                    request_id,
                    ..Default::default()
                })
            })
            .await;
    }
}

async fn ask_ack(
    connection: Arc<Connection>,
    command: proto::CommandAck,
) -> Result<(), ClientError> {
    let answer = connection
        .request("an acknowledgement", |request_id| {
            Command::Ack(proto::CommandAck { request_id: Some(request_id), ..command })
        })
        .await?;
    match answer {
        Command::AckResponse(answer) => match answer.error {
            Some(error) => Err(refused(error, answer.message.unwrap_or_default())),
            None => Ok(()),
        },
        other => Err(unexpected(&other)),
    }
}
