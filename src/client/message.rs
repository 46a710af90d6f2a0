//! Messages as an application sees them.

use bytes::Bytes;

use crate::domain::{EntryId, LedgerId, Position};
use crate::frontend::pulsar::codec::proto;

/// Where a message is. Ordered by place in the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId {
    /// The entry.
    pub position: Position,
    /// Its index in the entry's batch, if it is one.
    pub batch_index: Option<u32>,
    /// Messages in that batch.
    pub batch_size: u32,
}

impl MessageId {
    /// A whole entry.
    pub const fn entry(position: Position) -> Self {
        Self { position, batch_index: None, batch_size: 0 }
    }

    pub(super) fn from_wire(id: &proto::MessageIdData) -> Self {
        // Entry ids over i64 stand for -1.
        let entry = EntryId(i64::try_from(id.entry_id).unwrap_or(-1));
        Self::entry(Position::new(LedgerId(id.ledger_id), entry))
    }

    pub(super) fn to_wire(self) -> proto::MessageIdData {
        proto::MessageIdData {
            ledger_id: self.position.ledger.0,
            entry_id: self.position.entry.0 as u64,
            ..Default::default()
        }
    }
}

impl std::fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.batch_index {
            Some(index) => write!(formatter, "{}:{index}", self.position),
            None => self.position.fmt(formatter),
        }
    }
}

/// A message to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Its content.
    pub payload: Bytes,
    /// Its key.
    pub key: Option<String>,
    /// Its properties.
    pub properties: Vec<(String, String)>,
    /// The application's time of the event, ms since 1970.
    pub event_time: Option<u64>,
}

impl OutgoingMessage {
    /// A message without key and properties.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..Self::default() }
    }
}

/// A message received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it is.
    pub id: MessageId,
    /// Its content.
    pub payload: Bytes,
    /// Its key.
    pub key: Option<String>,
    /// Its properties.
    pub properties: Vec<(String, String)>,
    /// When the producer says it was published, ms since 1970.
    pub publish_time: u64,
    /// The application's time of the event, if told.
    pub event_time: Option<u64>,
    /// Who published it.
    pub producer_name: String,
    /// Its producer's number of it.
    pub sequence_id: u64,
    /// Times it was asked for again.
    pub redelivery_count: u32,
}

pub(super) fn to_pairs(properties: &[(String, String)]) -> Vec<proto::KeyValue> {
    properties
        .iter()
        .map(|(key, value)| proto::KeyValue { key: key.clone(), value: value.clone() })
        .collect()
}

pub(super) fn from_pairs(pairs: Vec<proto::KeyValue>) -> Vec<(String, String)> {
    pairs.into_iter().map(|pair| (pair.key, pair.value)).collect()
}
