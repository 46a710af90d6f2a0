//! GET_SCHEMA and GET_OR_CREATE_SCHEMA. No schema is stored: none is ever found, and every schema is
//! accepted under the empty version, which is what messages without a schema carry.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::Connection;

use proto::ServerError;

pub(super) fn get(connection: &Arc<Connection>, command: &proto::CommandGetSchema) {
    connection.answer(&Command::GetSchemaResponse(proto::CommandGetSchemaResponse {
        request_id: command.request_id,
        error_code: Some(ServerError::TopicNotFound.into()),
        error_message: Some("the topic has no schema".to_owned()),
        schema: None,
        schema_version: None,
    }));
}

pub(super) fn get_or_create(
    connection: &Arc<Connection>,
    command: &proto::CommandGetOrCreateSchema,
) {
    connection.answer(&Command::GetOrCreateSchemaResponse(
        proto::CommandGetOrCreateSchemaResponse {
            request_id: command.request_id,
            error_code: None,
            error_message: None,
            schema_version: Some(bytes::Bytes::new()),
        },
    ));
}
