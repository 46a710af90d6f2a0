//! Records and entries of topics. What is stored is Pulsar's entry, whoever appended it, so that Pulsar's
//! consumers receive what came here and the other way round.

use bytes::Bytes;
use prost::Message;

use crate::broker::StoredEntry;
use crate::frontend::grpc::refusal::Refusal;
use crate::frontend::pulsar::codec::{encode_entry, proto, split_entry};
use crate::rpc::generated::public as wire;

/// Most properties of a record.
const PROPERTIES_MAX: usize = 1_000;

/// Bytes of a record that count against the longest message.
fn size(record: &wire::NewRecord) -> usize {
    let properties = record.properties.iter().map(|one| 8 + one.name.len() + one.value.len());
    let key = record.key.as_ref().map_or(0, String::len);
    record.payload.len() + key + properties.sum::<usize>()
}

/// Refuses what no entry can be made of.
pub(super) fn check(record: &wire::NewRecord, bytes_max: usize) -> Result<(), Refusal> {
    if size(record) > bytes_max {
        return Err(Refusal::invalid(format!("a record has at most {bytes_max} bytes")));
    }
    if record.properties.len() > PROPERTIES_MAX {
        return Err(Refusal::invalid(format!("a record has at most {PROPERTIES_MAX} properties")));
    }
    Ok(())
}

/// A record as one message of a producer.
pub(super) fn encode(
    record: wire::NewRecord,
    producer_name: &str,
    sequence_id: u64,
    publish_time: u64,
) -> Bytes {
    let properties = record.properties.into_iter();
    let metadata = proto::MessageMetadata {
        producer_name: producer_name.to_owned(),
        sequence_id,
        publish_time,
        properties: properties
            .map(|property| proto::KeyValue { key: property.name, value: property.value })
            .collect(),
        partition_key: record.key,
        uncompressed_size: u32::try_from(record.payload.len()).ok(),
        ..Default::default()
    };
    encode_entry(&metadata, &record.payload)
}

/// An entry as a record, with what its metadata says in clear.
pub(super) fn decode(entry: StoredEntry) -> Result<wire::Record, Refusal> {
    let position = entry.position;
    let damaged = |error: &dyn std::fmt::Display| {
        Refusal::storage(format!("entry {position} is no message: {error}"))
    };
    let parts = split_entry(&entry.client_bytes).map_err(|error| damaged(&error))?;
    let metadata =
        proto::MessageMetadata::decode(parts.metadata.clone()).map_err(|error| damaged(&error))?;
    let is_plain = !entry.is_batch
        && metadata.compression.unwrap_or(0) == 0
        && metadata.encryption_keys.is_empty()
        && metadata.num_chunks_from_msg.unwrap_or(0) <= 1;
    let properties = metadata.properties.into_iter();
    Ok(wire::Record {
        number: entry.number,
        ledger: position.ledger.0,
        entry: position.entry.0,
        publish_time: entry.publish_time.0,
        message_count: entry.message_count,
        batch: entry.is_batch,
        pulsar_metadata: parts.metadata,
        payload: parts.payload,
        key: metadata.partition_key,
        properties: properties
            .map(|pair| wire::Property { name: pair.key, value: pair.value })
            .collect(),
        plain: is_plain,
    })
}
