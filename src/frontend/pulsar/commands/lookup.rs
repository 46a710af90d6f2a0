//! LOOKUP: which broker serves a topic. Any broker can take any topic over, so the one asked answers with
//! its own address.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::Connection;

use proto::command_lookup_topic_response::LookupType;

pub(super) fn handle(connection: &Arc<Connection>, command: &proto::CommandLookupTopic) {
    let request_id = command.request_id;
    let answer = match connection.topic_name(&command.topic) {
        Err(error) => failed(request_id, proto::ServerError::InvalidTopicName, error.to_string()),
        Ok(_) => match command.advertised_listener_name() {
            "" => Command::LookupResponse(proto::CommandLookupTopicResponse {
                broker_service_url: Some(connection.advertised.to_string()),
                response: Some(LookupType::Connect.into()),
                request_id,
                authoritative: Some(true),
                proxy_through_service_url: Some(false),
                ..Default::default()
            }),
            // C++ keeps its connection after ServiceNotReady only if it finds these words in the message.
            listener => failed(
                request_id,
                proto::ServerError::ServiceNotReady,
                format!("the broker do not have {listener} listener"),
            ),
        },
    };
    connection.answer(&answer);
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
