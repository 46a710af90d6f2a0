//! PARTITIONED_METADATA: how many partitions a topic has; 0 for a topic that is not partitioned.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};
use crate::frontend::pulsar::error_map;

use proto::command_partitioned_topic_metadata_response::LookupType;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: proto::CommandPartitionedTopicMetadata,
) -> Result<(), ConnectionEnd> {
    let request_id = command.request_id;
    let name = match connection.topic_name(&command.topic) {
        Ok(name) => name,
        Err(error) => {
            let code = proto::ServerError::InvalidTopicName;
            connection.answer(&failed(request_id, code, error.to_string()));
            return Ok(());
        }
    };
    let create = command.metadata_auto_creation_enabled();
    let answering = Arc::clone(connection);
    connection
        .spawn_request("pulsar-partitions", async move {
            let answer = match answering.broker.partitions(&name, create).await {
                Ok(partitions) => Command::PartitionedMetadataResponse(
                    proto::CommandPartitionedTopicMetadataResponse {
                        partitions: Some(partitions),
                        request_id,
                        response: Some(LookupType::Success.into()),
                        error: None,
                        message: None,
                    },
                ),
                Err(error) => failed(request_id, error_map::of_broker(&error), error.to_string()),
            };
            answering.answer(&answer);
        })
        .await
}

fn failed(request_id: u64, error: proto::ServerError, message: String) -> Command {
    Command::PartitionedMetadataResponse(proto::CommandPartitionedTopicMetadataResponse {
        partitions: None,
        request_id,
        response: Some(LookupType::Failed.into()),
        error: Some(error.into()),
        message: Some(message),
    })
}
