//! The task behind a producer: numbers messages, sends them, matches receipts, connects again.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::batch::{self, FrameFacts};
use super::{ProducerEvent, ProducerInput, Queued, Ticket};
use crate::client::connection::Connection;
use crate::client::error::{ClientError, SendError};
use crate::client::message::{MessageId, OutgoingMessage};
use crate::client::opening::{Handle, Opening};
use crate::client::options::ProducerOptions;
use crate::client::pulsar_client::{PulsarClient, unexpected};
use crate::domain::{Instant, Position, TopicName};
use crate::frontend::pulsar::codec::proto::ServerError;
use crate::frontend::pulsar::codec::{Command, proto};
use crate::mutant;
use crate::runtime::{Mailbox, MailboxSender};

/// A frame without outcome.
struct Pending {
    sequence_id: u64,
    frame: Bytes,
    is_batch: bool,
    tickets: Vec<Ticket>,
    deadline: Instant,
}

impl Pending {
    fn resolve(self, outcome: &Result<Position, SendError>) {
        let size = self.tickets.len() as u32;
        for (index, ticket) in self.tickets.into_iter().enumerate() {
            ticket.resolve(match outcome {
                Ok(position) if self.is_batch => Ok(MessageId {
                    position: *position,
                    batch_index: Some(index as u32),
                    batch_size: size,
                }),
                Ok(position) => Ok(MessageId::entry(*position)),
                Err(error) => Err(error.clone()),
            });
        }
    }
}

pub(super) struct Session {
    client: PulsarClient,
    topic: TopicName,
    options: ProducerOptions,
    inbox: MailboxSender<ProducerInput>,
    producer_id: u64,
    name: Arc<str>,
    connection: Arc<Connection>,
    /// Number of the current connection's session; events of others are late.
    number: u64,
    epoch: u64,
    next_sequence_id: u64,
    pending: VecDeque<Pending>,
    batch: Vec<(OutgoingMessage, Ticket)>,
    batch_bytes: usize,
    batch_due: Option<Instant>,
    closing: Option<oneshot::Sender<()>>,
    /// Why nothing can be sent any more.
    dead: Option<SendError>,
}

/// Opens the first session.
pub(super) async fn open(
    client: &PulsarClient,
    topic: TopicName,
    options: ProducerOptions,
    inbox: MailboxSender<ProducerInput>,
) -> Result<Session, ClientError> {
    let producer_id = client.next_id();
    let given = options.name.clone();
    let (connection, success) =
        open_once(client, &topic, producer_id, given.as_deref(), 0, &inbox, 0).await?;
    // With deduplication the broker tells the last id it stored; without, -1.
    let next_sequence_id = u64::try_from(success.last_sequence_id() + 1).unwrap_or(0);
    Ok(Session {
        client: client.clone(),
        topic,
        options,
        inbox,
        producer_id,
        name: success.producer_name.into(),
        connection,
        number: 0,
        epoch: 0,
        next_sequence_id,
        pending: VecDeque::new(),
        batch: Vec::new(),
        batch_bytes: 0,
        batch_due: None,
        closing: None,
        dead: None,
    })
}

async fn open_once(
    client: &PulsarClient,
    topic: &TopicName,
    producer_id: u64,
    name: Option<&str>,
    epoch: u64,
    inbox: &MailboxSender<ProducerInput>,
    session: u64,
) -> Result<(Arc<Connection>, proto::CommandProducerSuccess), ClientError> {
    let connection = client.topic_connection(topic).await?;
    connection.route_producer(producer_id, inbox.clone(), session)?;
    let opening = Opening::new(&connection, Handle::Producer(producer_id));
    let answer = connection
        .request("a new producer", |request_id| {
            Command::Producer(proto::CommandProducer {
                topic: topic.to_string(),
                producer_id,
                request_id,
                producer_name: name.map(str::to_owned),
                user_provided_producer_name: Some(name.is_some() && epoch == 0),
                epoch: Some(epoch),
                ..Default::default()
            })
        })
        .await;
    let success = opening.settle(answer, |command| match command {
        Command::ProducerSuccess(success) => Ok(success),
        other => Err(unexpected(&other)),
    })?;
    Ok((connection, success))
}

async fn close_at_broker(connection: &Connection, producer_id: u64) {
    if connection.is_closed() {
        return;
    }
    // A broker that does not answer closes it with the connection.
    let _ = connection
        .request("a close", |request_id| {
            Command::CloseProducer(proto::CommandCloseProducer {
                producer_id,
                request_id,
                ..Default::default()
            })
        })
        .await;
}

impl Session {
    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(super) fn broker(&self) -> Arc<str> {
        Arc::clone(&self.connection.address)
    }

    /// Serves until closed and nothing is pending.
    pub(super) async fn run(mut self, mut inputs: Mailbox<ProducerInput>) {
        let clock = self.client.runtime().clock.clone();
        loop {
            let next = self.next_deadline();
            let taken = match next {
                Some(deadline) => tokio::select! {
                    biased;
                    taken = inputs.take_all() => taken,
                    () = clock.sleep_until(deadline) => Some(VecDeque::new()),
                },
                None => inputs.take_all().await,
            };
            let Some(taken) = taken else { return };
            let mut is_lost = false;
            for input in taken {
                is_lost |= self.take(input).await;
            }
            let now = clock.now();
            if self.options.linger.is_zero() || self.batch_due.is_some_and(|due| due <= now) {
                self.send_batch().await;
            }
            self.expire(now);
            if is_lost && self.dead.is_none() {
                self.reconnect().await;
            }
            if self.pending.is_empty()
                && self.batch.is_empty()
                && let Some(done) = self.closing.take()
            {
                if self.dead.is_none() {
                    close_at_broker(&self.connection, self.producer_id).await;
                }
                self.connection.forget_producer(self.producer_id);
                // The closer may have gone.
                let _ = done.send(());
                return;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let pending = self.pending.front().map(|pending| pending.deadline);
        [pending, self.batch_due].into_iter().flatten().min()
    }

    /// True if the session is lost.
    async fn take(&mut self, input: ProducerInput) -> bool {
        match input {
            ProducerInput::Send(queued) => self.add(queued).await,
            ProducerInput::Flush => self.send_batch().await,
            ProducerInput::Close(done) => {
                self.send_batch().await;
                self.closing = Some(done);
            }
            ProducerInput::Event(session, event) if session == self.number => match event {
                ProducerEvent::Receipt { sequence_id, position } => {
                    self.receipt(sequence_id, position);
                }
                ProducerEvent::Refused { sequence_id, error } => {
                    return self.refused(sequence_id, error);
                }
                ProducerEvent::Lost => return true,
            },
            ProducerInput::Event(..) => {}
        }
        false
    }

    async fn add(&mut self, queued: Queued) {
        let Queued { message, ticket } = queued;
        if self.dead.is_some() || self.closing.is_some() {
            ticket.resolve(Err(SendError::Rejected(ClientError::Closed)));
            return;
        }
        self.batch_bytes += message.payload.len();
        self.batch.push((message, ticket));
        if self.batch_due.is_none() && !self.options.linger.is_zero() {
            self.batch_due = Some(self.client.runtime().clock.now() + self.options.linger);
        }
        if self.batch.len() >= self.options.batch_messages_max.max(1)
            || self.batch_bytes >= self.options.batch_bytes_max
        {
            self.send_batch().await;
        }
    }

    async fn send_batch(&mut self) {
        self.batch_due = None;
        self.batch_bytes = 0;
        if self.batch.is_empty() {
            return;
        }
        let messages = std::mem::take(&mut self.batch);
        let clock = &self.client.runtime().clock;
        let facts = FrameFacts {
            producer_id: self.producer_id,
            producer_name: &self.name,
            publish_time: clock.wall().0,
            compression: self.options.compression,
            max_message_size: self.connection.max_message_size(),
        };
        let sequence_id = self.next_sequence_id;
        let is_batch = self.options.batch_messages_max > 1;
        let frame = match messages.as_slice() {
            [(message, _)] if !is_batch => batch::single(&facts, sequence_id, message),
            _ => batch::batch(&facts, sequence_id, messages.iter().map(|(message, _)| message)),
        };
        let tickets: Vec<Ticket> = messages.into_iter().map(|(_, ticket)| ticket).collect();
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                for ticket in tickets {
                    ticket.resolve(Err(SendError::Rejected(error.clone())));
                }
                return;
            }
        };
        self.next_sequence_id += tickets.len() as u64;
        let deadline = clock.now() + self.options.send_limit;
        let pending = Pending { sequence_id, frame: frame.clone(), is_batch, tickets, deadline };
        self.pending.push_back(pending);
        // If it is lost, so is the session, whose event is on its way.
        let _ = self.connection.send(frame).await;
    }

    fn receipt(&mut self, sequence_id: u64, position: Position) {
        match self.pending.front() {
            Some(head) if head.sequence_id == sequence_id || mutant!("P13") => {
                if let Some(head) = self.pending.pop_front() {
                    head.resolve(&Ok(position));
                }
            }
            // Of a message given up before, or sent twice.
            Some(head) if sequence_id < head.sequence_id => {}
            None if sequence_id < self.next_sequence_id => {}
            _ => self.die(&SendError::Violation(format!("receipt of {sequence_id} out of order"))),
        }
    }

    /// True if the session has to be opened again.
    fn refused(&mut self, sequence_id: u64, error: ClientError) -> bool {
        let is_head = self.pending.front().is_some_and(|head| head.sequence_id == sequence_id);
        if error.is_transient() {
            if !self.options.reconnect && is_head {
                let is_unstored = matches!(
                    &error,
                    ClientError::Refused { code: ServerError::ServiceNotReady, .. }
                );
                let outcome = if is_unstored {
                    SendError::Rejected(error)
                } else {
                    SendError::Unknown(error.to_string())
                };
                if let Some(head) = self.pending.pop_front() {
                    head.resolve(&Err(outcome));
                }
            }
            return true;
        }
        if is_head && let Some(head) = self.pending.pop_front() {
            head.resolve(&Err(SendError::Rejected(error)));
        }
        false
    }

    /// Gives up what is over its deadline.
    fn expire(&mut self, now: Instant) {
        while self.pending.front().is_some_and(|head| head.deadline <= now) {
            if let Some(head) = self.pending.pop_front() {
                head.resolve(&Err(SendError::Unknown("no receipt in time".to_owned())));
            }
        }
    }

    /// Ends for good: what is pending may or may not be stored, what follows is refused.
    fn die(&mut self, error: &SendError) {
        for pending in std::mem::take(&mut self.pending) {
            pending.resolve(&Err(error.clone()));
        }
        for (_, ticket) in std::mem::take(&mut self.batch) {
            ticket.resolve(Err(SendError::Rejected(ClientError::Closed)));
        }
        self.batch_due = None;
        self.dead = Some(error.clone());
    }

    /// Opens a new session and sends again what has no outcome, in order, while anything has time left.
    async fn reconnect(&mut self) {
        if !self.options.reconnect {
            self.die(&SendError::Unknown("the connection or the producer was lost".to_owned()));
            return;
        }
        let clock = self.client.runtime().clock.clone();
        let give_up = clock.now() + self.options.send_limit;
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.client.back_off(attempt).await;
            self.expire(clock.now());
            self.number += 1;
            self.epoch += 1;
            let opened = open_once(
                &self.client,
                &self.topic,
                self.producer_id,
                Some(&self.name),
                self.epoch,
                &self.inbox,
                self.number,
            )
            .await;
            match opened {
                Ok((connection, _)) => {
                    self.connection = connection;
                    break;
                }
                Err(error) if error.is_transient() && clock.now() < give_up => {
                    tracing::debug!(topic = %self.topic, %error, "producer not open again yet");
                }
                Err(error) => {
                    self.die(&SendError::Unknown(format!("cannot open again: {error}")));
                    return;
                }
            }
        }
        for pending in &self.pending {
            if self.connection.send(pending.frame.clone()).await.is_err() {
                // The new session is lost too; its event is on its way.
                return;
            }
        }
    }
}
