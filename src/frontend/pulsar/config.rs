//! Limits of the Pulsar front end, each with what happens at it.

use std::time::Duration;

use super::codec::{FRAME_PADDING, MAX_MESSAGE_SIZE_DEFAULT};

/// Limits and addresses. All have defaults but the addresses.
#[derive(Clone, Debug)]
pub struct PulsarConfig {
    /// Where to listen, `host:port`; port 0 takes any.
    pub listen: String,
    /// What clients are told to connect to, `host:port` or `pulsar://host:port`. By default the address
    /// bound; when that is every address of the machine, the one by which the client is connected.
    pub advertised: Option<String>,
    /// Largest metadata plus payload of a message, in bytes, as told to clients. Sends larger by more than
    /// the 2 KiB that chunking adds are refused; a frame larger than
    /// this and [`FRAME_PADDING`] ends the connection.
    pub max_message_size: usize,
    /// Connections at a time. More are accepted and closed at once.
    pub connections_max: usize,
    /// Producers on one connection. More are refused with `NotAllowedError`.
    pub producers_max: usize,
    /// Consumers on one connection. More are refused with `NotAllowedError`.
    pub consumers_max: usize,
    /// Requests of one connection being worked on. At the bound the connection is not read.
    pub requests_max: usize,
    /// Publishes of one connection without outcome. At the bound it is not read until half are done.
    pub publishes_max: usize,
    /// Bytes of those publishes; the same.
    pub publish_bytes_max: usize,
    /// Bytes waiting to be written on one connection above which its consumers get nothing more, until it is
    /// below half. At twice this the connection is not read either.
    pub outbound_bytes_max: usize,
    /// Longest name of a topic, subscription, producer or consumer, in bytes. Longer ones are refused.
    pub name_bytes_max: usize,
    /// A connection that has not said CONNECT by then is closed.
    pub handshake_limit: Duration,
    /// How often to ping; a connection silent for two of these is closed.
    pub keep_alive: Duration,
    /// A connection that takes nothing for this long while there is something to write is closed.
    pub write_limit: Duration,
}

impl PulsarConfig {
    /// Defaults for an address.
    pub fn new(listen: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            advertised: None,
            max_message_size: MAX_MESSAGE_SIZE_DEFAULT,
            connections_max: 10_000,
            producers_max: 10_000,
            consumers_max: 10_000,
            requests_max: 256,
            publishes_max: 4_000,
            publish_bytes_max: 64 * 1024 * 1024,
            outbound_bytes_max: 4 * 1024 * 1024,
            name_bytes_max: 1024,
            handshake_limit: Duration::from_secs(10),
            keep_alive: Duration::from_secs(30),
            write_limit: Duration::from_secs(60),
        }
    }

    /// Largest frame read, in bytes, before and after the handshake: strangers get little.
    pub(super) fn frame_limit(&self, is_connected: bool) -> usize {
        const STRANGER: usize = 64 * 1024;
        let full = self.max_message_size + FRAME_PADDING;
        if is_connected { full } else { full.min(STRANGER) }
    }
}
