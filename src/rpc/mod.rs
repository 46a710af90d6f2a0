//! gRPC between nodes over runtime streams: generated messages and services, the server's accept loop,
//! the client's channel. Deadlines, keep-alive, reconnecting and limits are here, because the
//! generated code brings none.

/// Domain nouns as wire messages of `proto/seawall/bookie.proto`, and back.
pub mod bookie_messages;
mod channel;
mod failure_details;
/// Generated from `proto/seawall`.
pub mod generated;
mod hyper_runtime;
mod protocol;
mod receiver_stream;
mod server;

#[cfg(test)]
mod tests;

pub use channel::{Channel, ChannelConfig, ChannelError};
pub use failure_details::{failure_of_status, status_of_failure};
pub use hyper_runtime::{ClockTimer, StreamIo, TaskExecutor, stream_io};
pub use protocol::PROTOCOL;
pub use receiver_stream::ReceiverStream;
pub use server::{Routes, ServerConfig, serve};

/// Longest message either side decodes. A longer one ends its call with an error.
pub const MESSAGE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Where a sender closes a message of many parts; the last part may go beyond it.
pub const MESSAGE_BYTES: usize = 512 * 1024;

/// Bytes a stream may send before the receiver has taken them.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The same for a whole connection.
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;
/// HTTP/2 frames; larger ones measured no better.
const FRAME_BYTES: u32 = 64 * 1024;
