//! LOOKUP: which broker serves a topic. The owner is answered with Connect, whoever was asked; a topic that
//! nobody serves is taken here, or its client is redirected to the broker that should take it, with the
//! authoritative flag, which ends the search there.

use std::sync::Arc;

use crate::broker::Located;
use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::{Connection, ConnectionEnd};
use crate::frontend::pulsar::error_map;

use proto::command_lookup_topic_response::LookupType;

pub(super) async fn handle(
    connection: &Arc<Connection>,
    command: &proto::CommandLookupTopic,
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
    let listener = command.advertised_listener_name();
    if !listener.is_empty() {
        // C++ keeps its connection after ServiceNotReady only if it finds these words in the message.
        let reason = format!("the broker do not have {listener} listener");
        let code = proto::ServerError::ServiceNotReady;
        connection.answer(&failed(request_id, code, reason));
        return Ok(());
    }
    let authoritative = command.authoritative();
    let answering = Arc::clone(connection);
    connection
        .spawn_request("pulsar-lookup", async move {
            let answer = match answering.broker.locate(&name, authoritative).await {
                Ok(Located::Here) => {
                    found(request_id, LookupType::Connect, answering.advertised.to_string())
                }
                Ok(Located::At(owner)) => found(request_id, LookupType::Connect, owner.pulsar),
                Ok(Located::Ask(broker)) => found(request_id, LookupType::Redirect, broker.pulsar),
                // The same: C++ closes the connection on ServiceNotReady without words that it knows.
                Err(error) => {
                    let reason = format!("Failed to acquire ownership: {error}");
                    failed(request_id, error_map::of_broker(&error), reason)
                }
            };
            answering.answer(&answer);
        })
        .await
}

fn found(request_id: u64, response: LookupType, url: String) -> Command {
    Command::LookupResponse(proto::CommandLookupTopicResponse {
        broker_service_url: Some(url),
        response: Some(response.into()),
        request_id,
        authoritative: Some(true),
        proxy_through_service_url: Some(false),
        ..Default::default()
    })
}

fn failed(request_id: u64, error: proto::ServerError, message: String) -> Command {
    Command::LookupResponse(proto::CommandLookupTopicResponse {
        response: Some(LookupType::Failed.into()),
        request_id,
        error: Some(error.into()),
        message: Some(message),
        ..Default::default()
    })
}
