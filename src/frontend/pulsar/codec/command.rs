//! Commands by number. The envelope (`BaseCommand`) is read by hand: a frame has one message, and the
//! generated envelope would hold room for all sixty.

use bytes::{Bytes, BytesMut};
use prost::Message;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_varint, encoded_len_varint,
    skip_field,
};

use super::proto;

/// A command that cannot be acted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Not protobuf, or not what the type says.
    #[error("malformed command: {0}")]
    Malformed(String),
    /// A type this version does not know.
    #[error("unknown command type {0}")]
    UnknownType(u32),
}

impl From<prost::DecodeError> for CommandError {
    fn from(error: prost::DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

macro_rules! commands {
    ($($number:literal => $variant:ident($message:ident),)*) => {
        /// One command with its message.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the variants are the protocol's own names")]
        #[allow(clippy::large_enum_variant, reason = "short-lived, one a frame, never stored")]
        pub enum Command {
            $($variant(proto::$message),)*
        }

        impl Command {
            /// Its type, which is also the number of its field in the envelope.
            pub const fn number(&self) -> u32 {
                match self { $(Self::$variant(_) => $number,)* }
            }

            /// Its name, for logs.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($variant),)* }
            }

            fn decode_body(number: u32, body: Bytes) -> Result<Self, CommandError> {
                match number {
                    $($number => Ok(Self::$variant(proto::$message::decode(body)?)),)*
                    _ => Err(CommandError::UnknownType(number)),
                }
            }

            fn body_length(&self) -> usize {
                match self { $(Self::$variant(message) => message.encoded_len(),)* }
            }

            fn encode_body(&self, buffer: &mut BytesMut) {
                match self { $(Self::$variant(message) => message.encode_raw(buffer),)* }
            }
        }
    };
}

commands! {
    2 => Connect(CommandConnect),
    3 => Connected(CommandConnected),
    4 => Subscribe(CommandSubscribe),
    5 => Producer(CommandProducer),
    6 => Send(CommandSend),
    7 => SendReceipt(CommandSendReceipt),
    8 => SendError(CommandSendError),
    9 => Message(CommandMessage),
    10 => Ack(CommandAck),
    11 => Flow(CommandFlow),
    12 => Unsubscribe(CommandUnsubscribe),
    13 => Success(CommandSuccess),
    14 => Error(CommandError),
    15 => CloseProducer(CommandCloseProducer),
    16 => CloseConsumer(CommandCloseConsumer),
    17 => ProducerSuccess(CommandProducerSuccess),
    18 => Ping(CommandPing),
    19 => Pong(CommandPong),
    20 => RedeliverUnacknowledgedMessages(CommandRedeliverUnacknowledgedMessages),
    21 => PartitionedMetadata(CommandPartitionedTopicMetadata),
    22 => PartitionedMetadataResponse(CommandPartitionedTopicMetadataResponse),
    23 => Lookup(CommandLookupTopic),
    24 => LookupResponse(CommandLookupTopicResponse),
    25 => ConsumerStats(CommandConsumerStats),
    26 => ConsumerStatsResponse(CommandConsumerStatsResponse),
    27 => ReachedEndOfTopic(CommandReachedEndOfTopic),
    28 => Seek(CommandSeek),
    29 => GetLastMessageId(CommandGetLastMessageId),
    30 => GetLastMessageIdResponse(CommandGetLastMessageIdResponse),
    31 => ActiveConsumerChange(CommandActiveConsumerChange),
    32 => GetTopicsOfNamespace(CommandGetTopicsOfNamespace),
    33 => GetTopicsOfNamespaceResponse(CommandGetTopicsOfNamespaceResponse),
    34 => GetSchema(CommandGetSchema),
    35 => GetSchemaResponse(CommandGetSchemaResponse),
    36 => AuthChallenge(CommandAuthChallenge),
    37 => AuthResponse(CommandAuthResponse),
    38 => AckResponse(CommandAckResponse),
    39 => GetOrCreateSchema(CommandGetOrCreateSchema),
    40 => GetOrCreateSchemaResponse(CommandGetOrCreateSchemaResponse),
    50 => NewTxn(CommandNewTxn),
    51 => NewTxnResponse(CommandNewTxnResponse),
    52 => AddPartitionToTxn(CommandAddPartitionToTxn),
    53 => AddPartitionToTxnResponse(CommandAddPartitionToTxnResponse),
    54 => AddSubscriptionToTxn(CommandAddSubscriptionToTxn),
    55 => AddSubscriptionToTxnResponse(CommandAddSubscriptionToTxnResponse),
    56 => EndTxn(CommandEndTxn),
    57 => EndTxnResponse(CommandEndTxnResponse),
    58 => EndTxnOnPartition(CommandEndTxnOnPartition),
    59 => EndTxnOnPartitionResponse(CommandEndTxnOnPartitionResponse),
    60 => EndTxnOnSubscription(CommandEndTxnOnSubscription),
    61 => EndTxnOnSubscriptionResponse(CommandEndTxnOnSubscriptionResponse),
    62 => TcClientConnectRequest(CommandTcClientConnectRequest),
    63 => TcClientConnectResponse(CommandTcClientConnectResponse),
    64 => WatchTopicList(CommandWatchTopicList),
    65 => WatchTopicListSuccess(CommandWatchTopicListSuccess),
    66 => WatchTopicUpdate(CommandWatchTopicUpdate),
    67 => WatchTopicListClose(CommandWatchTopicListClose),
    68 => TopicMigrated(CommandTopicMigrated),
}

const PING: u32 = 18;
const PONG: u32 = 19;
const TYPE_FIELD: u32 = 1;

impl Command {
    /// Reads an encoded `BaseCommand`.
    pub fn decode(envelope: &Bytes) -> Result<Self, CommandError> {
        let number = scan(envelope, TYPE_FIELD)?
            .and_then(|field| match field {
                Field::Number(value) => u32::try_from(value).ok(),
                Field::Body(..) => None,
            })
            .ok_or_else(|| CommandError::Malformed("no type".to_owned()))?;
        let body = match scan(envelope, number)? {
            // A type of 1 would name the type's own field.
            Some(Field::Body(start, end)) => envelope.slice(start..end),
            _ if number == PING || number == PONG => Bytes::new(),
            _ => {
                // Unknown types are told apart from known ones without their message.
                Self::decode_body(number, Bytes::new())?;
                return Err(CommandError::Malformed(format!("type {number} without its message")));
            }
        };
        Self::decode_body(number, body)
    }

    /// Bytes of the encoded `BaseCommand`.
    pub fn encoded_length(&self) -> usize {
        let body = self.body_length();
        let number = u64::from(self.number());
        1 + encoded_len_varint(number)
            + encoded_len_varint(number << 3 | 2)
            + encoded_len_varint(body as u64)
            + body
    }

    /// Appends the encoded `BaseCommand`.
    pub fn encode(&self, buffer: &mut BytesMut) {
        let number = u64::from(self.number());
        encode_varint(u64::from(TYPE_FIELD << 3), buffer);
        encode_varint(number, buffer);
        encode_varint(number << 3 | 2, buffer);
        encode_varint(self.body_length() as u64, buffer);
        self.encode_body(buffer);
    }
}

enum Field {
    Number(u64),
    Body(usize, usize),
}

/// The last occurrence of a field in the envelope: its value, or where its bytes are.
fn scan(envelope: &[u8], wanted: u32) -> Result<Option<Field>, CommandError> {
    let mut rest = envelope;
    let mut found = None;
    while !rest.is_empty() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        if tag != wanted {
            skip_field(wire_type, tag, &mut rest, DecodeContext::default())?;
            continue;
        }
        match wire_type {
            WireType::Varint => found = Some(Field::Number(decode_varint(&mut rest)?)),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut rest)?)
                    .ok()
                    .filter(|length| *length <= rest.len())
                    .ok_or_else(|| CommandError::Malformed("a field is cut off".to_owned()))?;
                let start = envelope.len() - rest.len();
                found = Some(Field::Body(start, start + length));
                rest = &rest[length..];
            }
            _ => skip_field(wire_type, tag, &mut rest, DecodeContext::default())?,
        }
    }
    Ok(found)
}
