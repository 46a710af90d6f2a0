//! Keeping this node's bookie in the list of those that can be reached.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::domain::{BookieId, Rack};
use crate::ledger::repair::{DrainState, Drains};
use crate::metadata::{Expect, Metadata, MetadataError, SessionId};
use crate::reached;
use crate::runtime::{Runtime, Shutdown, ShutdownSignal, Task};

/// Prefix of registrations.
pub const BOOKIES_PREFIX: &str = "/bookies/";

/// A bookie that can be reached now, under its session. JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookieRecord {
    /// Format of this record; 1.
    pub format: u32,
    /// `host:port` of its node-to-node port.
    pub address: String,
    /// It takes new ledgers.
    pub writable: bool,
    /// It was asked to leave, and knows.
    #[serde(default)]
    pub draining: bool,
    /// What it fails together with; empty if nobody said.
    #[serde(default)]
    pub rack: Rack,
}

/// Port to the bookie that is registered.
pub trait RegisteredBookie: Send + Sync {
    /// Whether it takes new ledgers.
    fn takes_writes(&self) -> bool;
    /// Tells it that it is to leave, or may stay.
    fn set_draining(&self, draining: bool);
}

/// Times of a registration, and what it says of the bookie's place.
#[derive(Clone, Debug)]
pub struct RegistrationConfig {
    /// The registration vanishes this long after the bookie was last heard of. It is kept alive, and
    /// compared with the bookie's state, three times in this.
    pub time_to_live: Duration,
    /// What the bookie fails together with.
    pub rack: Rack,
}

impl Default for RegistrationConfig {
    fn default() -> Self {
        Self { time_to_live: Duration::from_secs(10), rack: Rack::default() }
    }
}

/// A running registration.
pub struct BookieRegistration {
    registered: Shutdown,
    task: Task<()>,
}

struct Registrar {
    runtime: Runtime,
    metadata: Metadata,
    bookie: BookieId,
    address: String,
    registered_bookie: Arc<dyn RegisteredBookie>,
    drains: Drains,
    config: RegistrationConfig,
    session: Option<SessionId>,
    published: Option<BookieRecord>,
    registered: Shutdown,
}

impl BookieRecord {
    /// Key of a bookie's registration.
    pub fn key(bookie: BookieId) -> String {
        format!("{BOOKIES_PREFIX}{bookie}")
    }

    /// The bookie of a key.
    pub fn bookie_of(key: &str) -> Option<BookieId> {
        let digits = key.strip_prefix(BOOKIES_PREFIX)?;
        u64::from_str_radix(digits, 16).ok().map(BookieId)
    }
}

impl BookieRegistration {
    /// Registers the bookie and keeps it so until `stop`, then takes it off the list. The bookie is asked,
    /// and told whether it is to leave, at each beat.
    pub fn start(
        runtime: &Runtime,
        metadata: Metadata,
        bookie: BookieId,
        address: String,
        registered_bookie: Arc<dyn RegisteredBookie>,
        config: RegistrationConfig,
        stop: ShutdownSignal,
    ) -> Self {
        let registered = Shutdown::new();
        let registrar = Registrar {
            runtime: runtime.clone(),
            drains: Drains::new(Arc::clone(&metadata)),
            metadata,
            bookie,
            address,
            registered_bookie,
            config,
            session: None,
            published: None,
            registered: registered.clone(),
        };
        let task = runtime.tasks.spawn("bookie registration", registrar.run(stop));
        Self { registered, task }
    }

    /// Completes once the bookie was on the list for the first time.
    pub async fn registered(&self) {
        self.registered.signal().triggered().await;
    }

    /// Completes when the registration has ended after its stop.
    pub async fn ended(self) {
        // Cancelled with its node: ended all the same.
        let _ = self.task.await;
    }
}

impl Registrar {
    async fn run(mut self, stop: ShutdownSignal) {
        let beat = self.config.time_to_live / 3;
        loop {
            let pause = match self.beat().await {
                Ok(true) => beat,
                Ok(false) => beat.min(Duration::from_millis(200)),
                Err(MetadataError::SessionExpired) => {
                    reached!("registry: the bookie's session had expired");
                    self.session = None;
                    self.published = None;
                    Duration::ZERO
                }
                Err(error) => {
                    tracing::info!(%error, "cannot register the bookie now");
                    beat.min(Duration::from_millis(500))
                }
            };
            tokio::select! {
                biased;
                () = stop.triggered() => break,
                () = self.runtime.clock.sleep(pause) => {}
            }
        }
        if let Some(session) = self.session.take() {
            let closing = self.metadata.close_session(session);
            // If it is not heard, the session expires.
            let _ = self.runtime.clock.timeout(Duration::from_secs(1), closing).await;
        }
    }

    /// True if the bookie is on the list as it is; false to look again soon.
    async fn beat(&mut self) -> Result<bool, MetadataError> {
        // Before it is on the list: nobody may be told that a leaving bookie takes writes.
        let drain = self.drains.get(self.bookie).await?;
        self.registered_bookie.set_draining(drain.is_some());
        if drain.as_ref().is_some_and(|drain| drain.state == DrainState::Decommissioned) {
            reached!("registry: a decommissioned bookie stays off the list");
            self.published = None;
            if let Some(session) = self.session.take() {
                self.metadata.close_session(session).await?;
            }
            return Ok(true);
        }
        let session = match self.session {
            Some(session) => {
                self.metadata.keep_alive(session).await?;
                session
            }
            None => {
                let session = self.metadata.open_session(self.config.time_to_live).await?;
                self.session = Some(session);
                session
            }
        };
        let record = BookieRecord {
            format: 1,
            address: self.address.clone(),
            writable: self.registered_bookie.takes_writes() && drain.is_none(),
            draining: drain.is_some(),
            rack: self.config.rack.clone(),
        };
        if self.published.as_ref() == Some(&record) {
            return Ok(true);
        }
        let key = BookieRecord::key(self.bookie);
        if self.published.is_none() && self.is_held_elsewhere(&key).await? {
            return Ok(false);
        }
        let value = serde_json::to_vec(&record)
            .map_err(|error| MetadataError::Refused(error.to_string()))?;
        self.published = None;
        self.metadata.put(&key, Bytes::from(value), Expect::Any, Some(session)).await?;
        self.published = Some(record);
        self.registered.trigger();
        Ok(true)
    }

    /// A copied disk: another process is this bookie too. Whoever came first stays, until its session
    /// ends.
    async fn is_held_elsewhere(&self, key: &str) -> Result<bool, MetadataError> {
        let Some(found) = self.metadata.get(key).await? else { return Ok(false) };
        let held = serde_json::from_slice::<BookieRecord>(&found.value)
            .is_ok_and(|record| record.address != self.address);
        if held {
            reached!("registry: another node is registered as this bookie");
            tracing::warn!(bookie = %self.bookie, "another node is registered as this bookie");
        }
        Ok(held)
    }
}
