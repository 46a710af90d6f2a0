//! The contract of the metadata store: a small, linearizable, ordered key-value store with versions,
//! compare-and-set, watches that miss nothing, and sessions. Behind it today a durable single node
//! (`single_node`); consensus comes behind the same contract.

/// The pure consensus machine.
pub mod consensus;
mod contract;
mod pages;
mod remote;
mod server;
mod single_node;
/// The pure state machine.
pub mod store;
mod wire;

#[cfg(test)]
mod service_tests;

pub use contract::{
    Expect, Metadata, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchEvent,
    WatchStream,
};
pub use pages::Pages;
pub use remote::{RemoteMetadata, RemoteMetadataConfig};
pub use server::{MetadataServer, MetadataService};
pub use single_node::{MetadataStartError, SingleNodeConfig, SingleNodeMetadata};
