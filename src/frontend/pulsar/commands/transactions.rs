//! Transactions: not offered. Each request is answered in its own type.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::Connection;

pub(super) fn handle(connection: &Arc<Connection>, command: &Command) {
    let error = Some(proto::ServerError::NotAllowedError.into());
    let message = Some("Transactions are not enabled.".to_owned());
    macro_rules! refusal {
        ($response:ident, $message:ident, $request:expr) => {
            Command::$response(proto::$message {
                request_id: $request.request_id,
                error,
                message,
                ..Default::default()
            })
        };
    }
    let answer = match command {
        Command::NewTxn(request) => refusal!(NewTxnResponse, CommandNewTxnResponse, request),
        Command::AddPartitionToTxn(request) => {
            refusal!(AddPartitionToTxnResponse, CommandAddPartitionToTxnResponse, request)
        }
        Command::AddSubscriptionToTxn(request) => {
            refusal!(AddSubscriptionToTxnResponse, CommandAddSubscriptionToTxnResponse, request)
        }
        Command::EndTxn(request) => refusal!(EndTxnResponse, CommandEndTxnResponse, request),
        Command::TcClientConnectRequest(request) => {
            Command::TcClientConnectResponse(proto::CommandTcClientConnectResponse {
                request_id: request.request_id,
                error,
                message,
            })
        }
        _ => return,
    };
    connection.answer(&answer);
}
