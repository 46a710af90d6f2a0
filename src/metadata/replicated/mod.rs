//! The metadata store of a group: consensus decides the order, each member keeps log and snapshot on its own
//! disk and applies what is committed to its own copy of the store.

mod applying;
mod codec;
mod config;
mod driver;
mod handle;
mod introduction;
mod members;
mod observer;
mod peer;
mod service;
mod shared;
mod snapshots;
mod storage;
mod waiters;

#[cfg(test)]
mod tests;

pub use config::{MemberLimits, ReplicatedConfig};
pub use handle::ReplicatedMetadata;
pub use members::{MemberStep, MembersServer, MembersService};
pub use observer::{MemberObserver, Observer};
pub use service::MemberServer;
pub use shared::MemberStatus;
