//! What brokers, bookies and ledger clients may ask of metadata, and what each answer means.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::store::{Command, Done, Store};
use super::store_watch::StoreWatch;

/// Position in the store's single history of changes; every change has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A lease held by one client; keys tied to it vanish when it ends. A session's end only makes someone
/// else try: safety never depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A value with the revision that wrote it (its version for compare-and-set).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Bytes,
    /// The revision of its last change.
    pub version: Revision,
}

/// Condition of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No condition.
    Any,
    /// The key must not exist.
    Absent,
    /// The key must exist at this version.
    Version(Revision),
}

/// Why metadata did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// The condition did not hold; nothing was changed.
    #[error("key {key}: expected {expected:?}, found version {found:?}")]
    VersionMismatch {
        /// The key.
        key: String,
        /// What was expected.
        expected: Expect,
        /// The version found, `None` if the key does not exist.
        found: Option<Revision>,
    },
    /// The session has ended; nothing was changed.
    #[error("the session has ended")]
    SessionExpired,
    /// The request breaks a limit; nothing was changed.
    #[error("refused: {0}")]
    Refused(String),
    /// The store could not be asked; nothing was changed.
    #[error("metadata is unavailable: {0}")]
    Unavailable(String),
    /// Another member of the metadata group must be asked; nothing was changed. Clients of several members
    /// follow it by themselves.
    #[error("metadata is led by {}", .leader.as_deref().unwrap_or("nobody known"))]
    NotLeader {
        /// `host:port` of the leader, as far as is known.
        leader: Option<String>,
    },
    /// The store knows the request's client no longer: this time nothing was done, whatever became of the
    /// change when it was asked for before. Never told to users of a client.
    #[error("the store knows this client no longer")]
    ClientForgotten,
    /// The answer was lost: the change may or may not have been made. Read again before deciding.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
}

/// One change seen by a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The key has this value now.
    Put {
        /// The key.
        key: String,
        /// The value and its version.
        value: Versioned,
    },
    /// The key is gone.
    Deleted {
        /// The key.
        key: String,
        /// The revision of the removal.
        revision: Revision,
    },
}

impl WatchEvent {
    /// The key that changed.
    pub fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Deleted { key, .. } => key,
        }
    }

    /// The revision of the change.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Put { value, .. } => value.version,
            Self::Deleted { revision, .. } => *revision,
        }
    }
}

/// The changes under a prefix, in revision order, none missing. The first events are the state when the
/// watch began. When the store can no longer tell a watcher what it missed, the stream starts over with a
/// `Reset` by ending: `next` gives `None`, and the watcher opens a new one.
#[async_trait]
pub trait WatchStream: Send {
    /// The next batch of events; `None` when the watch must be opened anew. An empty batch is sent once,
    /// right after the initial state.
    async fn next(&mut self) -> Option<Vec<WatchEvent>>;
}

/// The store as its users see it. All calls are linearizable.
#[async_trait]
pub trait MetadataClient: Send + Sync {
    /// The value of a key.
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError>;
    /// Up to `limit` pairs under `prefix` with keys greater than `after`, in key order.
    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError>;
    /// Sets a key if the condition holds; answers its new version. With a session the key vanishes when
    /// the session ends.
    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        session: Option<SessionId>,
    ) -> Result<Revision, MetadataError>;
    /// Removes a key if the condition holds.
    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError>;
    /// Adds one to a counter key and answers the new value (the first answer is 1). Never repeats a value,
    /// not even after an unknown outcome.
    async fn next_number(&self, key: &str) -> Result<u64, MetadataError>;
    /// Watches a prefix.
    async fn watch(&self, prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError>;
    /// Opens a session that ends when not kept alive for `time_to_live` of the store's logical time.
    async fn open_session(&self, time_to_live: Duration) -> Result<SessionId, MetadataError>;
    /// Keeps a session alive.
    async fn keep_alive(&self, session: SessionId) -> Result<(), MetadataError>;
    /// Ends a session and removes its keys.
    async fn close_session(&self, session: SessionId) -> Result<(), MetadataError>;
}

/// A store that answers for others, who may ask for a change again. It is a client of itself.
#[async_trait]
pub trait MetadataStore: MetadataClient {
    /// Returns once the state seen by `look` has everything that was acknowledged before the call.
    async fn catch_up(&self) -> Result<(), MetadataError>;

    /// Shows the state of durable changes.
    fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T
    where
        Self: Sized;

    /// Makes a change.
    async fn change(&self, command: Command) -> Result<Done, MetadataError>;

    /// Watches a prefix, behind `after` if everything since is still known, else from the state of now.
    async fn watch_after(
        &self,
        prefix: &str,
        after: Option<Revision>,
    ) -> Result<StoreWatch, MetadataError>;
}

/// A handle to the store.
pub type Metadata = Arc<dyn MetadataClient>;
