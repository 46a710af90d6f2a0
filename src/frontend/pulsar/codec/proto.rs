//! Messages generated from `proto/pulsar/PulsarApi.proto`.
#![allow(
    missing_docs,
    clippy::all,
    reason = "generated; the protocol's tables are its documentation"
)]

include!(concat!(env!("OUT_DIR"), "/pulsar.proto.rs"));
