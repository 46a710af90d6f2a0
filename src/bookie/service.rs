//! The bookie as its callers see it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::BookieConfig;
use super::journal::{JournalItem, JournalQueue};
use super::keeper::KeeperCommand;
use super::ledger_state::{FenceState, LedgerState};
use super::shared::Shared;
use super::space::Space;
use crate::domain::{
    AddBatch, AddSink, BookieId, CreatorToken, Entry, EntryId, LastAddConfirmed, LedgerId,
    ReadError, ReadRequest,
};
use crate::mutant;
use crate::runtime::{DiskError, MailboxSender, Runtime};

/// What metadata says about one ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerPresence {
    /// It exists: keep it.
    Exists,
    /// It exists, can change no more, and this bookie is to hold nothing of it: its entries may go once
    /// [`LedgerDirectory::release`] says so.
    Elsewhere,
    /// It certainly does not exist: its data may go.
    Gone,
    /// Cannot tell: keep it.
    Unknown,
}

/// Port to metadata's list of ledgers; `node` fills it in.
#[async_trait]
pub trait LedgerDirectory: Send + Sync {
    /// Whether a ledger still exists, and whether this bookie has a part in it. Anything but a definite
    /// answer is `Unknown`.
    async fn presence(&self, ledger: LedgerId, bookie: BookieId) -> LedgerPresence;

    /// The same of many, in rising order; as many answers.
    async fn presences(&self, ledgers: &[LedgerId], bookie: BookieId) -> Vec<LedgerPresence> {
        let mut answers = Vec::with_capacity(ledgers.len());
        for ledger in ledgers {
            answers.push(self.presence(*ledger, bookie).await);
        }
        answers
    }

    /// Asks for leave to drop the entries of a ledger that is elsewhere. True only if that still holds and
    /// whoever is copying them here cannot come to rely on it any more. The bookie takes no copies while it
    /// asks.
    async fn release(&self, _ledger: LedgerId, _bookie: BookieId) -> bool {
        false
    }
}

/// The bookie must not start.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BookieStartError {
    /// Identity on disk and identity expected differ, or one folder lacks its cookie: the disk was wiped or
    /// swapped.
    #[error("cookie mismatch: {0}")]
    Cookie(String),
    /// A journal or entry log is damaged in a way a crash cannot explain.
    #[error("corrupt data: {0}")]
    Corrupt(String),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The index failed even after a rebuild.
    #[error("index: {0}")]
    Index(String),
}

/// Figures for metrics and statistics.
#[derive(Clone, Debug, Default)]
pub struct BookieStats {
    /// Entries made durable since start.
    pub entries_added: u64,
    /// Payload bytes of the same.
    pub bytes_added: u64,
    /// Each journal's own, in the order of the configuration.
    pub journals: Vec<JournalStats>,
    /// Bytes written to entry logs since start.
    pub entry_log_bytes: u64,
    /// Takes no writes: disk nearly full.
    pub read_only: bool,
    /// Was asked to leave: takes no writes but recovery's and repair's.
    pub draining: bool,
    /// The journal is poisoned: why.
    pub poisoned: Option<String>,
    /// Damaged copies found since start.
    pub corrupt_found: u64,
    /// Parts of reads answered with entries read ahead, since start.
    pub read_cache_hits: u64,
    /// Parts of reads that had to be read from a disk, since start; 0 without a read cache.
    pub read_cache_misses: u64,
}

/// Figures of one journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct JournalStats {
    /// Syncs since start.
    pub syncs: u64,
    /// Bytes written since start, padding included.
    pub bytes: u64,
}

impl JournalStats {
    fn of(journal: &JournalQueue) -> Self {
        Self {
            syncs: journal.syncs.load(Ordering::Relaxed),
            bytes: journal.bytes_written.load(Ordering::Relaxed),
        }
    }
}

/// A running bookie. Cheap to clone; stops when told to, or with its node.
#[derive(Clone)]
pub struct Bookie {
    pub(super) shared: Arc<Shared>,
    keeper: MailboxSender<KeeperCommand>,
}

impl Bookie {
    /// Checks cookies, replays the journal, opens or rebuilds the index. A first start on empty folders
    /// draws a new incarnation id and stamps it on each folder; see [`Bookie::is_fresh`].
    pub async fn start(
        runtime: Runtime,
        config: BookieConfig,
        directory: Arc<dyn LedgerDirectory>,
    ) -> Result<Self, BookieStartError> {
        let (shared, keeper) = Box::pin(super::start::start(runtime, config, directory)).await?;
        Ok(Self { shared, keeper })
    }

    /// This incarnation.
    pub fn id(&self) -> BookieId {
        self.shared.id
    }

    /// True if the folders were empty and were stamped in this start. If metadata already holds a cookie for
    /// this address, the disks were lost, and the node must not register this bookie in the old name.
    pub fn is_fresh(&self) -> bool {
        self.shared.fresh
    }

    /// Stores entries; see `ledger::BookieClient::add`. The answer can come before this returns.
    pub fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        super::add::add(&self.shared, batch, sink);
    }

    /// Reads a run of entries; see `ledger::BookieClient::read`.
    pub async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        let shared = &self.shared;
        let known =
            super::fence::find_ledger(shared, request.ledger, request.creator, request.fence)?;
        let Some(ledger) = known else { return Err(ReadError::Absent) };
        if shared.leaving.contains(request.ledger) {
            return Err(ReadError::Unknown("the ledger's entries are being dropped".to_owned()));
        }
        if request.fence {
            if mutant!("S26") {
                let entries = super::read::read(shared, &ledger, &request).await;
                if matches!(entries, Err(ReadError::Absent)) {
                    drop(super::fence::begin(shared, &ledger));
                    return entries;
                }
            }
            super::fence::fence(shared, &ledger).await?;
        }
        super::read::read(shared, &ledger, &request).await
    }

    /// What is known of a ledger's end, after fencing it durably if asked.
    pub async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        let known = super::fence::find_ledger(&self.shared, ledger, creator, fence)?;
        if let (true, Some(state)) = (fence, &known) {
            super::fence::fence(&self.shared, state).await?;
        }
        end_of(known.as_deref())
    }

    /// The same without fencing, once last add confirmed is beyond `beyond`, the ledger is fenced, or
    /// `patience` (at most 30 s) is over. With too many callers waiting it answers at once.
    pub async fn wait_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        beyond: EntryId,
        patience: Duration,
    ) -> Result<LastAddConfirmed, ReadError> {
        super::wait::wait_last_add_confirmed(&self.shared, ledger, creator, beyond, patience).await
    }

    /// Takes a hint about last add confirmed. Kept in memory until the next checkpoint; a hint for a ledger
    /// never seen here, or fenced, is dropped.
    pub async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        let known = super::fence::find_ledger(&self.shared, ledger, creator, false)?;
        if let Some(state) = known {
            let mut facts = state.facts();
            if facts.fence == FenceState::Open {
                facts.last_add_confirmed = facts.last_add_confirmed.max(last_add_confirmed);
            }
        }
        Ok(())
    }

    /// Figures since start.
    pub fn stats(&self) -> BookieStats {
        let counters = &self.shared.counters;
        let (read_cache_hits, read_cache_misses) = self.shared.read_cache.hits_and_misses();
        BookieStats {
            entries_added: counters.entries_added.load(Ordering::Relaxed),
            bytes_added: counters.bytes_added.load(Ordering::Relaxed),
            journals: self.shared.journals.iter().map(JournalStats::of).collect(),
            entry_log_bytes: counters.entry_log_bytes.load(Ordering::Relaxed),
            read_only: self.shared.spaces.bookie() != Space::Enough,
            draining: self.shared.draining.load(Ordering::Relaxed),
            poisoned: self.shared.poison.reason(),
            corrupt_found: counters.corrupt_found.load(Ordering::Relaxed),
            read_cache_hits,
            read_cache_misses,
        }
    }

    /// Asks the bookie to leave, or takes that back. Leaving it takes recovery and repair adds only;
    /// writers go elsewhere.
    pub fn set_draining(&self, draining: bool) {
        self.shared.draining.store(draining, Ordering::Relaxed);
    }

    /// Ledgers with copies found damaged, or possibly lost to damage, since the last call. A ledger that
    /// does not fit is found again by the next scrub.
    pub fn take_damaged(&self) -> Vec<LedgerId> {
        let mut damaged = self.shared.take_damaged();
        if !self.shared.limbo_told.swap(true, Ordering::Relaxed) {
            let ledgers = self.shared.ledgers.all();
            damaged.extend(ledgers.iter().filter(|l| l.facts().limbo).map(|ledger| ledger.id));
        }
        damaged.into_iter().collect()
    }

    /// Completes when the journal is poisoned (never otherwise).
    pub async fn poisoned(&self) -> String {
        self.shared.poison.wait().await
    }

    /// Moves everything added so far to the entry log and the journal's mark behind it.
    pub async fn checkpoint(&self) -> Result<(), String> {
        let (done, completed) = oneshot::channel();
        if self.keeper.send(KeeperCommand::Checkpoint(done)).await.is_err() {
            return Err("the bookie has stopped".to_owned());
        }
        completed.await.unwrap_or_else(|_| Err("the bookie has stopped".to_owned()))
    }

    /// Compares all ledgers with metadata and collects dead space now, as is done every
    /// `garbage_interval`.
    pub async fn collect_garbage(&self, directory: &dyn LedgerDirectory) {
        super::garbage::collect(&self.shared, directory, &self.keeper).await;
    }

    /// Flushes, checkpoints and stops. After it every call answers `Unreachable`.
    pub async fn stop(&self) {
        if self.shared.stopped.swap(true, Ordering::SeqCst) {
            return;
        }
        self.shared.shutdown.trigger();
        let stopping: Vec<_> = self.shared.journals.iter().map(ask_to_stop).collect();
        for stopped in stopping {
            // An error means that the task ended with its node.
            let _ = stopped.await;
        }
        let (done, keeper_done) = oneshot::channel();
        if self.keeper.send(KeeperCommand::Stop(done)).await.is_ok() {
            let _ = keeper_done.await;
        }
        self.shared.release_locks();
    }
}

fn ask_to_stop(journal: &JournalQueue) -> oneshot::Receiver<()> {
    let (done, stopped) = oneshot::channel();
    // A writer that is gone drops the sender.
    let _ = journal.push(JournalItem::Stop(done));
    stopped
}

/// What is known of a ledger's end; of a ledger never seen, nothing.
pub(super) fn end_of(ledger: Option<&LedgerState>) -> Result<LastAddConfirmed, ReadError> {
    let Some(state) = ledger else {
        return Ok(LastAddConfirmed {
            last_add_confirmed: EntryId::NONE,
            last_entry: EntryId::NONE,
            fenced: false,
        });
    };
    let facts = *state.facts();
    if facts.limbo {
        let detail = "entries may have been lost to damage".to_owned();
        return Err(ReadError::Unknown(detail));
    }
    Ok(LastAddConfirmed {
        last_add_confirmed: facts.last_add_confirmed,
        last_entry: facts.last_entry,
        fenced: facts.fence == FenceState::Durable,
    })
}
