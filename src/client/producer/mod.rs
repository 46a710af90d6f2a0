//! A producer: messages in, one outcome each. The handle here, the task in `session`, batches in `batch`.

mod batch;
mod session;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::error::{ClientError, SendError};
use super::message::{MessageId, OutgoingMessage};
use super::options::ProducerOptions;
use super::pulsar_client::PulsarClient;
use crate::domain::{Position, TopicName};
use crate::runtime::{MailboxSender, mailbox};

/// What a connection tells a producer.
pub(super) enum ProducerEvent {
    /// Stored.
    Receipt { sequence_id: u64, position: Position },
    /// Not stored, or perhaps.
    Refused { sequence_id: u64, error: ClientError },
    /// The connection broke or the broker closed the producer.
    Lost,
}

/// One message on its way.
pub(super) struct Queued {
    message: OutgoingMessage,
    ticket: Ticket,
}

/// Where an outcome goes; holds the message's place in the window.
pub(super) struct Ticket {
    outcome: oneshot::Sender<Result<MessageId, SendError>>,
    _place: OwnedSemaphorePermit,
}

impl Ticket {
    fn resolve(self, outcome: Result<MessageId, SendError>) {
        // The sender may not care.
        let _ = self.outcome.send(outcome);
    }
}

/// What a producer's task receives.
pub(super) enum ProducerInput {
    /// A message to send.
    Send(Queued),
    /// Send what is batched now.
    Flush,
    /// Wait for what is pending, then close.
    Close(oneshot::Sender<()>),
    /// From the connection, with the session it belongs to.
    Event(u64, ProducerEvent),
}

/// An open producer. Cheap to clone; closed by [`Producer::close`] or when the last clone is dropped.
#[derive(Clone)]
pub struct Producer {
    inbox: Arc<Inbox>,
    window: Arc<Semaphore>,
    name: Arc<str>,
    broker: Arc<str>,
    client: PulsarClient,
}

/// The handles' side of the task's queue.
struct Inbox(MailboxSender<ProducerInput>);

impl Drop for Inbox {
    fn drop(&mut self) {
        // Nobody is left to be told; the task closes the producer when nothing is pending.
        let (done, _) = oneshot::channel();
        let _ = self.0.push(ProducerInput::Close(done));
    }
}

/// The outcome of one message, when it is known.
pub struct SendTicket(oneshot::Receiver<Result<MessageId, SendError>>);

impl Future for SendTicket {
    type Output = Result<MessageId, SendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|outcome| {
            outcome
                .unwrap_or_else(|_| Err(SendError::Unknown("the producer's task ended".to_owned())))
        })
    }
}

impl Producer {
    pub(super) async fn open(
        client: PulsarClient,
        topic: TopicName,
        options: ProducerOptions,
    ) -> Result<Self, ClientError> {
        let window = Arc::new(Semaphore::new(options.pending_max.max(1)));
        let (inbox, inputs) = mailbox(usize::MAX);
        let session = session::open(&client, topic, options, inbox.clone()).await?;
        let (name, broker) = (session.name(), session.broker());
        client.runtime().tasks.spawn("client-producer", session.run(inputs));
        Ok(Self { inbox: Arc::new(Inbox(inbox)), window, name, broker, client })
    }

    /// Its name, given or made by the broker.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `host:port` of the broker it was opened at; of its only one, if it does not connect again.
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// Takes a message in and gives its outcome to come. Waits while too many are pending. Messages are sent
    /// in the order of these calls.
    pub async fn send(&self, message: OutgoingMessage) -> Result<SendTicket, ClientError> {
        let place = Arc::clone(&self.window).acquire_owned();
        let limit = self.client.options().operation_limit;
        let place = self
            .client
            .runtime()
            .clock
            .timeout(limit, place)
            .await
            .map_err(|_| ClientError::Elapsed { operation: "room for a message" })?
            .map_err(|_| ClientError::Closed)?;
        let (outcome, receiver) = oneshot::channel();
        let queued = Queued { message, ticket: Ticket { outcome, _place: place } };
        // The window bounds what is queued here.
        self.inbox.0.push(ProducerInput::Send(queued)).map_err(|_| ClientError::Closed)?;
        Ok(SendTicket(receiver))
    }

    /// Sends what waits for its batch to fill.
    pub fn flush(&self) -> Result<(), ClientError> {
        self.inbox.0.push(ProducerInput::Flush).map_err(|_| ClientError::Closed)
    }

    /// Waits for what is pending (each within its own limit), then closes.
    pub async fn close(&self) -> Result<(), ClientError> {
        let (done, closed) = oneshot::channel();
        self.inbox.0.push(ProducerInput::Close(done)).map_err(|_| ClientError::Closed)?;
        closed.await.map_err(|_| ClientError::Closed)
    }
}
