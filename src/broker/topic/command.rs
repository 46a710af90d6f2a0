//! What a topic's task can be told.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::handle::{Consumer, Producer};
use super::producers::ProducerKey;
use crate::broker::dispatch::ConsumerKey;
use crate::broker::managed_ledger::AppendOutcome;
use crate::broker::messages::{
    AckError, AckRequest, ConsumerSink, LastMessage, ProducerSink, Publish, SeekTarget,
    SubscribeOptions,
};
use crate::broker::service::{BrokerError, ProducerOptions};
use crate::broker::{ConsumerStats, TopicStats};
use crate::domain::Position;

/// Where an answer goes. Nobody waiting any more is fine.
pub(super) type Reply<T> = oneshot::Sender<T>;

/// A consumer of a topic.
#[derive(Clone, Debug)]
pub(super) struct ConsumerAddress {
    pub(super) subscription: Arc<str>,
    pub(super) key: ConsumerKey,
}

/// One item of the mailbox.
pub(super) enum Command {
    /// Entries of a producer. Not admitted ones come without bytes and are refused in their order.
    Publish {
        producer: ProducerKey,
        entries: Vec<Publish>,
        admitted: bool,
    },
    /// The managed ledger's outcomes.
    Appended(Vec<AppendOutcome>),
    /// The managed ledger is lost.
    Fenced(String),
    AddProducer {
        options: ProducerOptions,
        sink: Arc<dyn ProducerSink>,
        reply: Reply<Result<Producer, BrokerError>>,
    },
    CloseProducer {
        producer: ProducerKey,
        reply: Option<Reply<()>>,
    },
    Subscribe(SubscribeRequest),
    /// Permits wait at the consumer's handle.
    Flow(ConsumerAddress),
    Resume(ConsumerAddress),
    Acknowledge {
        consumer: ConsumerAddress,
        request: AckRequest,
        reply: Reply<Result<(), AckError>>,
    },
    Redeliver {
        consumer: ConsumerAddress,
        positions: Option<Vec<Position>>,
        epoch: Option<u64>,
    },
    Seek {
        consumer: ConsumerAddress,
        target: SeekTarget,
        reply: Reply<Result<(), BrokerError>>,
    },
    LastMessage {
        consumer: ConsumerAddress,
        reply: Reply<Result<LastMessage, BrokerError>>,
    },
    Unsubscribe {
        consumer: ConsumerAddress,
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    },
    CloseConsumer {
        consumer: ConsumerAddress,
        reply: Option<Reply<()>>,
    },
    ConsumerStats {
        consumer: ConsumerAddress,
        reply: Reply<ConsumerStats>,
    },
    Subscriptions(Reply<Vec<String>>),
    DeleteSubscription {
        name: String,
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    },
    Stats(Reply<TopicStats>),
    /// Whether the topic could be deleted.
    CheckUnused {
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    },
    Delete {
        force: bool,
        reply: Reply<Result<(), BrokerError>>,
    },
    Unload(Reply<()>),
    /// The managed ledger is closed or deleted; from the task to itself.
    LedgerClosed(Result<(), BrokerError>),
}

/// A consumer that wants in.
pub(super) struct SubscribeRequest {
    pub(super) options: SubscribeOptions,
    pub(super) sink: Arc<dyn ConsumerSink>,
    pub(super) reply: Reply<Result<Consumer, BrokerError>>,
}
