//! The contract of the metadata store: a small, linearizable, ordered key-value store with versions,
//! compare-and-set, watches that miss nothing, and sessions. Behind it today a durable single node
//! (`single_node`); consensus comes behind the same contract.

mod contract;
/// The durable store of one node.
pub mod single_node;
/// The pure state machine.
pub mod store;

pub use contract::{
    Expect, Metadata, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchEvent,
    WatchStream,
};
