//! The keeper: the one task that changes entry logs, index and checkpoint file. Being one task, a flush, a
//! compaction and a removal can never be in each other's way.
//!
//! A checkpoint keeps this order: marks captured, half frozen, entries synced, runs in the index, index
//! flushed, changed facts of ledgers in the facts log, then the checkpoint file (which says how much of all
//! that counts) replaced, then journal files let go. A failed one leaves the half frozen, and the next begins
//! with that same half and those marks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::journal::JournalFiles;
use super::shared::Shared;
use super::storage::{
    CheckpointFile, EntryLogWriter, FactsLogWriter, FactsPlace, LogUse, Pace, Run,
};
use super::write_cache::Half;
use crate::domain::{EntryId, LedgerId};
use crate::runtime::{DiskError, DiskResult, IndexError, Mailbox, ShutdownSignal};
use crate::{in_state, invariant, mutant, reached};

/// Wait after a failed checkpoint.
const RETRY_WAIT: Duration = Duration::from_millis(500);
/// A log with less than this part of it in use is compacted, in percent.
const COMPACT_BELOW_PERCENT: u64 = 20;
/// Bytes copied before they are put in the index.
const COMPACT_BYTES: u64 = 32 * 1024 * 1024;

/// A checkpoint did not complete.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// What the keeper can be asked for.
pub(super) enum KeeperCommand {
    /// A checkpoint now. Told whether it completed.
    Checkpoint(oneshot::Sender<Result<(), String>>),
    /// Clean up after deleted ledgers and compact. Told when done.
    Collect(oneshot::Sender<()>),
    /// A last checkpoint, then end.
    Stop(oneshot::Sender<()>),
}

/// The keeper's state.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    journals: Vec<JournalFiles>,
    writer: EntryLogWriter,
    facts: FactsLogWriter,
    last: CheckpointFile,
    commands: Mailbox<KeeperCommand>,
    /// The index may hold runs that no flush has made durable: replay puts some in.
    index_unflushed: bool,
}

impl Keeper {
    /// A keeper that goes on from `last`.
    pub fn new(
        shared: Arc<Shared>,
        journals: Vec<JournalFiles>,
        writer: EntryLogWriter,
        facts: FactsLogWriter,
        last: CheckpointFile,
        commands: Mailbox<KeeperCommand>,
    ) -> Self {
        let index_unflushed = !mutant!("S16");
        Self { shared, journals, writer, facts, last, commands, index_unflushed }
    }

    /// Keeps until told to stop.
    pub async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let clock = &shared.runtime.clock;
        let interval = shared.config.checkpoint_interval;
        let mut has_just_made_one = false;
        loop {
            self.note_free_space().await;
            if !std::mem::take(&mut has_just_made_one)
                && let Err(error) = self.checkpoint_if_due(true).await
            {
                reached!("bookie: checkpoint failed");
                tracing::warn!(%error, "checkpoint failed");
                clock.sleep(RETRY_WAIT).await;
            }
            let commands = tokio::select! {
                biased;
                commands = self.commands.take_all() => commands,
                () = shared.cache.flush_wanted.notified() => None,
                () = clock.sleep(interval) => None,
            };
            for command in commands.into_iter().flatten() {
                match command {
                    KeeperCommand::Checkpoint(done) => {
                        let result =
                            self.checkpoint(false).await.map_err(|error| error.to_string());
                        // Whoever asked may go on at once, and what comes then is not behind this one's mark.
                        has_just_made_one = result.is_ok();
                        let _ = done.send(result);
                    }
                    KeeperCommand::Collect(done) => {
                        has_just_made_one = false;
                        if let Err(error) = self.collect(&shared.shutdown.signal()).await {
                            tracing::warn!(%error, "collecting dead space failed");
                        }
                        let _ = done.send(());
                    }
                    KeeperCommand::Stop(done) => {
                        if let Err(error) = self.checkpoint_if_due(false).await {
                            tracing::warn!(%error, "last checkpoint failed; the journal has it all");
                        }
                        let _ = done.send(());
                        return;
                    }
                }
            }
        }
    }

    async fn note_free_space(&self) {
        let disk = &self.shared.runtime.disk;
        let config = &self.shared.config;
        let mut ledgers = Vec::new();
        for directory in config.ledger_directories() {
            let Ok(free) = disk.free_space(&directory).await else { return };
            ledgers.push(free);
        }
        let mut journals = Vec::new();
        for directory in config.journal_directories() {
            let Ok(free) = disk.free_space(&directory).await else { return };
            journals.push(free);
        }
        self.shared.spaces.note(&journals, &ledgers);
    }

    async fn checkpoint_if_due(&mut self, paced: bool) -> Result<(), CheckpointError> {
        let due = {
            let cache = self.shared.cache.lock();
            *cache.synced() != self.last.marks || !cache.is_empty()
        };
        if due { self.checkpoint(paced).await } else { Ok(()) }
    }

    /// `paced` if nobody waits for it.
    async fn checkpoint(&mut self, paced: bool) -> Result<(), CheckpointError> {
        let _state = in_state!("bookie: checkpoint");
        let shared = Arc::clone(&self.shared);
        let frozen = shared.cache.freeze();
        let (mut marks, empty) = (frozen.marks.clone(), frozen.half.is_empty());
        let stored = self.store(&frozen.half, paced).await;
        drop(frozen);
        if let Err(error) = stored {
            if mutant!("S29") {
                shared.cache.lock().trade_places();
            }
            return Err(error);
        }
        let facts =
            if mutant!("S28") && empty { self.last.facts } else { self.store_facts().await? };
        if mutant!("S7") {
            marks = marks.with_later_others(shared.cache.lock().synced());
        }
        invariant!(marks.is_nowhere_behind(&self.last.marks), "a journal's mark goes back");
        self.replace_file(CheckpointFile { marks, facts, ..self.last.clone() }).await?;
        shared.cache.flushed();
        self.retire().await?;
        self.facts.named(facts).await?;
        Ok(())
    }

    /// Lets journal files behind the marks go, in each journal whatever happens in the others.
    async fn retire(&self) -> DiskResult<()> {
        let mut result = Ok(());
        for (files, mark) in self.journals.iter().zip(self.last.marks.iter()) {
            result = result.and(files.retire(mark.file).await);
        }
        result
    }

    /// Entries to the log, synced; then to the index, flushed.
    async fn store(&mut self, half: &Half, paced: bool) -> Result<(), CheckpointError> {
        if half.is_empty() && !self.index_unflushed {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let pressure = || shared.cache.pressure();
        let pace = Pace { clock: &shared.runtime.clock, pressure: &pressure };
        let pace = paced.then_some(&pace);
        let runs = self.writer.write_half(half, |ledger| shared.place(ledger), pace).await?;
        self.put_in_index(&runs).await
    }

    /// What changed of what is known of ledgers goes to the facts log, synced. Everything of the journals up
    /// to their marks is in it: facts change before the synced position moves.
    async fn store_facts(&mut self) -> Result<FactsPlace, CheckpointError> {
        let ledgers = &self.shared.ledgers;
        let place = if self.facts.wants_all(ledgers.len()) {
            let all = if mutant!("S2") { ledgers.take_changed() } else { ledgers.take_all() };
            self.facts.write_all(&all).await?
        } else {
            reached!("bookie: changed facts appended");
            self.facts.append(&ledgers.take_changed()).await?
        };
        Ok(place)
    }

    async fn put_in_index(&mut self, runs: &[Run]) -> Result<(), CheckpointError> {
        let shared = &self.shared;
        let index = &shared.index;
        self.index_unflushed = true;
        shared.index_said(index.insert(runs))?;
        let number = self.last.number + 1;
        shared.index_said(index.set_number(number))?;
        index.flush().await?;
        self.last.index_number = number;
        self.index_unflushed = false;
        Ok(())
    }

    async fn replace_file(&mut self, mut next: CheckpointFile) -> Result<(), CheckpointError> {
        next.number = self.last.number + 1;
        next.index_number = self.last.index_number;
        next.extents = self.writer.extents().clone();
        next.next_log = self.writer.next_id();
        let disk = &self.shared.runtime.disk;
        next.write(disk, &self.shared.config.ledger_directory).await?;
        self.last = next;
        Ok(())
    }

    /// Drops what deleted ledgers left, removes logs nothing refers to, compacts logs with little in use.
    async fn collect(&mut self, stop: &ShutdownSignal) -> Result<(), CheckpointError> {
        // Also brings tombstones and the newest logs into the checkpoint file.
        self.checkpoint(false).await?;
        let shared = Arc::clone(&self.shared);
        let gone: BTreeSet<LedgerId> = shared.gone().clone();
        for ledger in &gone {
            shared.cache.lock().forget(*ledger);
            shared.index_said(shared.index.remove_ledger(*ledger))?;
            shared.read_cache.forget_ledger(*ledger);
        }
        if !gone.is_empty() {
            shared.index_said(shared.index.note_runs())?;
            shared.index.flush().await?;
            shared.gone().retain(|ledger| !gone.contains(ledger));
        }
        let logs = self.writer.extents().clone();
        for (log, extent) in &logs {
            if self.writer.is_current(*log) {
                continue;
            }
            let LogUse { runs, bytes } = shared.index.log_use(*log);
            let little = bytes.saturating_mul(100) < extent * COMPACT_BELOW_PERCENT;
            if runs > 0 && little && !stop.is_triggered() {
                self.compact(*log).await?;
            }
        }
        self.remove_unused_logs().await
    }

    async fn remove_unused_logs(&mut self) -> Result<(), CheckpointError> {
        let unused: Vec<u64> = self
            .writer
            .extents()
            .keys()
            .copied()
            .filter(|log| {
                !self.writer.is_current(*log) && self.shared.index.log_use(*log).runs == 0
            })
            .collect();
        if unused.is_empty() {
            return Ok(());
        }
        reached!("bookie: entry log removed");
        self.remove_logs(unused).await
    }

    /// First out of the checkpoint file, then removed: a crash between the two leaves files that start removes.
    async fn remove_logs(&mut self, logs: Vec<u64>) -> Result<(), CheckpointError> {
        for log in &logs {
            self.writer.forget(*log);
        }
        if mutant!("S-unlinked") {
            for log in &logs {
                self.shared.logs.remove(*log).await?;
            }
            return self.replace_file(self.last.clone()).await;
        }
        self.replace_file(self.last.clone()).await?;
        self.shared.read_cache.forget_logs(&logs);
        for log in logs {
            self.shared.logs.remove(log).await?;
        }
        Ok(())
    }

    /// Writes what is in use of a log again, into the current one. The old log stays until nothing refers
    /// to it, and the new one is in the checkpoint file before the index refers to it.
    async fn compact(&mut self, log: u64) -> Result<(), CheckpointError> {
        let _state = in_state!("bookie: compaction");
        let shared = Arc::clone(&self.shared);
        let mut from = (LedgerId(0), EntryId::FIRST);
        loop {
            let mut half = Half::default();
            let mut copied = 0;
            let mut done = false;
            while copied < COMPACT_BYTES && !done {
                let page = shared.index_said(shared.index.page(from.0, from.1))?;
                let Some(last) = page.last() else {
                    done = true;
                    continue;
                };
                from = (last.ledger, last.first.next());
                for run in page.iter().filter(|run| run.log == log) {
                    match super::read::read_whole_run(&shared, run).await {
                        Ok(entries) => half.insert(run.ledger, &entries),
                        Err(error) => {
                            // Damaged or unreadable: it stays where it is.
                            tracing::warn!(%error, log, "run not compacted");
                            continue;
                        }
                    }
                    copied += u64::from(run.length);
                }
            }
            if !half.is_empty() {
                reached!("bookie: entry log compacted");
                if mutant!("S10") && done {
                    self.remove_logs(vec![log]).await?;
                }
                let runs =
                    self.writer.write_half(&half, |ledger| shared.place(ledger), None).await?;
                self.replace_file(self.last.clone()).await?;
                self.put_in_index(&runs).await?;
            }
            if done {
                return Ok(());
            }
        }
    }
}
