//! REDELIVER_UNACKNOWLEDGED_MESSAGES: some entries, or everything the consumer holds. Never answered.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::commands::message_id;
use crate::frontend::pulsar::connection::Connection;

pub(super) fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandRedeliverUnacknowledgedMessages,
) {
    let Some(consumer) = connection.handles.consumer(command.consumer_id) else { return };
    let positions = if command.message_ids.is_empty() {
        None
    } else {
        // Ids that name nothing have nothing to be delivered again.
        Some(command.message_ids.iter().filter_map(message_id::position).collect())
    };
    consumer.redeliver(positions, command.consumer_epoch);
}
