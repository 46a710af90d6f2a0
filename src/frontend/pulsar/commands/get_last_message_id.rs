//! GET_LAST_MESSAGE_ID: the topic's end and how far the subscription is, which a reader compares.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::commands::message_id;
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

use proto::ServerError;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandGetLastMessageId,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let open = connection.handles.consumers().get(command.consumer_id);
    let Some(open) = open else {
        let reason = "the consumer does not exist".to_owned();
        connection.outbox.error(request_id, ServerError::MetadataError, reason);
        return Ok(());
    };
    let asking = Arc::clone(connection);
    connection
        .spawn_request("pulsar-last-message", async move {
            let last = match open.consumer.last_message().await {
                Ok(last) => last,
                Err(error) => return asking.refuse(request_id, &error),
            };
            let partition = open.sink.partition().and_then(|index| i32::try_from(index).ok());
            let mut last_message_id = message_id::of_position(last.position);
            last_message_id.partition = partition;
            if let (Some(_), Some(size)) = (last.position, last.batch_size) {
                last_message_id.batch_index = i32::try_from(size).ok().map(|size| size - 1);
            }
            // Of an empty topic both are -1, -1: clients compare them.
            let mark_delete = last.position.map(|_| last.mark_delete);
            asking.answer(&Command::GetLastMessageIdResponse(
                proto::CommandGetLastMessageIdResponse {
                    last_message_id,
                    request_id,
                    consumer_mark_delete_position: Some(message_id::of_position(mark_delete)),
                },
            ));
        })
        .await
}
