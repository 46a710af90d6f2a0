//! WATCH_TOPIC_LIST: not offered, and the handshake says so; clients then poll the list.

use std::sync::Arc;

use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::connection::Connection;

pub(super) fn handle(connection: &Arc<Connection>, command: &proto::CommandWatchTopicList) {
    connection.outbox.error(
        command.request_id,
        proto::ServerError::NotAllowedError,
        "watching topic lists is not supported".to_owned(),
    );
}
