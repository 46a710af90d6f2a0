//! CLOSE_CONSUMER: what the consumer holds goes to others. An unknown consumer is closed already.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandCloseConsumer,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let Some(open) = connection.handles.consumers().remove(command.consumer_id) else {
        connection.outbox.success(request_id);
        return Ok(());
    };
    let closing = Arc::clone(connection);
    connection
        .spawn_request("pulsar-close-consumer", async move {
            open.consumer.close().await;
            closing.outbox.success(request_id);
        })
        .await
}
