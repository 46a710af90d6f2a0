//! Words for scenarios about ledgers without a broker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use seawall::domain::{BookieId, EntryId, LedgerId};
use seawall::ledger::{LedgerClient, LedgerConfig, RemoteBookieConfig, WriterEnd, WriterEvents};
use seawall::metadata::{
    Expect, Metadata, MetadataClient, MetadataError, RemoteMetadata, RemoteMetadataConfig,
    Revision, SessionId, Versioned, WatchStream,
};
use seawall::node::bookie_registry::RegisteredBookies;
use seawall::runtime::{Runtime, Shutdown};
use tokio::sync::Semaphore;

use super::Stage;

/// What a writer confirmed.
pub struct Watched(Mutex<EntryId>);

impl Default for Watched {
    fn default() -> Self {
        Self(Mutex::new(EntryId::NONE))
    }
}

impl Watched {
    /// The highest entry confirmed so far.
    pub fn confirmed(&self) -> EntryId {
        *self.0.lock().unwrap()
    }
}

impl WriterEvents for Watched {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        *self.0.lock().unwrap() = up_to;
    }

    fn ended(&self, _ledger: LedgerId, _last_confirmed: EntryId, _reason: WriterEnd) {}
}

/// Metadata as a machine reaches it.
pub fn metadata_of(runtime: &Runtime) -> Metadata {
    let addresses = ["metadata-0:7000".to_owned()];
    Arc::new(RemoteMetadata::new(runtime.clone(), &addresses, RemoteMetadataConfig::default()))
}

/// A ledger client on a machine.
pub fn ledgers(runtime: &Runtime, metadata: Metadata) -> LedgerClient {
    let signal = Shutdown::new().signal();
    let bookies = RegisteredBookies::start(
        runtime,
        Arc::clone(&metadata),
        None,
        RemoteBookieConfig::default(),
        signal,
    );
    LedgerClient::new(runtime.clone(), metadata, bookies, LedgerConfig::default())
}

/// The name of the machine a bookie runs on.
pub fn name_of(stage: &Stage, id: BookieId) -> String {
    let is_there = |node: &&seawall::simulator::cluster::ClusterNode| {
        let serving = node.serving();
        serving.and_then(|node| node.bookie().map(|bookie| bookie.id())) == Some(id)
    };
    let found = stage.cluster.nodes.iter().find(is_there);
    found.expect("a machine with that bookie").machine.name().to_owned()
}

/// Metadata through a gate that each change has to pass; reads go around it.
pub struct Gated {
    inner: Metadata,
    gate: Semaphore,
}

impl Gated {
    /// Lets so many changes pass; those after them wait.
    pub fn after(changes: usize, inner: Metadata) -> Arc<Self> {
        Arc::new(Self { inner, gate: Semaphore::new(changes) })
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.gate.add_permits(1000);
    }
}

#[async_trait]
impl MetadataClient for Gated {
    async fn get(&self, key: &str) -> Result<Option<Versioned>, MetadataError> {
        self.inner.get(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Versioned)>, MetadataError> {
        self.inner.list(prefix, after, limit).await
    }

    async fn put(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect,
        session: Option<SessionId>,
    ) -> Result<Revision, MetadataError> {
        self.gate.acquire().await.expect("never closed").forget();
        self.inner.put(key, value, expect, session).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        self.gate.acquire().await.expect("never closed").forget();
        self.inner.delete(key, expect).await
    }

    async fn next_number(&self, key: &str) -> Result<u64, MetadataError> {
        self.inner.next_number(key).await
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn WatchStream>, MetadataError> {
        self.inner.watch(prefix).await
    }

    async fn open_session(&self, time_to_live: Duration) -> Result<SessionId, MetadataError> {
        self.inner.open_session(time_to_live).await
    }

    async fn keep_alive(&self, session: SessionId) -> Result<(), MetadataError> {
        self.inner.keep_alive(session).await
    }

    async fn close_session(&self, session: SessionId) -> Result<(), MetadataError> {
        self.inner.close_session(session).await
    }
}
