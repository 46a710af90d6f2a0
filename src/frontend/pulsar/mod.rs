//! Pulsar's binary protocol, protocol version 20: what a 4.x client library needs.
//! `docs/internals/pulsar_compatibility.md` says command by command what is answered and how.

/// Bytes to frames and commands, and back.
pub mod codec;
mod commands;
mod config;
mod connection;
mod counters;
mod error_map;
mod listener;

pub use config::PulsarConfig;
pub use counters::{PulsarCounters, PulsarCounts};
pub use listener::PulsarFrontend;
