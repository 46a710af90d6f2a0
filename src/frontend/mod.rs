//! Translate client protocols to broker calls; decide nothing. No front end names another.

/// HTTP: administration, statistics, metrics, health.
pub mod admin;
/// The public gRPC services: ledgers and streams.
pub mod grpc;
/// Pulsar's binary protocol.
pub mod pulsar;
