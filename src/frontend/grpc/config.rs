//! Limits of the gRPC front end, each with what happens at it.

use std::time::Duration;

use crate::frontend::pulsar::codec::MAX_MESSAGE_SIZE_DEFAULT;
use crate::ledger::Quorum;
use crate::rpc::ServerConfig;

/// Room for what a request carries beside one payload.
const REQUEST_ROOM: usize = 64 * 1024;

/// Limits and addresses.
#[derive(Clone, Debug)]
pub struct GrpcConfig {
    /// Where to listen, `host:port`; port 0 takes any.
    pub listen: String,
    /// Replication of ledgers whose creator asks for none.
    pub quorum: Quorum,
    /// Longest payload, with its properties, in bytes; a larger one is refused with `INVALID_ARGUMENT`, a
    /// request much larger than that with `OUT_OF_RANGE` by the codec.
    pub message_bytes_max: usize,
    /// Connections at a time; further ones wait to be accepted.
    pub connections_max: usize,
    /// Calls at a time on one connection; the client holds further ones back.
    pub streams_max: u32,
    /// Writes, appends and reads at a time on this node; more are refused with `RESOURCE_EXHAUSTED`.
    pub sessions_max: usize,
    /// Entries of one write or append without outcome. At the bound its requests are not read.
    pub pending_entries_max: usize,
    /// Bytes of those; the same.
    pub pending_bytes_max: usize,
    /// Bytes of one answer of a read (at least one entry): what the node holds for a reader that does not
    /// take it.
    pub read_bytes: usize,
    /// A reader that follows a ledger waits this long at its bookies for more (long poll) before the ledger's
    /// record is looked at for a close or other bookies.
    pub follow_patience: Duration,
    /// The same where there is nothing to wait at: no bookie answers, or the ledger is being recovered.
    pub follow_pause: Duration,
    /// A call that is answered once ends after this; what it asked for may still happen.
    pub call_limit: Duration,
    /// A connection that has made no call by then is closed.
    pub first_call_limit: Duration,
}

impl GrpcConfig {
    /// Defaults for an address.
    pub fn new(listen: &str, quorum: Quorum) -> Self {
        Self {
            listen: listen.to_owned(),
            quorum,
            message_bytes_max: MAX_MESSAGE_SIZE_DEFAULT,
            connections_max: 1024,
            streams_max: 256,
            sessions_max: 2048,
            pending_entries_max: 1_000,
            pending_bytes_max: 8 * 1024 * 1024,
            read_bytes: 256 * 1024,
            follow_patience: Duration::from_secs(1),
            follow_pause: Duration::from_millis(200),
            call_limit: Duration::from_secs(60),
            first_call_limit: Duration::from_secs(10),
        }
    }

    /// Largest request decoded, bytes.
    pub(super) const fn request_bytes_max(&self) -> usize {
        self.message_bytes_max + REQUEST_ROOM
    }

    pub(super) fn server(&self) -> ServerConfig {
        ServerConfig {
            connections_max: self.connections_max,
            streams_max: self.streams_max,
            first_call_limit: Some(self.first_call_limit),
            ..ServerConfig::default()
        }
    }
}
