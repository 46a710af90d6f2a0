//! SEND: an entry to publish. Checked here, stored by the broker, answered by the producer's sink.

use std::sync::Arc;

use bytes::Bytes;

use crate::broker::{AppendTerms, Publish};
use crate::domain::WallTime;
use crate::frontend::pulsar::codec::{EntryError, EntryFacts, inspect_entry, proto};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd, PublishBatches, Refusal};
use crate::reached;

use proto::ServerError;

pub(super) fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandSend,
    payload: &Bytes,
    batches: &mut PublishBatches,
) -> Result<(), ConnectionEnd> {
    let id = command.producer_id;
    let Some((open, publishes)) = batches.of(id, || connection.handles.producers().get(id)) else {
        if connection.handles.is_retired_producer(id) {
            reached!("pulsar send: to a producer closed by the broker");
            return Ok(());
        }
        return Err(ConnectionEnd::Violation("a SEND to an unknown producer"));
    };
    match inspect(connection, command, payload) {
        Ok(facts) => {
            let registered = open.sink.register(
                command.sequence_id,
                command.highest_sequence_id,
                payload.len(),
                None,
            );
            if registered {
                publishes.push(Publish {
                    sequence_id: command.sequence_id,
                    highest_sequence_id: command.highest_sequence_id,
                    message_count: facts.message_count,
                    is_batch: facts.is_batch,
                    publish_time: WallTime(facts.publish_time),
                    client_bytes: facts.stored,
                    terms: AppendTerms::default(),
                });
            }
        }
        Err(refusal) => {
            open.sink.register(
                command.sequence_id,
                command.highest_sequence_id,
                payload.len(),
                Some(refusal),
            );
        }
    }
    Ok(())
}

fn inspect(
    connection: &Connection,
    command: &proto::CommandSend,
    payload: &Bytes,
) -> Result<EntryFacts, Refusal> {
    /// Magic, checksum and size before the metadata, and what a client adds to the metadata of a chunk after
    /// it has cut the message to the maximum size: chunk numbers, and an id made from its producer's name.
    const ROOM: usize = 10 + 2048;
    let refuse = |error, message: String| Refusal { error, message };
    let not_allowed = |message: &str| refuse(ServerError::NotAllowedError, message.to_owned());
    if command.txnid_least_bits.is_some() || command.txnid_most_bits.is_some() {
        return Err(not_allowed("Transactions are not enabled."));
    }
    if payload.len() > connection.config.max_message_size + ROOM {
        return Err(not_allowed("the message is larger than the maximum message size"));
    }
    if command.highest_sequence_id.is_some_and(|highest| highest < command.sequence_id) {
        let reason = "the highest sequence id is below the first".to_owned();
        return Err(refuse(ServerError::MetadataError, reason));
    }
    inspect_entry(payload).map_err(|error| match error {
        EntryError::Checksum { .. } => refuse(ServerError::ChecksumError, error.to_string()),
        _ => refuse(ServerError::NotAllowedError, error.to_string()),
    })
}
