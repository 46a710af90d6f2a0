//! FLOW: permits for more messages. Unknown consumers and zero permits are ignored: both are late words
//! of a client about something that is over.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::connection::Connection;
use crate::mutant;

pub(super) fn handle(connection: &Arc<Connection>, command: &proto::CommandFlow) {
    if command.message_permits == 0 {
        return;
    }
    if let Some(consumer) = connection.handles.consumer(command.consumer_id) {
        consumer.flow(command.message_permits);
        if mutant!("F-permits") {
            consumer.flow(command.message_permits);
        }
    }
}
