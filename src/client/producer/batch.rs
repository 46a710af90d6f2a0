//! From messages to a SEND frame: alone, or as a batch.
//!
//! A batch's payload is, before compression, for each message: `u32` size of its
//! `SingleMessageMetadata`, that metadata, the payload.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::client::compression::Compression;
use crate::client::error::ClientError;
use crate::client::message::{OutgoingMessage, to_pairs};
use crate::frontend::pulsar::codec::{Command, encode_entry, encode_payload_command, proto};

/// What all frames of a producer share.
pub(super) struct FrameFacts<'a> {
    pub(super) producer_id: u64,
    pub(super) producer_name: &'a str,
    pub(super) publish_time: u64,
    pub(super) compression: Compression,
    pub(super) max_message_size: usize,
}

/// The frame of one message, not a batch.
pub(super) fn single(
    facts: &FrameFacts<'_>,
    sequence_id: u64,
    message: &OutgoingMessage,
) -> Result<Bytes, ClientError> {
    let metadata = proto::MessageMetadata {
        partition_key: message.key.clone(),
        properties: to_pairs(&message.properties),
        event_time: message.event_time,
        ..metadata(facts, sequence_id, message.payload.len())
    };
    frame(facts, sequence_id, None, &metadata, message.payload.clone())
}

/// The frame of a batch; its messages have consecutive ids from `sequence_id`.
pub(super) fn batch<'m>(
    facts: &FrameFacts<'_>,
    sequence_id: u64,
    messages: impl Iterator<Item = &'m OutgoingMessage>,
) -> Result<Bytes, ClientError> {
    let mut container = BytesMut::new();
    let mut count = 0_u32;
    let mut key = None;
    for message in messages {
        if count == 0 {
            key.clone_from(&message.key);
        }
        let single = proto::SingleMessageMetadata {
            properties: to_pairs(&message.properties),
            partition_key: message.key.clone(),
            payload_size: i32::try_from(message.payload.len())
                .map_err(|_| ClientError::Invalid("a message over 2 GiB".to_owned()))?,
            event_time: message.event_time,
            sequence_id: Some(sequence_id + u64::from(count)),
            ..Default::default()
        };
        container.put_u32(single.encoded_len() as u32);
        single.encode_raw(&mut container);
        container.put_slice(&message.payload);
        count += 1;
    }
    let metadata = proto::MessageMetadata {
        partition_key: key,
        num_messages_in_batch: i32::try_from(count).ok(),
        ..metadata(facts, sequence_id, container.len())
    };
    frame(facts, sequence_id, Some(count), &metadata, container.freeze())
}

fn metadata(facts: &FrameFacts<'_>, sequence_id: u64, size: usize) -> proto::MessageMetadata {
    let compression = facts.compression.to_wire();
    proto::MessageMetadata {
        producer_name: facts.producer_name.to_owned(),
        sequence_id,
        publish_time: facts.publish_time,
        compression: compression.map(Into::into),
        uncompressed_size: compression.and_then(|_| u32::try_from(size).ok()),
        ..Default::default()
    }
}

fn frame(
    facts: &FrameFacts<'_>,
    sequence_id: u64,
    count: Option<u32>,
    metadata: &proto::MessageMetadata,
    payload: Bytes,
) -> Result<Bytes, ClientError> {
    let payload = facts.compression.compress(payload)?;
    let size = metadata.encoded_len() + payload.len();
    if size > facts.max_message_size {
        let reason = format!("{size} bytes are over the limit of {}", facts.max_message_size);
        return Err(ClientError::Invalid(reason));
    }
    let entry = encode_entry(metadata, &payload);
    let send = proto::CommandSend {
        producer_id: facts.producer_id,
        sequence_id,
        num_messages: count.and_then(|count| i32::try_from(count).ok()),
        ..Default::default()
    };
    let mut frame = BytesMut::new();
    encode_payload_command(&Command::Send(send), &entry, &mut frame);
    Ok(frame.freeze())
}
