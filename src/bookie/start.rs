//! Start-up: cookies, checkpoint file, entry logs cut back to what counts, index, journal replay, tasks.
//! Nothing is answered before all of it is done, so no answer is ever given without the whole of the data.

use std::sync::Arc;

use async_trait::async_trait;

use super::cookie::{Identity, adopt, begin_stamping, finish_stamping, folders, identify};
use super::journal::{
    JournalFiles, JournalPosition, JournalWriter, ReplayError, ReplayRecord, ReplayTarget,
    Replayed, group_again, replay,
};
use super::keeper::{Keeper, KeeperCommand};
use super::ledger_state::{FenceState, LedgerFacts, LedgerTable};
use super::record::{RecordHeader, RecordKind};
use super::shared::{Counters, Shared, SharedParts};
use super::space::Spaces;
use super::storage::{
    CheckpointFile, EntryLogWriter, EntryLogs, FactsError, FactsLogWriter, FactsPlace,
    LocationIndex, read_facts, rebuild,
};
use super::write_cache::{Half, WriteCache};
use super::{BookieConfig, BookieStartError, LedgerDirectory};
use crate::domain::{BookieId, CreatorToken, LedgerId};
use crate::runtime::{
    CreateMode, Disk, DiskError, File, IndexError, MailboxSender, OpenMode, Runtime, mailbox,
};
use crate::{in_state, mutant, reached};

/// Batches and fences queued for the journal, beside the bound on bytes.
const JOURNAL_QUEUE_ITEMS: usize = 64 * 1024;
const KEEPER_QUEUE_ITEMS: usize = 16;
const INDEX_FOLDER: &str = "index";

impl From<ReplayError> for BookieStartError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Corrupt(detail) => Self::Corrupt(detail),
            ReplayError::Disk(error) => Self::Disk(error),
            ReplayError::Index(detail) => Self::Index(detail),
        }
    }
}

impl From<FactsError> for BookieStartError {
    fn from(error: FactsError) -> Self {
        match error {
            FactsError::Damaged(detail) => Self::Corrupt(detail),
            FactsError::Disk(error) => Self::Disk(error),
        }
    }
}

impl From<IndexError> for BookieStartError {
    fn from(error: IndexError) -> Self {
        Self::Index(error.to_string())
    }
}

/// Starts a bookie.
pub(super) async fn start(
    runtime: Runtime,
    config: BookieConfig,
    directory: Arc<dyn LedgerDirectory>,
) -> Result<(Arc<Shared>, MailboxSender<KeeperCommand>), BookieStartError> {
    let _state = in_state!("bookie: start");
    let disk = runtime.disk.clone();
    let mut locks = Vec::new();
    for folder in &folders(&config) {
        let folder = &folder.path;
        disk.create_directory(folder).await?;
        // Its own name and the data folder's, or a power loss takes the folder and all that was synced in it.
        for parent in folder.ancestors().skip(1).take(2) {
            if !parent.as_os_str().is_empty() {
                disk.sync_directory(parent).await?;
            }
        }
        locks.push(disk.lock(folder).await?);
    }
    let files = JournalFiles::new(
        disk.clone(),
        config.journal_directory.clone(),
        config.journal_file_bytes,
    );
    let (id, fresh) = match identify(&runtime, &config).await? {
        Identity::Known(id) => (id, false),
        Identity::Grown(id, added) => {
            adopt(&runtime, &config, id, &added).await?;
            (id, false)
        }
        Identity::Fresh => (first_start(&runtime, &config, &files).await?, true),
    };
    // A process that was killed may have left the checkpoint file's name not yet durable. Files it no longer
    // names, and journal files behind its mark, are about to go.
    disk.sync_directory(&config.ledger_directory).await?;
    let last = read_checkpoint(&disk, &config).await?;
    let ledgers = LedgerTable::default();
    for (ledger, known) in read_facts(&disk, &config.ledger_directory, last.facts).await? {
        ledgers.find_or_create(ledger, known);
    }
    let facts = FactsLogWriter::new(&disk, &config.ledger_directory, last.facts).await?;
    let counters = Counters::default();
    let logs = Arc::new(EntryLogs::new(disk.clone(), config.ledger_directories()));
    let highest_log = cut_back(&disk, &logs, &last).await?;
    let index = open_index(&runtime, &config, &logs, &last, &ledgers, &counters).await?;
    let writer = EntryLogWriter::new(
        Arc::clone(&logs),
        config.entry_log_bytes,
        last.next_log.max(highest_log + 1),
        last.extents.clone(),
        Arc::clone(&counters.entry_log_bytes),
    );
    let half_bytes_max = config.write_cache_bytes;
    let spaces = Spaces::new(config.ledger_directories().len(), config.free_space_low_bytes);
    let spaces = Arc::new(spaces);
    let mut target = Target {
        ledgers,
        index,
        writer,
        spaces: Arc::clone(&spaces),
        half: Half::default(),
        half_bytes_max,
    };
    let replayed = replay(&files, last.mark, &mut target).await?;
    let Target { ledgers, index, writer, half, .. } = target;
    files.take_stock().await?;
    files.retire(last.mark.file).await?;
    let (file, position) = begin_journal(&runtime, &files, replayed).await?;
    let mut cache = WriteCache::new(config.write_cache_bytes, position);
    cache.fill(half);
    let (journal, journal_mailbox) = mailbox(JOURNAL_QUEUE_ITEMS);
    let (keeper, commands) = mailbox(KEEPER_QUEUE_ITEMS);
    let shared = Arc::new(Shared::new(SharedParts {
        runtime: runtime.clone(),
        config,
        id,
        fresh,
        ledgers,
        cache,
        journal,
        logs,
        index,
        counters,
        locks,
        spaces,
    }));
    let gone = shared.ledgers.all();
    let gone = gone.iter().filter(|ledger| ledger.facts().deleted).map(|ledger| ledger.id);
    shared.gone().extend(gone);
    let journal_writer =
        JournalWriter::new(Arc::clone(&shared), files.clone(), journal_mailbox, file, position);
    runtime.tasks.spawn("bookie-journal", journal_writer.run());
    let task = Keeper::new(Arc::clone(&shared), files, writer, facts, last, commands);
    runtime.tasks.spawn("bookie-keeper", task.run());
    let collector = super::garbage::run(Arc::clone(&shared), directory, keeper.clone());
    runtime.tasks.spawn("bookie-garbage", collector);
    runtime.tasks.spawn("bookie-scrubber", super::scrub::run(Arc::clone(&shared)));
    Ok((shared, keeper))
}

/// The file this life writes, beginning with the last group of the former one if its sync may have failed.
async fn begin_journal(
    runtime: &Runtime,
    files: &JournalFiles,
    replayed: Replayed,
) -> Result<(File, JournalPosition), DiskError> {
    let id = if mutant!("T1") { runtime.clock.now().0 / 1_000_000 } else { replayed.last_file + 1 };
    let sequence = replayed.next_sequence;
    let mut position = JournalPosition { sequence, file: id, offset: 0 };
    let file = files.begin(id).await?;
    if let Some(records) = replayed.last_group.filter(|_| !mutant!("S-fsync")) {
        let bytes = group_again(&records, id, 0, sequence - 1);
        position.offset = bytes.len() as u64;
        file.write_and_sync(0, vec![bytes]).await?;
        if position.offset > files.file_bytes() {
            files.outgrown(id, position.offset);
        }
    }
    Ok((file, position))
}

/// Empty folders become a bookie. The journal's first file and the checkpoint file are there before the
/// cookies: whoever has cookies has both.
async fn first_start(
    runtime: &Runtime,
    config: &BookieConfig,
    files: &JournalFiles,
) -> Result<BookieId, DiskError> {
    // The folders' own names must be as durable as the cookies in them.
    for folder in &folders(config) {
        for above in folder.path.ancestors().skip(1).take(2) {
            if !above.as_os_str().is_empty() {
                runtime.disk.sync_directory(above).await?;
            }
        }
    }
    begin_stamping(runtime, config).await?;
    // A first start that was cut short may have left an index that numbers higher than a new one.
    let _ = runtime.indexes.destroy(&config.ledger_directory.join(INDEX_FOLDER)).await;
    // Two bookies of one process share a runtime, but not a draw from its root.
    let id = BookieId(runtime.random.fork_numbered("bookie id", runtime.random.next()).next());
    let first = files.list().await?.last().map_or(1, |(id, _)| id + 1);
    let unflushed_bytes_max = 2 * config.write_cache_bytes as u64;
    let first = files.stock(first, unflushed_bytes_max).await?;
    files.begin(first).await?;
    let checkpoint = CheckpointFile {
        number: 1,
        index_number: 0,
        mark: JournalPosition { sequence: 1, file: first, offset: 0 },
        next_log: 1,
        extents: std::collections::BTreeMap::new(),
        facts: FactsPlace::default(),
    };
    checkpoint.write(&runtime.disk, &config.ledger_directory).await?;
    finish_stamping(runtime, config, id).await?;
    Ok(id)
}

async fn read_checkpoint(
    disk: &Disk,
    config: &BookieConfig,
) -> Result<CheckpointFile, BookieStartError> {
    let bytes = disk.read_file(&CheckpointFile::path(&config.ledger_directory)).await?;
    let bytes = bytes
        .ok_or_else(|| BookieStartError::Corrupt("the checkpoint file is missing".to_owned()))?;
    CheckpointFile::decode(&bytes).map_err(BookieStartError::Corrupt)
}

/// Cuts entry logs back to what the checkpoint file vouches for. What is after it was written by a flush
/// that never completed; the journal has it. Returns the highest log id seen.
async fn cut_back(
    disk: &Disk,
    logs: &EntryLogs,
    last: &CheckpointFile,
) -> Result<u64, BookieStartError> {
    let listed = logs.list().await?;
    for (log, extent) in &last.extents {
        let length = listed.get(log).copied().unwrap_or(0);
        if length < *extent {
            return Err(BookieStartError::Corrupt(format!(
                "entry log {log:016x} has {length} bytes, {extent} were synced"
            )));
        }
        if length > *extent {
            reached!("bookie: entry log cut back");
            let file = disk.open(&logs.path(*log), CreateMode::Existing, OpenMode::Shared).await?;
            file.set_length(*extent).await?;
            file.sync().await?;
        }
    }
    for log in listed.keys().filter(|log| !last.extents.contains_key(log)) {
        reached!("bookie: entry log of an unfinished checkpoint removed");
        logs.remove(*log).await?;
    }
    Ok(listed.keys().last().copied().unwrap_or(0))
}

async fn open_index(
    runtime: &Runtime,
    config: &BookieConfig,
    logs: &EntryLogs,
    last: &CheckpointFile,
    ledgers: &LedgerTable,
    counters: &Counters,
) -> Result<LocationIndex, BookieStartError> {
    let folder = config.ledger_directory.join(INDEX_FOLDER);
    if let Ok(index) = runtime.indexes.open(&folder).await {
        let index = LocationIndex::new(index);
        let complete = index.number().is_ok_and(|number| number >= last.index_number);
        if complete && index.scan(&last.extents).is_ok() {
            return Ok(index);
        }
    }
    runtime.indexes.destroy(&folder).await?;
    let index = LocationIndex::new(runtime.indexes.open(&folder).await?);
    let is_deleted =
        |ledger: LedgerId| ledgers.find(ledger).is_some_and(|ledger| ledger.facts().deleted);
    let damaged = rebuild(logs, &index, &last.extents, is_deleted)
        .await
        .map_err(|error| BookieStartError::Index(error.to_string()))?;
    if damaged > 0 {
        reached!("bookie: damage met while the index was made again");
        tracing::error!(damaged, "damaged places in entry logs: missing entries will be unknown");
        counters.corrupt_found.fetch_add(damaged, std::sync::atomic::Ordering::Relaxed);
        for ledger in ledgers.all() {
            ledger.facts().limbo = true;
        }
    }
    index.set_number(last.index_number)?;
    index.flush().await?;
    Ok(index)
}

/// What replay fills.
struct Target {
    ledgers: LedgerTable,
    index: LocationIndex,
    writer: EntryLogWriter,
    spaces: Arc<Spaces>,
    half: Half,
    half_bytes_max: usize,
}

#[async_trait]
impl ReplayTarget for Target {
    async fn apply(&mut self, records: Vec<ReplayRecord>) -> Result<(), ReplayError> {
        for (header, payload) in records {
            self.apply_record(header, payload)?;
        }
        if self.half.bytes() >= self.half_bytes_max {
            reached!("bookie: flush during replay");
            let full = std::mem::take(&mut self.half);
            let place = |ledger| self.ledgers.find(ledger).map(|state| self.spaces.place(&state));
            let runs = self.writer.write_half(&full, place, None).await?;
            // The mark stays: were this lost, the next start would replay the same again.
            let inserted = self.index.insert(&runs);
            inserted.map_err(|error| ReplayError::Index(error.to_string()))?;
        }
        Ok(())
    }
}

impl Target {
    fn apply_record(
        &mut self,
        header: RecordHeader,
        payload: bytes::Bytes,
    ) -> Result<(), ReplayError> {
        let Self { ledgers, half, .. } = self;
        let creator = CreatorToken(header.number);
        match header.kind {
            RecordKind::Entry => {
                let Some(ledger) = ledgers.find(header.ledger) else {
                    let entry = header.entry;
                    return Err(ReplayError::Corrupt(format!(
                        "the journal holds entry {}:{entry} of a ledger nobody created",
                        header.ledger
                    )));
                };
                let mut facts = ledger.facts();
                if facts.deleted {
                    return Ok(());
                }
                facts.last_entry = facts.last_entry.max(header.entry);
                facts.last_add_confirmed = facts.last_add_confirmed.max(header.last_add_confirmed);
                half.insert(header.ledger, &[header.into_entry(payload)]);
            }
            RecordKind::Bind => {
                ledgers
                    .find_or_create(header.ledger, LedgerFacts::new(creator))
                    .facts()
                    .bind_logged = true;
            }
            RecordKind::Fence => {
                let ledger = ledgers.find_or_create(header.ledger, LedgerFacts::new(creator));
                let mut facts = ledger.facts();
                facts.bind_logged = true;
                facts.fence = FenceState::Durable;
            }
            RecordKind::Tombstone => {
                let ledger = ledgers.find_or_create(header.ledger, LedgerFacts::new(creator));
                let mut facts = ledger.facts();
                facts.bind_logged = true;
                facts.deleted = true;
                half.forget(header.ledger);
            }
        }
        Ok(())
    }
}
