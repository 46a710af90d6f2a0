//! Translate client protocols to broker calls; decide nothing.

/// Pulsar's binary protocol.
pub mod pulsar;
