//! The contract of the metadata store: a small, linearizable, ordered key-value store with versions,
//! compare-and-set, watches that miss nothing, and sessions. Behind it today a durable single node
//! (`store`); consensus comes behind the same contract.

mod contract;

pub use contract::{
    Expect, Metadata, MetadataClient, MetadataError, Revision, SessionId, Versioned, WatchEvent,
    WatchStream,
};
