//! AUTH_RESPONSE: nothing was asked, so nothing follows. Clients send it only after a challenge.

use std::sync::Arc;

use crate::frontend::pulsar::connection::Connection;

pub(super) fn handle(connection: &Arc<Connection>) {
    tracing::debug!(client = connection.facts().address, "authentication data nobody asked for");
}
