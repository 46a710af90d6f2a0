//! From a MESSAGE frame to messages: checksum, decompression, batch.

use bytes::{Buf, Bytes};
use prost::Message as _;

use crate::client::compression::decompress;
use crate::client::error::ClientError;
use crate::client::message::{Message, MessageId, from_pairs};
use crate::frontend::pulsar::codec::{ENTRY_MESSAGES_MAX, proto, split_entry};

/// What an entry holds for the application.
#[derive(Debug)]
pub(super) struct ReadEntry {
    pub(super) messages: Vec<Message>,
    /// Messages of the batch left out: acknowledged before, or compacted away.
    pub(super) skipped: u32,
}

/// Bits of `size` messages, all set.
pub(super) fn all_set(size: u32) -> Vec<u64> {
    let size = size.min(ENTRY_MESSAGES_MAX);
    let mut words = vec![u64::MAX; size.div_ceil(64) as usize];
    if let (Some(last), rest @ 1..) = (words.last_mut(), size % 64) {
        *last = (1 << rest) - 1;
    }
    words
}

/// Clears bits `from..=to`.
pub(super) fn clear(words: &mut [u64], from: u32, to: u32) {
    for index in from..=to {
        if let Some(word) = words.get_mut(index as usize / 64) {
            *word &= !(1 << (index % 64));
        }
    }
}

/// Reads an entry; never makes more than `limit` bytes of it.
pub(super) fn read(
    command: &proto::CommandMessage,
    entry: &Bytes,
    limit: usize,
) -> Result<ReadEntry, ClientError> {
    let unreadable = |reason: String| ClientError::Unreadable(reason);
    let parts = split_entry(entry).map_err(|error| unreadable(error.to_string()))?;
    let metadata = proto::MessageMetadata::decode(parts.metadata)
        .map_err(|error| unreadable(error.to_string()))?;
    let compression = proto::CompressionType::try_from(metadata.compression.unwrap_or_default())
        .map_err(|_| unreadable("unknown compression".to_owned()))?;
    let size = metadata.uncompressed_size() as usize;
    let payload = decompress(compression, parts.payload, size, limit)?;
    let id = MessageId::from_wire(&command.message_id);
    let whole = Message {
        id,
        payload,
        key: metadata.partition_key.clone(),
        properties: from_pairs(metadata.properties),
        publish_time: metadata.publish_time,
        event_time: metadata.event_time,
        producer_name: metadata.producer_name,
        sequence_id: metadata.sequence_id,
        redelivery_count: command.redelivery_count(),
    };
    let Some(count) = metadata.num_messages_in_batch else {
        return Ok(ReadEntry { messages: vec![whole], skipped: 0 });
    };
    let count = u32::try_from(count)
        .ok()
        .filter(|count| *count <= ENTRY_MESSAGES_MAX)
        .ok_or_else(|| unreadable("impossible number of messages in a batch".to_owned()))?;
    split(&whole, count, &command.ack_set)
}

fn split(whole: &Message, count: u32, ack_set: &[i64]) -> Result<ReadEntry, ClientError> {
    let cut = || ClientError::Unreadable("a batch is cut off".to_owned());
    let mut rest = whole.payload.clone();
    let mut entry = ReadEntry { messages: Vec::new(), skipped: 0 };
    for index in 0..count {
        let mut take = |length: usize| (length <= rest.len()).then(|| rest.split_to(length));
        let size = take(4).ok_or_else(cut)?.get_u32() as usize;
        let single = proto::SingleMessageMetadata::decode(take(size).ok_or_else(cut)?)
            .map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let size = usize::try_from(single.payload_size).map_err(|_| cut())?;
        let payload = take(size).ok_or_else(cut)?;
        let is_acknowledged = !ack_set.is_empty()
            && ack_set
                .get(index as usize / 64)
                .is_none_or(|word| (*word as u64) & (1 << (index % 64)) == 0);
        if is_acknowledged || single.compacted_out() {
            entry.skipped += 1;
            continue;
        }
        entry.messages.push(Message {
            id: MessageId { batch_index: Some(index), batch_size: count, ..whole.id },
            payload,
            key: single.partition_key,
            properties: from_pairs(single.properties),
            event_time: single.event_time,
            sequence_id: single.sequence_id.unwrap_or(whole.sequence_id + u64::from(index)),
            publish_time: whole.publish_time,
            producer_name: whole.producer_name.clone(),
            redelivery_count: whole.redelivery_count,
        });
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_lz4_batch_is_read() {
        let hex = "0e0127271d69000000230a0e7374616e64616c6f6e652d302d3110001887d9a1bba23432026b304001\
                   482a5803e30000000812026b30180240006d300e007331180240016d310e007032180240026d32";
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect();
        let command = proto::CommandMessage::default();
        let entry = read(&command, &Bytes::from(bytes.clone()), 1000).unwrap();
        let payloads: Vec<&[u8]> = entry.messages.iter().map(|one| &one.payload[..]).collect();
        assert_eq!(payloads, [b"m0", b"m1", b"m2"]);
        assert_eq!(entry.messages[2].id.batch_index, Some(2));
        let partly = proto::CommandMessage { ack_set: vec![0b010], ..command };
        let entry = read(&partly, &Bytes::from(bytes), 1000).unwrap();
        assert_eq!((entry.messages.len(), entry.skipped), (1, 2));
        assert_eq!(&entry.messages[0].payload[..], b"m1");
    }

    #[test]
    fn bit_sets_name_what_is_not_acknowledged() {
        let mut words = all_set(3);
        clear(&mut words, 0, 0);
        assert_eq!(words, [6]);
        assert_eq!(all_set(64), [u64::MAX]);
        assert_eq!(all_set(65), [u64::MAX, 1]);
        assert!(all_set(0).is_empty());
    }
}
