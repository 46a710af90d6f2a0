//! CONSUMER_STATS: a consumer's figures.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};

use proto::ServerError;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandConsumerStats,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let Some(consumer) = connection.handles.consumer(command.consumer_id) else {
        connection.answer(&Command::ConsumerStatsResponse(proto::CommandConsumerStatsResponse {
            request_id,
            error_code: Some(ServerError::ConsumerNotFound.into()),
            error_message: Some("the consumer does not exist".to_owned()),
            ..Default::default()
        }));
        return Ok(());
    };
    let asking = Arc::clone(connection);
    connection
        .spawn_request("pulsar-consumer-stats", async move {
            let stats = consumer.stats().await;
            let since = UNIX_EPOCH + Duration::from_millis(stats.connection.connected_since.0);
            asking.answer(&Command::ConsumerStatsResponse(proto::CommandConsumerStatsResponse {
                request_id,
                msg_rate_out: Some(stats.outward.message_rate),
                msg_throughput_out: Some(stats.outward.byte_rate),
                msg_rate_redeliver: Some(stats.redeliver_rate),
                consumer_name: Some(stats.consumer_name),
                available_permits: Some(u64::try_from(stats.available_permits).unwrap_or(0)),
                unacked_messages: Some(stats.unacked_messages),
                blocked_consumer_on_unacked_msgs: Some(stats.blocked_on_unacked),
                address: Some(stats.connection.address),
                connected_since: Some(humantime::format_rfc3339_millis(since).to_string()),
                message_ack_rate: Some(stats.ack_rate),
                ..Default::default()
            }));
        })
        .await
}
