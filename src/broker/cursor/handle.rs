//! The handle that subscriptions hold.

use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};

use super::flusher;
use super::recovery::{Recovered, load};
use super::snapshot::{CursorSnapshot, key};
use super::state::{CursorState, EntryState};
use super::store::{CursorStore, Image, StoreError};
use crate::broker::BrokerConfig;
use crate::broker::managed_ledger::{Chain, ManagedLedgerError, TopicClaim, lock};
use crate::broker::messages::{AckError, AckRequest};
use crate::domain::Position;
use crate::ledger::LedgerClient;
use crate::metadata::{Expect, Metadata};
use crate::runtime::Runtime;
use crate::{mutant, reached};

/// What a cursor needs from its topic.
#[derive(Clone)]
pub(in crate::broker) struct CursorPlace {
    pub(in crate::broker) runtime: Runtime,
    pub(in crate::broker) metadata: Metadata,
    pub(in crate::broker) ledgers: LedgerClient,
    pub(in crate::broker) config: BrokerConfig,
    pub(in crate::broker) topic: String,
    pub(in crate::broker) chain: Arc<Mutex<Chain>>,
    /// The owner's, who alone may claim cursors.
    pub(in crate::broker) claim: TopicClaim,
    /// Told why when another owner has taken a cursor: the topic is served elsewhere, or must be taken over again.
    pub(in crate::broker) on_deposed: Arc<dyn Fn(String) + Send + Sync>,
}

pub(super) struct Guarded {
    pub(super) state: CursorState,
    pub(super) properties: Vec<(String, String)>,
    pub(super) waiters: Vec<oneshot::Sender<Result<(), AckError>>>,
    pub(super) dirty: bool,
    pub(super) ended: bool,
    /// The mark-delete that is known to be stored.
    stored_mark_delete: Position,
}

pub(super) struct Inner {
    pub(super) place: CursorPlace,
    pub(super) name: String,
    durable: bool,
    pub(super) guarded: Mutex<Guarded>,
    pub(super) work: Notify,
    store: tokio::sync::Mutex<CursorStore>,
}

/// What the next write is of.
enum Planned {
    Change(CursorSnapshot),
    Whole(Image),
}

impl Inner {
    fn image(guarded: &Guarded) -> Image {
        Image::new(&guarded.state, &guarded.properties)
    }

    /// One write, of everything up to now.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let mut store = self.store.lock().await;
        let (planned, mut mark_delete, waiters) = {
            let mut guarded = lock(&self.guarded);
            guarded.dirty = false;
            let beyond = guarded.state.beyond_mark_delete();
            let change = guarded.state.take_change();
            let planned = match change.filter(|_| store.takes_change(&self.place, beyond)) {
                Some(change) => Planned::Change(change),
                None => Planned::Whole(Self::image(&guarded)),
            };
            let waiters = std::mem::take(&mut guarded.waiters);
            (planned, guarded.state.mark_delete(), waiters)
        };
        let mut waiters = Some(waiters);
        let mut answer = |result: Result<(), AckError>| {
            for waiter in waiters.take().unwrap_or_default() {
                // Nobody may be waiting any more.
                let _ = waiter.send(result.clone());
            }
        };
        if mutant!("B-ack-early") {
            answer(Ok(()));
        }
        let image = match planned {
            Planned::Whole(image) => Some(image),
            Planned::Change(change) => match store.write_change(change).await {
                Ok(()) => None,
                Err(_) => {
                    reached!("cursor: a change could not be written");
                    let mut guarded = lock(&self.guarded);
                    let _ = guarded.state.take_change();
                    mark_delete = guarded.state.mark_delete();
                    Some(Self::image(&guarded))
                }
            },
        };
        let written = match &image {
            Some(image) => store.write(&self.place, &self.name, image).await,
            None => Ok(()),
        };
        let mut guarded = lock(&self.guarded);
        match &written {
            Ok(()) => guarded.stored_mark_delete = mark_delete,
            Err(_) => guarded.dirty = true,
        }
        drop(guarded);
        answer(written.clone().map_err(|error| AckError::OutcomeUnknown(error.to_string())));
        written
    }

    /// Another owner has the cursor, unless it has ended here before.
    pub(super) fn deposed(&self) {
        if self.end() && !mutant!("B-cursor-lost") {
            reached!("cursor: taken by another owner");
            (self.place.on_deposed)(format!("another owner has taken cursor {}", self.name));
        }
    }

    /// Nothing is taken or written any more. False if that was so before.
    pub(super) fn end(&self) -> bool {
        let (waiters, had_ended) = {
            let mut guarded = lock(&self.guarded);
            let had_ended = std::mem::replace(&mut guarded.ended, true);
            (std::mem::take(&mut guarded.waiters), had_ended)
        };
        for waiter in waiters {
            let _ = waiter.send(Err(AckError::OutcomeUnknown("the cursor ended".to_owned())));
        }
        self.work.notify_one();
        !had_ended
    }
}

/// A cursor. Cheap to clone.
#[derive(Clone)]
pub struct Cursor {
    inner: Arc<Inner>,
}

impl Cursor {
    fn new(
        place: CursorPlace,
        name: &str,
        durable: bool,
        state: CursorState,
        properties: Vec<(String, String)>,
        store: CursorStore,
    ) -> Self {
        let guarded = Guarded {
            stored_mark_delete: state.mark_delete(),
            state,
            properties,
            waiters: Vec::new(),
            dirty: false,
            ended: false,
        };
        let inner = Arc::new(Inner {
            place,
            name: name.to_owned(),
            durable,
            guarded: Mutex::new(guarded),
            work: Notify::new(),
            store: tokio::sync::Mutex::new(store),
        });
        if durable {
            inner.place.runtime.tasks.spawn("cursor", flusher::run(Arc::clone(&inner)));
        }
        Self { inner }
    }

    /// A new durable cursor, not yet stored.
    pub(in crate::broker) fn fresh(
        place: CursorPlace,
        name: &str,
        mark_delete: Position,
        properties: Vec<(String, String)>,
    ) -> Self {
        let state = CursorState::new(mark_delete);
        Self::new(place, name, true, state, properties, CursorStore::default())
    }

    /// A reader's cursor.
    pub(in crate::broker) fn transient(
        place: CursorPlace,
        name: &str,
        mark_delete: Position,
    ) -> Self {
        let state = CursorState::new(mark_delete);
        Self::new(place, name, false, state, Vec::new(), CursorStore::default())
    }

    pub(super) fn recovered(place: CursorPlace, name: &str, recovered: Recovered) -> Self {
        let Recovered { state, properties, store } = recovered;
        Self::new(place, name, true, state, properties, store)
    }

    /// Writes the record of a fresh cursor, if that was not done yet.
    pub(in crate::broker) async fn ensure_stored(&self) -> Result<(), ManagedLedgerError> {
        let inner = &self.inner;
        let mut store = inner.store.lock().await;
        if store.version.is_some() {
            return Ok(());
        }
        let image = Inner::image(&lock(&inner.guarded));
        match store.write_record(&inner.place, &inner.name, None, &image).await {
            Ok(()) => Ok(()),
            Err(StoreError::Failed(error)) => Err(ManagedLedgerError::Metadata(error)),
            Err(StoreError::Deposed) => {
                // The former owner created it after this one had listed the cursors.
                reached!("cursor: created by the former owner meanwhile");
                let recovered = load(&inner.place, &inner.name).await?;
                let recovered = recovered.ok_or(ManagedLedgerError::Fenced)?;
                *store = recovered.store;
                let mut guarded = lock(&inner.guarded);
                guarded.stored_mark_delete = recovered.state.mark_delete();
                guarded.state = recovered.state;
                guarded.properties = recovered.properties;
                Ok(())
            }
        }
    }

    /// Ledgers wholly at or below this are not needed: neither now nor after a restart.
    pub(in crate::broker) fn trim_limit(&self) -> Position {
        let guarded = lock(&self.inner.guarded);
        guarded.stored_mark_delete.min(guarded.state.mark_delete())
    }

    /// Stops without writing: the topic is lost.
    pub(in crate::broker) fn abandon(&self) {
        self.inner.end();
    }

    /// Writes the state into the record, so that the next owner needs no recovery, and stops.
    pub(in crate::broker) async fn close(&self) {
        let inner = &self.inner;
        if lock(&inner.guarded).ended {
            return;
        }
        let needs_flush = {
            let guarded = lock(&inner.guarded);
            guarded.dirty || !guarded.waiters.is_empty()
        };
        if needs_flush {
            // If it fails the acknowledgements are told so, and come again.
            let _ = inner.flush().await;
        }
        let mut store = inner.store.lock().await;
        let image = Inner::image(&lock(&inner.guarded));
        store.release();
        if image.for_record().1 && store.version.is_some() {
            let _ = store.write_record(&inner.place, &inner.name, None, &image).await;
        }
        inner.end();
    }

    /// Removes it from metadata, then its ledger.
    pub(in crate::broker) async fn delete(&self) -> Result<(), ManagedLedgerError> {
        let inner = &self.inner;
        let mut store = inner.store.lock().await;
        store.release();
        let key = key(&inner.place.topic, &inner.name);
        let expect = store.version.map_or(Expect::Any, Expect::Version);
        if let Err(error) = inner.place.metadata.delete(&key, expect).await {
            // A lost answer is told by the key's absence.
            match inner.place.metadata.get(&key).await {
                Ok(None) => {}
                _ => return Err(ManagedLedgerError::Metadata(error.to_string())),
            }
        }
        inner.end();
        if let Some(ledger) = store.ledger.take() {
            let _ = inner.place.ledgers.delete(ledger).await;
        }
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// True unless it is a reader's.
    pub fn is_durable(&self) -> bool {
        self.inner.durable
    }

    /// Everything up to here is acknowledged.
    pub fn mark_delete(&self) -> Position {
        lock(&self.inner.guarded).state.mark_delete()
    }

    /// Whether an entry still needs delivery.
    pub fn entry_state(&self, position: Position) -> EntryState {
        lock(&self.inner.guarded).state.entry_state(position)
    }

    /// Entries committed and not acknowledged.
    pub fn backlog(&self) -> u64 {
        let chain = lock(&self.inner.place.chain);
        lock(&self.inner.guarded).state.backlog(&chain)
    }

    /// Acknowledges in memory at once; the answer comes when it is durable. `batch_sizes` are not needed: an
    /// empty bit set means the whole entry.
    pub fn acknowledge(&self, request: AckRequest) -> oneshot::Receiver<Result<(), AckError>> {
        let (sender, receiver) = oneshot::channel();
        {
            let chain = lock(&self.inner.place.chain);
            let mut guarded = lock(&self.inner.guarded);
            if guarded.ended {
                drop(sender.send(Err(AckError::ConsumerClosed)));
                return receiver;
            }
            let changed = guarded.state.acknowledge(&chain, &request);
            if !self.inner.durable {
                drop(sender.send(Ok(())));
                return receiver;
            }
            guarded.dirty |= changed;
            // Even if nothing changed: what it repeats may not be durable yet.
            guarded.waiters.push(sender);
        }
        self.inner.work.notify_one();
        receiver
    }

    /// Moves mark-delete, forwards or backwards, so that `next` is the first entry to deliver (with a bit
    /// set, only those messages of it). Durable when it returns. Keeps properties.
    pub async fn reset(
        &self,
        next: Position,
        ack_set: Option<Vec<u64>>,
    ) -> Result<(), ManagedLedgerError> {
        let (sender, receiver) = oneshot::channel();
        {
            // Under the chain's lock: trimming cannot overtake the move.
            let chain = lock(&self.inner.place.chain);
            let mut guarded = lock(&self.inner.guarded);
            if guarded.ended {
                return Err(ManagedLedgerError::Fenced);
            }
            guarded.state.reset(&chain, next, ack_set);
            if mutant!("B13") {
                guarded.properties.clear();
            }
            if !self.inner.durable {
                return Ok(());
            }
            guarded.dirty = true;
            guarded.waiters.push(sender);
        }
        self.inner.work.notify_one();
        match receiver.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(ManagedLedgerError::Storage(error.to_string())),
            Err(_) => Err(ManagedLedgerError::Fenced),
        }
    }

    /// Properties stored with it.
    pub fn properties(&self) -> Vec<(String, String)> {
        lock(&self.inner.guarded).properties.clone()
    }
}
