//! Our own clients of Pulsar's protocol and of streams, over the runtime: used by the command line, the bench
//! and the simulator's workloads. Every operation has a deadline; a publish ends stored, rejected or unknown.

mod compression;
mod connection;
mod consumer;
mod error;
mod message;
mod opening;
mod options;
mod producer;
mod pulsar_client;
mod raw;
#[cfg(test)]
mod scripted_broker;
mod streams;
#[cfg(test)]
mod tests;

pub use compression::Compression;
pub use consumer::Consumer;
pub use error::{ClientError, SendError};
pub use message::{Message, MessageId, OutgoingMessage};
pub use options::{ClientOptions, ConsumerOptions, ProducerOptions, StartPosition};
pub use producer::{Producer, SendTicket};
pub use pulsar_client::PulsarClient;
pub use raw::{RawConnection, publish_frame};
pub use streams::{Appender, StreamClient, StreamError, StreamReader};
