//! CLOSE_PRODUCER: receipts of what is pending still come first. An unknown producer is closed already.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandCloseProducer,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let removed = connection.handles.producers().remove(command.producer_id);
    // Go and C++ may still have sends on their way when they close.
    connection.handles.retire_producer(command.producer_id);
    let Some(open) = removed else {
        connection.outbox.success(request_id);
        return Ok(());
    };
    let closing = Arc::clone(connection);
    connection
        .spawn_request("pulsar-close-producer", async move {
            open.producer.close().await;
            closing.outbox.success(request_id);
        })
        .await
}
