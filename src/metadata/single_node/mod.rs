//! The metadata store of one node: every change is in a synced log before it can be seen.
//!
//! Commands queue in a mailbox; the writer task takes all there are, writes them as one group with one
//! sync, applies them, answers. Reads look at the applied state only. A failed write or sync poisons the
//! store: that group's outcome is unknown, later changes are refused as unavailable, reads go on.

mod config;
mod handle;
mod recovery;
mod writer;

#[cfg(test)]
mod tests;

pub use config::SingleNodeConfig;
pub use handle::SingleNodeMetadata;
