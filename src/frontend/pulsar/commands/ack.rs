//! ACK: answered with ACK_RESPONSE once durable if the client asked for a receipt.

use std::sync::Arc;

use crate::broker::{AckRequest, AckTarget, AckType};
use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::commands::message_id;
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};
use crate::frontend::pulsar::error_map;
use crate::reached;

use proto::ServerError;
use proto::command_ack::AckType as Wire;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: proto::CommandAck,
) -> Result<(), ConnectionEnd> {
    let (consumer_id, receipt) = (command.consumer_id, command.request_id);
    let request = match request(&command) {
        Ok(request) => request,
        Err((error, reason)) => {
            respond(connection, consumer_id, receipt, Some((error, reason.to_owned())));
            return Ok(());
        }
    };
    if let Some(error) = command.validation_error {
        reached!("pulsar ack: a client discarded a damaged message");
        tracing::warn!(consumer_id, error, "a client found a message damaged");
    }
    let Some(consumer) = connection.handles.consumer(consumer_id) else {
        let reason = "the consumer does not exist".to_owned();
        respond(connection, consumer_id, receipt, Some((ServerError::ConsumerNotFound, reason)));
        return Ok(());
    };
    let durable = consumer.acknowledge(request);
    if receipt.is_none() {
        return Ok(());
    }
    let answering = Arc::clone(connection);
    connection
        .spawn_request("pulsar-ack", async move {
            let error = match durable.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some((error_map::of_ack(&error), error.to_string())),
                Err(_) => Some((ServerError::ServiceNotReady, "the topic was closed".to_owned())),
            };
            respond(&answering, consumer_id, receipt, error);
        })
        .await
}

fn request(command: &proto::CommandAck) -> Result<AckRequest, (ServerError, &'static str)> {
    let refuse = |reason| Err((ServerError::NotAllowedError, reason));
    if command.txnid_least_bits.is_some() || command.txnid_most_bits.is_some() {
        return refuse("Transactions are not enabled.");
    }
    let ack_type = match Wire::try_from(command.ack_type) {
        Ok(Wire::Individual) => AckType::Individual,
        Ok(Wire::Cumulative) => AckType::Cumulative,
        Err(_) => return refuse("unknown kind of acknowledgement"),
    };
    if ack_type == AckType::Cumulative && command.message_id.len() != 1 {
        return refuse("a cumulative acknowledgement names one message");
    }
    let mut targets = Vec::with_capacity(command.message_id.len());
    for id in &command.message_id {
        match (message_id::position(id), message_id::ack_set(id)) {
            (Some(position), Ok(ack_set)) => targets.push(AckTarget { position, ack_set }),
            _ => return refuse("an acknowledged id names no message"),
        }
    }
    Ok(AckRequest { ack_type, targets })
}

/// Answers if the client asked for it. On success error and message stay unset: Go takes a message for a
/// failure.
fn respond(
    connection: &Connection,
    consumer_id: u64,
    receipt: Option<u64>,
    error: Option<(ServerError, String)>,
) {
    if let Some(request_id) = receipt {
        let (error, message) = match error {
            Some((error, message)) => (Some(error.into()), Some(message)),
            None => (None, None),
        };
        connection.answer(&Command::AckResponse(proto::CommandAckResponse {
            consumer_id,
            error,
            message,
            request_id: Some(request_id),
            ..Default::default()
        }));
    }
}
