//! One connection of a workload: our Pulsar client with short deadlines, which gives up instead of
//! reconnecting, so that each session has one story.

use std::time::Duration;

use super::WorkloadContext;
use crate::broker::SubscriptionType;
use crate::client::{
    ClientError, ClientOptions, Consumer, ConsumerOptions, Message, MessageId, OutgoingMessage,
    Producer, ProducerOptions, PulsarClient, SendError, SendTicket, StartPosition,
};
use crate::domain::Position;
use crate::runtime::sim::Note;
use crate::simulator::history::{DeliveryRecord, Place, Rewind, decode_body};
use crate::simulator::noted::Noted;

/// Deadline of requests.
const OPERATION_LIMIT: Duration = Duration::from_secs(6);
/// A message without outcome after this stays unknown.
const SEND_LIMIT: Duration = Duration::from_secs(15);

/// The property every subscription of the workloads has from its creation to its end.
pub fn property() -> (String, String) {
    ("made-by".to_owned(), "workload".to_owned())
}

/// The session ended; the history has what was told before.
#[derive(Debug, thiserror::Error)]
#[error("session ended: {reason}")]
pub struct SessionError {
    reason: String,
    /// The broker did what the protocol forbids: no fault excuses that.
    pub is_violation: bool,
}

impl SessionError {
    /// With a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_violation: false }
    }
}

impl From<ClientError> for SessionError {
    fn from(error: ClientError) -> Self {
        let is_violation = matches!(&error, ClientError::Protocol(_) | ClientError::Unreadable(_));
        Self { reason: error.to_string(), is_violation }
    }
}

impl From<SendError> for SessionError {
    fn from(error: SendError) -> Self {
        let is_violation = matches!(&error, SendError::Violation(_));
        Self { reason: error.to_string(), is_violation }
    }
}

impl WorkloadContext {
    /// Writes a delivery down.
    pub fn delivered(&self, topic: &str, subscription: &str, session: u32, received: &Received) {
        self.history.lock().delivered(DeliveryRecord {
            topic: topic.to_owned(),
            subscription: subscription.to_owned(),
            session,
            number: decode_body(&received.message.payload),
            position: received.place,
            at: self.stamp(),
        });
    }

    /// Writes a session's end down: why it ended matters only if the broker broke the protocol.
    pub fn ended(&self, who: &str, session: Result<(), SessionError>) {
        self.history.lock().note(|| {
            let reason = match &session {
                Ok(()) => "it left".to_owned(),
                Err(error) => error.to_string(),
            };
            Note::from(Noted::SessionEnded).text(format!("{who}: {reason}"))
        });
        if let Err(error) = session {
            tracing::debug!(who, %error, "a session ended");
            if error.is_violation {
                self.history.lock().protocol_violations.push(format!("{who}: {error}"));
            }
        }
    }
}

/// A connected client.
pub struct WorkloadClient {
    client: PulsarClient,
    /// Of its consumers, messages.
    receiver_queue: u32,
}

/// The outcome of one send, to come.
pub struct Receipt(SendTicket);

/// What a receipt said.
pub enum Told {
    /// Committed here.
    Committed(Place),
    /// Certainly not stored.
    Rejected,
    /// Not even sent: the broker had closed the producer, or the connection was gone.
    Closed,
}

/// A message as the history writes it down.
pub struct Received {
    /// The client's message.
    pub message: Message,
    /// Where it is.
    pub place: Place,
}

/// A place as the history knows it.
pub fn place_of(id: MessageId) -> Place {
    let batch_index = id.batch_index.map_or(-1, |index| i32::try_from(index).unwrap_or(i32::MAX));
    Place { position: id.position, batch_index }
}

impl Received {
    /// True for the last message of a batch, and for a message that is its whole entry.
    pub fn is_last_of_entry(&self) -> bool {
        self.message.id.batch_index.is_none_or(|index| index + 1 >= self.message.id.batch_size)
    }
}

impl WorkloadClient {
    /// Connects to the run's broker.
    pub async fn connect(context: &WorkloadContext) -> Result<Self, SessionError> {
        let options = ClientOptions {
            operation_limit: OPERATION_LIMIT,
            keep_alive: Duration::from_secs(5),
            ..ClientOptions::default()
        };
        // Clients know the brokers in different orders.
        let mut brokers: Vec<&str> = context.broker.split(',').collect();
        let first = context.runtime.random.below(brokers.len() as u64) as usize;
        brokers.rotate_left(first);
        let brokers = brokers.join(",");
        let client = PulsarClient::connect(&context.runtime, &brokers, options).await?;
        Ok(Self { client, receiver_queue: context.plan.receiver_queue })
    }

    /// Opens a producer.
    pub async fn producer(
        &self,
        topic: &str,
        batch: u32,
    ) -> Result<WorkloadProducer, SessionError> {
        let options = ProducerOptions {
            batch_messages_max: batch as usize,
            linger: if batch > 1 { Duration::from_millis(20) } else { Duration::ZERO },
            send_limit: SEND_LIMIT,
            reconnect: false,
            ..ProducerOptions::default()
        };
        Ok(WorkloadProducer(self.client.producer(topic, options).await?))
    }

    /// Joins a subscription that begins at the first message.
    pub async fn consumer(
        &self,
        topic: &str,
        subscription: &str,
        subscription_type: SubscriptionType,
    ) -> Result<WorkloadConsumer, SessionError> {
        let options = ConsumerOptions {
            subscription_type,
            start: StartPosition::Earliest,
            receiver_queue: self.receiver_queue,
            subscription_properties: vec![property()],
            reconnect: false,
            ..ConsumerOptions::default()
        };
        Ok(WorkloadConsumer(self.client.consumer(topic, subscription, options).await?))
    }

    /// Opens a reader at the first message.
    pub async fn reader(&self, topic: &str) -> Result<WorkloadConsumer, SessionError> {
        let options = ConsumerOptions {
            start: StartPosition::Earliest,
            durable: false,
            reconnect: false,
            ..ConsumerOptions::default()
        };
        Ok(WorkloadConsumer(self.client.consumer(topic, "reader", options).await?))
    }
}

/// An open producer.
pub struct WorkloadProducer(Producer);

impl WorkloadProducer {
    /// The broker it was opened at.
    pub fn broker(&self) -> String {
        self.0.broker().to_owned()
    }

    /// Sends; the outcome comes by the receipt.
    pub async fn send(&self, body: Vec<u8>) -> Result<Receipt, SessionError> {
        Ok(Receipt(self.0.send(OutgoingMessage::new(body)).await?))
    }

    /// Closes it.
    pub async fn close(&self) -> Result<(), SessionError> {
        Ok(self.0.close().await?)
    }
}

impl Receipt {
    /// Waits for the outcome; an error if it stays unknown.
    pub async fn told(self) -> Result<Told, SessionError> {
        match self.0.await {
            Ok(id) => Ok(Told::Committed(place_of(id))),
            Err(SendError::Rejected(ClientError::Closed)) => Ok(Told::Closed),
            Err(SendError::Rejected(_)) => Ok(Told::Rejected),
            Err(error) => Err(error.into()),
        }
    }
}

/// An open consumer or reader.
pub struct WorkloadConsumer(Consumer);

impl WorkloadConsumer {
    /// The next message, `None` if none came within `limit`.
    pub async fn receive(&mut self, limit: Duration) -> Result<Option<Received>, SessionError> {
        let message = self.0.receive(limit).await?;
        Ok(message.map(|message| Received { place: place_of(message.id), message }))
    }

    /// Acknowledges, and ends with the receipt, while the consumer goes on.
    pub fn acknowledge(
        &self,
        received: &Received,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let receipt = self.0.acknowledgement(&[received.message.id]);
        async move { Ok(receipt.await?) }
    }

    /// Acknowledges everything up to here and waits for the receipt.
    pub async fn acknowledge_cumulative(&self, received: &Received) -> Result<(), SessionError> {
        Ok(self.0.acknowledge_cumulative(received.message.id).await?)
    }

    /// Asks for one message again.
    pub fn redeliver(&self, received: &Received) {
        self.0.redeliver(&[received.message.id]);
    }

    /// Asks for everything not acknowledged again.
    pub fn redeliver_all(&mut self) {
        self.0.redeliver_all();
    }

    /// Moves the subscription; the broker closes its consumers.
    pub async fn seek(&mut self, to: Rewind) -> Result<(), SessionError> {
        let to = match to {
            Rewind::Earliest => StartPosition::Earliest,
            Rewind::To(position) => StartPosition::At(MessageId::entry(position)),
        };
        Ok(self.0.seek(to).await?)
    }

    /// The last entry of the topic.
    pub async fn last_entry(&self) -> Result<Option<Position>, SessionError> {
        Ok(self.0.last_message_id().await?.map(|id| id.position))
    }

    /// Closes it; what it holds goes to others.
    pub async fn close(self) {
        self.0.close().await;
    }
}
