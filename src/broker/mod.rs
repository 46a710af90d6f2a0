//! Topics, cursors and subscriptions; knows no client protocol. Brokers hold no data: everything a
//! topic needs is in ledgers and metadata, so any broker can take it over.

/// Cursors: how far a subscription has got.
pub mod cursor;
/// Who gets which entry when.
pub mod dispatch;
mod entry_header;
/// A topic as a chain of ledgers.
pub mod managed_ledger;
mod messages;
mod meter;
/// Which broker serves which topics.
pub mod ownership;
mod partitions;
mod served_topics;
mod service;
mod stats;
mod subscription;
#[cfg(test)]
mod tests;
mod topic;

pub use entry_header::{EntryHeader, EntryHeaderError};
pub use managed_ledger::{NumberedError, NumberedLog, StoredEntry, StreamFacts};
pub use messages::{
    AckError, AckRequest, AckTarget, AckType, AppendSession, AppendTerms, CloseReason,
    ConnectionFacts, ConsumerSink, Delivery, InitialPosition, LastMessage, ProducerSink, Publish,
    PublishError, PublishOutcome, SeekTarget, SubscribeOptions, SubscriptionType,
};
pub use ownership::{
    BrokerAddresses, BrokerInstance, BrokerRecord, Bundle, LoadFigures, Located, OwnershipConfig,
};
pub use service::{Broker, BrokerConfig, BrokerError, Consumer, Producer, ProducerOptions, Topic};
pub use stats::{ConsumerStats, Flow, PublisherStats, SubscriptionStats, TopicStats};
