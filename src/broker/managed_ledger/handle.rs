//! The handle that topics hold, and what its parts share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use super::chain::Chain;
use super::claim::TopicClaim;
use super::compare_and_set::{CasError, compare_and_set};
use super::contract::{
    ManagedLedgerError, ManagedLedgerEvents, ManagedLedgerStats, NewEntry, StoredEntry,
};
use super::driver::Input;
use super::numbered::NumberedLog;
use super::record::TopicRecord;
use super::{ManagedLedgerEnvironment, open, read, trim};
use crate::broker::cursor::{Cursor, CursorPlace};
use crate::broker::messages::InitialPosition;
use crate::domain::{LedgerId, Position, WallTime};
use crate::ledger::LedgerReader;
use crate::metadata::{Expect, Metadata, MetadataError, Revision};
use crate::reached;
use crate::runtime::MailboxSender;

/// Locks a mutex whose critical sections cannot panic half-way.
pub(in crate::broker) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The record as this owner last wrote it.
pub(super) struct HeldRecord {
    pub(super) version: Revision,
    pub(super) properties: Vec<(String, String)>,
}

/// Entries read ahead: ledger, id of the first, stored payloads.
pub(super) type ReadAheadRun = (LedgerId, i64, Vec<Bytes>);

/// Shared by the handle, the task and reads. Lock order: cursors, then chain, then one cursor.
pub(super) struct Shared {
    pub(super) environment: ManagedLedgerEnvironment,
    pub(super) name: String,
    pub(super) claim: TopicClaim,
    pub(super) chain: Arc<Mutex<Chain>>,
    /// Told after the chain grew, and when it is closed.
    pub(super) grown: Notify,
    pub(super) cursors: Mutex<BTreeMap<String, Cursor>>,
    /// Held across every change of the record, so they never race with each other.
    pub(super) record: tokio::sync::Mutex<HeldRecord>,
    pub(super) next_index: AtomicU64,
    pub(super) pending: AtomicU64,
    pub(super) closed: AtomicBool,
    pub(super) readers: Mutex<VecDeque<(LedgerId, Arc<LedgerReader>)>>,
    pub(super) read_ahead: Mutex<VecDeque<ReadAheadRun>>,
    /// Of the log's task.
    pub(super) inputs: MailboxSender<Input>,
}

impl Shared {
    /// Nothing is appended or confirmed here any more.
    pub(super) fn close_for_good(&self) {
        self.closed.store(true, Ordering::Release);
        self.grown.notify_waiters();
    }

    /// Another owner has changed the record: the log's task, if there still is one, gives the topic up.
    pub(super) fn record_lost(&self) {
        let reason = "the topic's record was changed by another owner".to_owned();
        let _ = self.inputs.push(Input::Fence(reason));
    }

    /// Key of the record.
    pub(super) fn key(name: &str) -> String {
        format!("/topics/{name}")
    }

    /// Writes `chain` as the record.
    pub(super) async fn write_record(
        &self,
        held: &mut HeldRecord,
        chain: &Chain,
    ) -> Result<(), CasError> {
        let next_index = self.next_index.load(Ordering::Relaxed);
        let by = (self.claim.epoch, self.claim.owner);
        let record = TopicRecord::new(by, chain, next_index, held.properties.clone());
        let ManagedLedgerEnvironment { metadata, runtime, .. } = &self.environment;
        held.version = compare_and_set(
            metadata,
            &runtime.clock,
            &self.claim.key,
            record.encode(),
            Expect::Version(held.version),
        )
        .await?;
        Ok(())
    }

    /// Deletes ledgers that no record lists. A failure leaves an orphan, not a loss.
    pub(super) async fn delete_ledgers(&self, ledgers: &[LedgerId]) {
        for ledger in ledgers {
            if let Err(error) = self.environment.ledgers.delete(*ledger).await {
                tracing::warn!(%ledger, %error, topic = self.name, "ledger left behind");
            }
        }
    }

    /// What a cursor needs.
    pub(super) fn cursor_place(&self) -> CursorPlace {
        CursorPlace {
            runtime: self.environment.runtime.clone(),
            metadata: Arc::clone(&self.environment.metadata),
            ledgers: self.environment.ledgers.clone(),
            config: self.environment.config.clone(),
            topic: self.name.clone(),
            chain: Arc::clone(&self.chain),
            claim: self.claim.clone(),
            on_deposed: {
                let inputs = self.inputs.clone();
                Arc::new(move |reason| drop(inputs.push(Input::Fence(reason))))
            },
        }
    }
}

struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.shared.inputs.push(Input::Dropped);
    }
}

/// A topic's log, owned here. Cheap to clone.
#[derive(Clone)]
pub struct ManagedLedger {
    inner: Arc<Owner>,
}

impl ManagedLedger {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { inner: Arc::new(Owner { shared }) }
    }

    /// Its task may be gone.
    pub(super) fn tell(&self, input: Input) {
        let _ = self.inner.shared.inputs.push(input);
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        lock(&self.shared().chain)
    }

    /// Opens (with `create`, creates) the log and takes it over: read the record, recover the last ledger,
    /// compare-and-set with a higher epoch (`docs/internals/ledger_protocol.md`, takeover). The next ledger
    /// is created and listed when the first entry comes. Stored cursors are recovered too.
    pub async fn open(
        environment: ManagedLedgerEnvironment,
        name: &str,
        create: bool,
        events: Arc<dyn ManagedLedgerEvents>,
    ) -> Result<Self, ManagedLedgerError> {
        open::open(environment, name, create, events).await
    }

    /// Writes the record of a log nobody has opened yet, with nothing in it and epoch 0.
    pub(in crate::broker) async fn create(
        metadata: &Metadata,
        name: &str,
    ) -> Result<(), MetadataError> {
        let record = TopicRecord::new((0, 0), &Chain::default(), 0, Vec::new());
        let key = Shared::key(name);
        metadata.put(&key, record.encode(), Expect::Absent, None).await.map(drop)
    }

    /// Appends in order; never blocks. Each entry gets its outcome by the events, in order.
    pub fn append(&self, entries: Vec<NewEntry>) {
        // Bounded by the machine's limit of pending entries, which refuses beyond it.
        let _ = self.inner.shared.inputs.push(Input::Append(entries));
    }

    /// The log by sequence numbers. Does not hold the log open.
    pub fn numbered(&self) -> NumberedLog {
        NumberedLog::new(Arc::clone(self.shared()))
    }

    /// The last committed position; before the first entry, the position just before it.
    pub fn last_confirmed(&self) -> Position {
        self.chain().last_confirmed()
    }

    /// Up to `entries_max` committed entries at or after `from`, in order, across ledgers; empty if there
    /// is none yet. Skips to the next ledger at a ledger's end. Stops after `bytes_max` bytes (at least one
    /// entry).
    pub async fn read(
        &self,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEntry>, ManagedLedgerError> {
        read::read(self.shared(), from, entries_max, bytes_max).await
    }

    /// The position of the first entry kept (or where the first will be).
    pub fn first_position(&self) -> Position {
        self.chain().first_position()
    }

    /// The place after `position`: the next entry, or the first of the next ledger.
    pub fn next_position(&self, position: Position) -> Position {
        self.chain().next_position(position)
    }

    /// Committed entries in `(after, up_to]`.
    pub fn entries_between(&self, after: Position, up_to: Position) -> u64 {
        self.chain().entries_between(after, up_to)
    }

    /// The last entry with publish time before `time`; `None` if there is none. Publish times are the
    /// clients' and need not rise: entries before the one answered may be later than `time`.
    pub async fn last_before(
        &self,
        time: WallTime,
    ) -> Result<Option<Position>, ManagedLedgerError> {
        read::last_before(self.shared(), time).await
    }

    /// Names of stored cursors, in order.
    pub fn cursor_names(&self) -> Vec<String> {
        lock(&self.shared().cursors).keys().cloned().collect()
    }

    /// The stored cursor of this name, created at `initial` if there is none. A new cursor takes its position
    /// and holds back trimming in one step.
    pub async fn open_cursor(
        &self,
        name: &str,
        initial: InitialPosition,
        properties: Vec<(String, String)>,
    ) -> Result<Cursor, ManagedLedgerError> {
        let shared = self.shared();
        let cursor = {
            let mut cursors = lock(&shared.cursors);
            if shared.closed.load(Ordering::Acquire) {
                return Err(ManagedLedgerError::Fenced);
            }
            match cursors.get(name) {
                Some(cursor) => cursor.clone(),
                None => {
                    let start = initial_mark_delete(&lock(&shared.chain), initial);
                    let cursor = Cursor::fresh(shared.cursor_place(), name, start, properties);
                    cursors.insert(name.to_owned(), cursor.clone());
                    cursor
                }
            }
        };
        match cursor.ensure_stored().await {
            Ok(()) => Ok(cursor),
            Err(error) => {
                reached!("managed ledger: a new cursor could not be stored");
                lock(&shared.cursors).remove(name);
                cursor.abandon();
                Err(error)
            }
        }
    }

    /// A cursor that is not stored (readers) and does not hold back trimming.
    pub fn open_transient_cursor(&self, name: &str, initial: InitialPosition) -> Cursor {
        let start = initial_mark_delete(&self.chain(), initial);
        Cursor::transient(self.shared().cursor_place(), name, start)
    }

    /// Removes a stored cursor.
    pub async fn delete_cursor(&self, name: &str) -> Result<(), ManagedLedgerError> {
        let Some(cursor) = lock(&self.shared().cursors).get(name).cloned() else {
            return Err(ManagedLedgerError::NotFound);
        };
        cursor.delete().await?;
        lock(&self.shared().cursors).remove(name);
        Ok(())
    }

    /// Deletes ledgers that every stored cursor has consumed. Without stored cursors nothing is kept but
    /// the current ledger.
    pub async fn trim(&self) -> Result<(), ManagedLedgerError> {
        let trimmed = trim::trim(self.shared()).await;
        if trimmed == Err(ManagedLedgerError::Fenced) {
            self.shared().record_lost();
        }
        trimmed
    }

    /// Facts for statistics.
    pub fn stats(&self) -> ManagedLedgerStats {
        let chain = self.chain();
        ManagedLedgerStats {
            storage_bytes: chain.ledgers.iter().map(|ledger| ledger.bytes).sum(),
            entries: chain.ledgers.iter().map(|ledger| ledger.entries).sum(),
            ledgers: chain.ledgers.iter().map(|l| (l.id, l.entries, l.bytes)).collect(),
            next_message_index: self.shared().next_index.load(Ordering::Relaxed),
            pending: self.shared().pending.load(Ordering::Relaxed),
        }
    }

    /// Writes cursors' state, closes the current ledger and gives the log up.
    pub async fn close(&self) {
        let shared = self.shared();
        let (done, closed) = oneshot::channel();
        if self.inner.shared.inputs.push(Input::Close(done)).is_ok() {
            // Already gone is closed too.
            let _ = closed.await;
        }
        let cursors: Vec<_> = lock(&shared.cursors).values().cloned().collect();
        for cursor in cursors {
            cursor.close().await;
        }
    }

    /// Deletes the log: its record first, then its ledgers and cursors.
    pub async fn delete(&self) -> Result<(), ManagedLedgerError> {
        let shared = self.shared();
        self.close().await;
        {
            let held = shared.record.lock().await;
            let expect = Expect::Version(held.version);
            let key = &shared.claim.key;
            let deleted = shared.environment.metadata.delete(key, expect).await;
            if let Err(error) = deleted {
                // A lost answer is told by the key's absence.
                match shared.environment.metadata.get(key).await {
                    Ok(None) => {}
                    _ => return Err(ManagedLedgerError::Metadata(error.to_string())),
                }
            }
        }
        let cursors: Vec<_> = lock(&shared.cursors).values().cloned().collect();
        for cursor in cursors {
            if let Err(error) = cursor.delete().await {
                tracing::warn!(%error, topic = shared.name, "cursor left behind");
            }
        }
        let ledgers: Vec<_> = self.chain().ledgers.iter().map(|ledger| ledger.id).collect();
        shared.delete_ledgers(&ledgers).await;
        Ok(())
    }
}

fn initial_mark_delete(chain: &Chain, initial: InitialPosition) -> Position {
    match initial {
        InitialPosition::Latest => chain.last_confirmed(),
        InitialPosition::Earliest => chain.previous_position(chain.first_position()),
        InitialPosition::At(next) => chain
            .previous_position(next.min(chain.next_position(chain.last_confirmed())))
            .max(chain.previous_position(chain.first_position())),
    }
}
