//! CONNECT: the handshake. Every client is let in: there is no authentication yet. A proxy's target
//! address is never dialled: this is no proxy.

use std::sync::Arc;

use crate::frontend::pulsar::codec::{Command, proto};
use crate::frontend::pulsar::connection::Connection;

/// The protocol version spoken.
const PROTOCOL_VERSION: i32 = 20;
/// Longest name of a client kept for statistics, in characters.
const CLIENT_VERSION_MAX: usize = 256;

pub(super) fn handle(connection: &Arc<Connection>, command: proto::CommandConnect) {
    let version = command.client_version.chars().take(CLIENT_VERSION_MAX).collect();
    connection.set_client_version(version);
    let max = i32::try_from(connection.config.max_message_size).unwrap_or(i32::MAX);
    connection.answer(&Command::Connected(proto::CommandConnected {
        server_version: concat!("Seawall-", env!("CARGO_PKG_VERSION")).to_owned(),
        protocol_version: Some(command.protocol_version().clamp(0, PROTOCOL_VERSION)),
        max_message_size: Some(max),
        feature_flags: Some(proto::FeatureFlags {
            supports_get_partitioned_metadata_without_auto_creation: Some(true),
            ..Default::default()
        }),
    }));
}
