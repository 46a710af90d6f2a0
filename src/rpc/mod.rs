//! gRPC between nodes over runtime streams: generated messages and services, the server's accept loop,
//! the client's channel. Deadlines, keep-alive, reconnecting and limits are here, because the
//! generated code brings none.

/// Generated from `proto/seawall`.
pub mod generated;
