//! All bookies of the cluster, as metadata lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::registration::{BOOKIES_PREFIX, BookieRecord};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId,
    LastAddConfirmed, LedgerId, Rack, ReadError, ReadRequest,
};
use crate::ledger::repair::{BookieStandings, Standing};
use crate::ledger::{BookieClient, BookiePool, RemoteBookie, RemoteBookieConfig};
use crate::metadata::{Metadata, WatchEvent};
use crate::reached;
use crate::runtime::{Runtime, ShutdownSignal};

/// Before a watch that ended or could not begin is opened anew.
const PAUSE: Duration = Duration::from_millis(100);

/// The list of bookies, kept up to date by a watch. While metadata is away the last known list stays.
pub struct RegisteredBookies {
    runtime: Runtime,
    config: RemoteBookieConfig,
    local: Option<(BookieId, Arc<dyn BookieClient>)>,
    known: Mutex<BTreeMap<BookieId, Known>>,
    changed: Notify,
}

struct Known {
    record: BookieRecord,
    client: Arc<dyn BookieClient>,
}

impl RegisteredBookies {
    /// Watches the list until `stop`. `local` is answered for its id without a connection; whether it
    /// takes writes is up to its registration, like everybody's.
    pub fn start(
        runtime: &Runtime,
        metadata: Metadata,
        local: Option<(BookieId, Arc<dyn BookieClient>)>,
        config: RemoteBookieConfig,
        stop: ShutdownSignal,
    ) -> Arc<Self> {
        let bookies = Arc::new(Self {
            runtime: runtime.clone(),
            config,
            local,
            known: Mutex::new(BTreeMap::new()),
            changed: Notify::new(),
        });
        let watcher = Arc::clone(&bookies);
        runtime.tasks.spawn("bookie pool", async move {
            tokio::select! {
                biased;
                () = stop.triggered() => {}
                () = watcher.watch(metadata) => {}
            }
        });
        bookies
    }

    /// Completes once at least `count` bookies take writes.
    pub async fn wait_for_writable(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.writable().len() >= count {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<BookieId, Known>> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    async fn watch(&self, metadata: Metadata) {
        loop {
            match metadata.watch(BOOKIES_PREFIX).await {
                Ok(mut watch) => {
                    // Until the empty batch the events are the state: who is not in it is gone.
                    let mut initial = Some(BTreeSet::new());
                    while let Some(events) = watch.next().await {
                        if events.is_empty()
                            && let Some(seen) = initial.take()
                        {
                            self.lock().retain(|id, _| seen.contains(id));
                        }
                        for event in events {
                            let id = self.take(event);
                            if let (Some(seen), Some(id)) = (&mut initial, id) {
                                seen.insert(id);
                            }
                        }
                        self.changed.notify_waiters();
                    }
                    reached!("registry: the watch of bookies was opened anew");
                }
                Err(error) => tracing::info!(%error, "cannot watch the list of bookies"),
            }
            self.runtime.clock.sleep(PAUSE).await;
        }
    }

    /// Takes a change; answers the bookie it registered.
    fn take(&self, event: WatchEvent) -> Option<BookieId> {
        let (key, value) = match event {
            WatchEvent::Put { key, value } => (key, Some(value.value)),
            WatchEvent::Deleted { key, .. } => (key, None),
        };
        let id = BookieRecord::bookie_of(&key)?;
        let record = value.and_then(|value| {
            serde_json::from_slice::<BookieRecord>(&value)
                .inspect_err(|error| tracing::warn!(key, %error, "not a bookie's registration"))
                .ok()
        });
        let mut known = self.lock();
        let Some(record) = record else {
            known.remove(&id);
            return None;
        };
        match known.get_mut(&id) {
            Some(known) if known.record.address == record.address => known.record = record,
            _ => {
                let client = self.connect(id, &record.address);
                known.insert(id, Known { record, client });
            }
        }
        Some(id)
    }

    fn connect(&self, id: BookieId, address: &str) -> Arc<dyn BookieClient> {
        match &self.local {
            Some((local, client)) if *local == id => Arc::clone(client),
            _ => {
                Arc::new(RemoteBookie::new(self.runtime.clone(), id, address, self.config.clone()))
            }
        }
    }
}

impl BookieStandings for RegisteredBookies {
    fn standing(&self, bookie: BookieId) -> Standing {
        match self.lock().get(&bookie) {
            Some(known) if known.record.draining => Standing::Draining,
            Some(_) => Standing::Serving,
            None => Standing::Missing,
        }
    }
}

impl BookiePool for RegisteredBookies {
    fn bookie(&self, id: BookieId) -> Arc<dyn BookieClient> {
        match &self.local {
            Some((local, client)) if *local == id => return Arc::clone(client),
            _ => {}
        }
        match self.lock().get(&id) {
            Some(known) => Arc::clone(&known.client),
            None => Arc::new(Unregistered { id, runtime: self.runtime.clone() }),
        }
    }

    fn writable(&self) -> Vec<BookieId> {
        let known = self.lock();
        let mut at: BTreeMap<&str, usize> = BTreeMap::new();
        for known in known.values() {
            *at.entry(&known.record.address).or_default() += 1;
        }
        // Two at one address: a disk was lost there, and the registration of what was on it has not run out.
        // Both in one ensemble would be one copy, called two.
        let is_alone = |known: &Known| at.get(known.record.address.as_str()) == Some(&1);
        let takes = |known: &Known| known.record.writable && is_alone(known);
        known.iter().filter(|(_, known)| takes(known)).map(|(id, _)| *id).collect()
    }

    fn rack(&self, id: BookieId) -> Rack {
        self.lock().get(&id).map(|known| known.record.rack.clone()).unwrap_or_default()
    }
}

/// Stands for a bookie nobody can reach.
struct Unregistered {
    id: BookieId,
    runtime: Runtime,
}

impl Unregistered {
    fn reason(&self) -> String {
        format!("bookie {} is not registered", self.id)
    }
}

#[async_trait]
impl BookieClient for Unregistered {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let answer = AddAnswer {
            bookie: self.id,
            ledger: batch.ledger,
            entries: batch.entries.iter().map(|entry| entry.entry).collect(),
            result: Err(AddError::Unreachable(self.reason())),
        };
        // From a task of its own: the caller may hold a lock that its sink takes.
        self.runtime.tasks.spawn("unregistered bookie", async move { sink.answered(answer) });
    }

    async fn read(&self, _request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        Err(ReadError::Unreachable(self.reason()))
    }

    async fn last_add_confirmed(
        &self,
        _ledger: LedgerId,
        _creator: CreatorToken,
        _fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        Err(ReadError::Unreachable(self.reason()))
    }

    async fn tell_last_add_confirmed(
        &self,
        _ledger: LedgerId,
        _creator: CreatorToken,
        _last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        Err(ReadError::Unreachable(self.reason()))
    }
}
