//! Start-up: cookies, checkpoint file, entry logs cut back to what counts, index, journal replay, tasks.
//! Nothing is answered before all of it is done, so no answer is ever given without the whole of the data.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cookie::{
    Identified, Identity, adopt, begin_stamping, finish_stamping, folders, identify, raise,
};
use super::journal::{
    JournalFiles, JournalPositions, JournalQueue, JournalWriter, ReplayError, found, go_on, replay,
};
use super::keeper::{Keeper, KeeperCommand};
use super::ledger_state::LedgerTable;
use super::read_back::ReadBack;
use super::shared::{Counters, Shared, SharedParts};
use super::space::Spaces;
use super::storage::{
    CheckpointFile, EntryLogWriter, EntryLogs, FactsError, FactsLogWriter, FactsPlace,
    LocationIndex, read_facts, rebuild,
};
use super::write_cache::{Half, WriteCache};
use super::{BookieConfig, BookieStartError, LedgerDirectory};
use crate::domain::{BookieId, LedgerId};
use crate::runtime::{
    CreateMode, Disk, DiskError, IndexError, MailboxSender, OpenMode, Runtime, mailbox,
};
use crate::{in_state, mutant, reached};

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
    let journal_files =
        |directory| JournalFiles::new(disk.clone(), directory, config.journal_file_bytes);
    let journals: Vec<_> = config.journal_directories().into_iter().map(journal_files).collect();
    let Identified { identity, format, behind } = identify(&runtime, &config).await?;
    let (id, fresh) = match identity {
        Identity::Known(id) => (id, false),
        Identity::Grown(id, added) => {
            adopt(&runtime, &config, id, &added, format).await?;
            (id, false)
        }
        Identity::Fresh => (first_start(&runtime, &config, &journals).await?, true),
    };
    raise(&runtime, &config, id, format, &behind).await?;
    // A process that was killed may have left the checkpoint file's name not yet durable. Files it no longer
    // names, and journal files behind its mark, are about to go.
    disk.sync_directory(&config.ledger_directory).await?;
    let mut last = read_checkpoint(&disk, &config).await?;
    begin_added_journals(&disk, &config, &journals, &mut last).await?;
    let ledgers = LedgerTable::default();
    let facts = match read_facts(&disk, &config.ledger_directory, last.facts).await {
        Err(FactsError::Damaged(_)) if mutant!("S32") => BTreeMap::new(),
        read => read?,
    };
    for (ledger, known) in facts {
        if usize::from(known.journal) >= journals.len() {
            let journal = known.journal;
            return Err(BookieStartError::Corrupt(format!("no journal {journal} of {ledger}")));
        }
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
        config.formats.writes,
    );
    let half_bytes_max = config.write_cache_bytes;
    let directories = config.ledger_directories().len();
    let spaces = Spaces::new(journals.len(), directories, config.free_space_low_bytes);
    let spaces = Arc::new(spaces);
    let mut target = ReadBack {
        ledgers,
        index,
        writer,
        spaces: Arc::clone(&spaces),
        half: Half::default(),
        half_bytes_max,
        journal: 0,
    };
    let mut replayed = Vec::new();
    for (files, mark) in journals.iter().zip(last.marks.iter()) {
        replayed.push(replay(files, mark, &mut target).await?);
        target.journal += 1;
    }
    let ReadBack { ledgers, index, writer, half, .. } = target;
    let mut begun = Vec::new();
    for ((files, mark), mut replayed) in journals.iter().zip(last.marks.iter()).zip(replayed) {
        if mutant!("T1") {
            replayed.last_file = runtime.clock.now().0 / 1_000_000;
        }
        files.take_stock().await?;
        files.retire(mark.file).await?;
        begun.push(go_on(files, replayed, config.formats.writes).await?);
    }
    let positions = begun.iter().map(|(_, position)| *position).collect();
    let mut cache = WriteCache::new(config.write_cache_bytes, JournalPositions::new(positions));
    cache.fill(half);
    let queues = journals.iter().map(|_| JournalQueue::new(config.journal_queue_bytes));
    let (queues, mailboxes): (Vec<_>, Vec<_>) = queues.unzip();
    let (keeper, commands) = mailbox(KEEPER_QUEUE_ITEMS);
    let shared = Arc::new(Shared::new(SharedParts {
        runtime: runtime.clone(),
        config,
        id,
        fresh,
        ledgers,
        cache,
        journals: queues,
        logs,
        index,
        counters,
        locks,
        spaces,
    }));
    let gone = shared.ledgers.all();
    let gone = gone.iter().filter(|ledger| ledger.facts().deleted).map(|ledger| ledger.id);
    shared.gone().extend(gone);
    let ends = begun.into_iter().zip(mailboxes).zip(&journals).enumerate();
    for (number, (((file, position), mailbox), files)) in ends {
        let (shared, files) = (Arc::clone(&shared), files.clone());
        let writer = JournalWriter::new(shared, number, files, mailbox, file, position);
        runtime.tasks.spawn("bookie-journal", writer.run());
    }
    let task = Keeper::new(Arc::clone(&shared), journals, writer, facts, last, commands);
    runtime.tasks.spawn("bookie-keeper", task.run());
    let collector = super::garbage::run(Arc::clone(&shared), directory, keeper.clone());
    runtime.tasks.spawn("bookie-garbage", collector);
    runtime.tasks.spawn("bookie-scrubber", super::scrub::run(Arc::clone(&shared)));
    Ok((shared, keeper))
}

/// Empty folders become a bookie. The journals' first files and the checkpoint file are there before the
/// cookies: whoever has cookies has all of them.
async fn first_start(
    runtime: &Runtime,
    config: &BookieConfig,
    journals: &[JournalFiles],
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
    let mut marks = Vec::new();
    for files in journals {
        marks.push(found(files, unflushed_bytes_max(config)).await?);
    }
    let checkpoint = CheckpointFile {
        number: 1,
        index_number: 0,
        marks: JournalPositions::new(marks),
        next_log: 1,
        extents: BTreeMap::new(),
        facts: FactsPlace::default(),
    };
    checkpoint.write(&runtime.disk, &config.ledger_directory).await?;
    finish_stamping(runtime, config, id).await?;
    Ok(id)
}

const fn unflushed_bytes_max(config: &BookieConfig) -> u64 {
    2 * config.write_cache_bytes as u64
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

/// Journals that were added begin, and have their marks, before anything is written in them: a journal without a
/// mark holds nothing, also after an adoption that was cut short.
async fn begin_added_journals(
    disk: &Disk,
    config: &BookieConfig,
    journals: &[JournalFiles],
    last: &mut CheckpointFile,
) -> Result<(), BookieStartError> {
    let Some(added) = journals.get(last.marks.len()..) else {
        let marks = last.marks.len();
        let message = format!("the checkpoint file has marks of {marks} journals");
        return Err(BookieStartError::Corrupt(message));
    };
    if added.is_empty() {
        return Ok(());
    }
    reached!("bookie: journal added");
    for files in added {
        last.marks.push(found(files, unflushed_bytes_max(config)).await?);
    }
    last.number += 1;
    Ok(last.write(disk, &config.ledger_directory).await?)
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
