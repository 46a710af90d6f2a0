//! Words for scenarios about ledgers without a broker.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use seawall::domain::{EntryId, LedgerId};
use seawall::ledger::{LedgerClient, LedgerConfig, RemoteBookieConfig, WriterEnd, WriterEvents};
use seawall::metadata::{
    Expect, Metadata, MetadataClient, MetadataError, RemoteMetadata, RemoteMetadataConfig,
    Revision, SessionId, Versioned, WatchStream,
};
use seawall::node::bookie_registry::RegisteredBookies;
use seawall::runtime::{Runtime, Shutdown};
use tokio::sync::Semaphore;

/// What a writer confirmed, and how it ended.
pub struct Watched(Mutex<(EntryId, Option<WriterEnd>)>);

impl Default for Watched {
    fn default() -> Self {
        Self(Mutex::new((EntryId::NONE, None)))
    }
}

impl Watched {
    /// The highest entry confirmed so far.
    pub fn confirmed(&self) -> EntryId {
        self.0.lock().unwrap().0
    }

    /// Why the writer ended, if it has.
    pub fn ended(&self) -> Option<WriterEnd> {
        self.0.lock().unwrap().1.clone()
    }
}

impl WriterEvents for Watched {
    fn confirmed(&self, _ledger: LedgerId, up_to: EntryId) {
        self.0.lock().unwrap().0 = up_to;
    }

    fn ended(&self, _ledger: LedgerId, _last_confirmed: EntryId, reason: WriterEnd) {
        self.0.lock().unwrap().1 = Some(reason);
    }
}

/// Metadata as a machine reaches it where it is one node's.
pub fn metadata_of(runtime: &Runtime) -> Metadata {
    metadata_at(runtime, &["metadata-0:7000".to_owned()])
}

/// Metadata as a machine reaches it at these nodes.
pub fn metadata_at(runtime: &Runtime, addresses: &[String]) -> Metadata {
    Arc::new(RemoteMetadata::new(runtime.clone(), addresses, RemoteMetadataConfig::default()))
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

/// Metadata through a gate that each change has to pass; reads go around it.
pub struct Gated {
    inner: Metadata,
    gate: Semaphore,
    waiting: AtomicUsize,
}

/// More changes than any scenario makes.
const MANY: usize = 1_000_000;

impl Gated {
    /// Lets so many changes pass; those after them wait.
    pub fn after(changes: usize, inner: Metadata) -> Arc<Self> {
        let gate = Semaphore::new(changes);
        Arc::new(Self { inner, gate, waiting: AtomicUsize::new(0) })
    }

    /// Lets everything pass, for now.
    pub fn opened(inner: Metadata) -> Arc<Self> {
        Self::after(MANY, inner)
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.gate.add_permits(MANY);
    }

    /// From now on lets so many changes pass; those after them wait.
    pub fn hold_after(&self, changes: usize) {
        self.gate.forget_permits(usize::MAX);
        self.gate.add_permits(changes);
    }

    /// How many changes wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.gate.acquire().await.expect("never closed").forget();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
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
        self.pass().await;
        self.inner.put(key, value, expect, session).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), MetadataError> {
        self.pass().await;
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
