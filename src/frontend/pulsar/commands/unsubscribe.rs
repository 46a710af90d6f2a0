//! UNSUBSCRIBE: deletes the subscription and closes the consumer.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

use proto::ServerError;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandUnsubscribe,
) -> Result<(), ConnectionEnd> {
    let (id, request_id, force) = (command.consumer_id, command.request_id, command.force());
    let open = connection.handles.consumers().get(id);
    let Some(open) = open else {
        let reason = "the consumer does not exist".to_owned();
        connection.outbox.error(request_id, ServerError::MetadataError, reason);
        return Ok(());
    };
    let working = Arc::clone(connection);
    connection
        .spawn_request("pulsar-unsubscribe", async move {
            // The client closes its consumer when it reads SUCCESS; a CLOSE_CONSUMER before would make it
            // subscribe again.
            open.sink.silence();
            match open.consumer.unsubscribe(force).await {
                Ok(()) => {
                    working.handles.consumers().remove(id);
                    working.outbox.success(request_id);
                }
                Err(error) => {
                    open.sink.speak_again();
                    working.refuse(request_id, &error);
                }
            }
        })
        .await
}
