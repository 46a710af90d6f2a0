//! SEEK: moves a subscription. The broker closes its consumers first, so CLOSE_CONSUMER precedes SUCCESS,
//! as Go needs it.

use std::sync::Arc;

use crate::broker::SeekTarget;
use crate::domain::WallTime;
use crate::frontend::pulsar::codec::proto;
use crate::frontend::pulsar::commands::message_id::{self, Place};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

use proto::ServerError;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandSeek,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let Some(consumer) = connection.handles.consumer(command.consumer_id) else {
        let reason = "the consumer does not exist".to_owned();
        connection.outbox.error(request_id, ServerError::MetadataError, reason);
        return Ok(());
    };
    let Some(target) = target(command) else {
        let reason = "neither a message nor a time to seek to".to_owned();
        connection.outbox.error(request_id, ServerError::UnknownError, reason);
        return Ok(());
    };
    let seeking = Arc::clone(connection);
    connection
        .spawn_request("pulsar-seek", async move {
            match consumer.seek(target).await {
                Ok(()) => seeking.outbox.success(request_id),
                Err(error) => seeking.refuse(request_id, &error),
            }
        })
        .await
}

fn target(command: &proto::CommandSeek) -> Option<SeekTarget> {
    match (&command.message_id, command.message_publish_time) {
        (Some(id), _) => match message_id::place(id)? {
            Place::Earliest => Some(SeekTarget::Earliest),
            Place::Latest => Some(SeekTarget::Latest),
            Place::At(position) => Some(SeekTarget::At(position, message_id::ack_set(id).ok()?)),
        },
        (None, Some(time)) => Some(SeekTarget::Time(WallTime(time))),
        (None, None) => None,
    }
}
