//! The contract of the metadata store: a small, linearizable, ordered key-value store with versions,
//! compare-and-set, watches that miss nothing, and sessions. Behind it a durable single node
//! (`single_node`) or a group of members (`replicated`) whose order consensus decides.

/// The pure consensus machine.
pub mod consensus;
mod contract;
mod durable;
mod pages;
mod remote;
mod replicated;
mod server;
mod single_node;
/// The pure state machine.
pub mod store;
mod store_client;
mod store_watch;
mod wire;

#[cfg(test)]
mod service_tests;

pub use contract::{
    Expect, Metadata, MetadataClient, MetadataError, MetadataStore, Revision, SessionId, Versioned,
    WatchEvent, WatchStream,
};
pub use durable::MetadataStartError;
pub use pages::Pages;
pub use remote::{
    GroupMember, MembershipAdmin, MetadataGroup, RemoteMetadata, RemoteMetadataConfig,
};
pub use replicated::{
    MemberLimits, MemberObserver, MemberServer, MemberStatus, MemberStep, MembersServer,
    MembersService, Observer, ReplicatedConfig, ReplicatedMetadata,
};
pub use server::{MetadataServer, MetadataService};
pub use single_node::{SingleNodeConfig, SingleNodeMetadata};
pub use store_watch::StoreWatch;
