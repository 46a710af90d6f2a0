//! A journal's one writer: takes everything queued, writes it as one group with one sync, applies it to
//! cache and ledgers, then answers. Everything that arrives meanwhile is the next group, so groups form by
//! themselves under load and an idle journal adds no wait.
//!
//! A failed write or sync poisons: nothing is acknowledged after it, whatever later calls return.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;

use super::group::GroupBuilder;
use super::{GROUP_ALIGNMENT, JournalFiles, JournalItem, JournalPosition, JournalQueue};
use crate::bookie::ledger_state::FenceState;
use crate::bookie::record::RecordKind;
use crate::bookie::shared::Shared;
use crate::domain::{AddError, EntryId};
use crate::runtime::{DiskError, DiskErrorKind, DiskResult, File, Mailbox};
use crate::{mutant, reached};

/// How long queued adds wait for room in the write cache before they are refused.
const CACHE_WAIT: Duration = Duration::from_secs(2);

/// Room in a group's buffer for the item that passes the limit; a larger one is copied to a larger buffer.
const LARGE_ITEM_BYTES: usize = 1280 * 1024;

enum WriteFailure {
    /// Before anything was written.
    NoRoom(DiskError),
    /// Anything else: poison.
    Disk(DiskError),
}

impl From<DiskError> for WriteFailure {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// The writer task's state.
pub(in crate::bookie) struct JournalWriter {
    shared: Arc<Shared>,
    /// Which of the bookie's journals this is.
    number: usize,
    files: JournalFiles,
    mailbox: Mailbox<JournalItem>,
    file: File,
    position: JournalPosition,
    builder: GroupBuilder,
    /// The last group holds records, and no later one proves yet that it was synced.
    unwitnessed: bool,
    /// The file after this one, made ready beside the writing.
    next: Option<oneshot::Receiver<DiskResult<File>>>,
}

impl JournalWriter {
    /// A writer of journal `number` that goes on at `position` of an open file.
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        files: JournalFiles,
        mailbox: Mailbox<JournalItem>,
        file: File,
        position: JournalPosition,
    ) -> Self {
        let builder = GroupBuilder::new(shared.config.formats.writes);
        let (unwitnessed, next) = (false, None);
        Self { shared, number, files, mailbox, file, position, builder, unwitnessed, next }
    }

    fn queue(&self) -> &JournalQueue {
        &self.shared.journals[self.number]
    }

    /// Writes until told to stop.
    pub async fn run(mut self) {
        let mut pending = VecDeque::new();
        let mut group = Vec::new();
        self.make_next_ready();
        loop {
            if pending.is_empty() {
                match self.next_items().await {
                    Some(items) => pending = items,
                    None => return,
                }
            } else {
                pending.extend(self.mailbox.take_ready());
            }
            let cache_full = !self.wait_for_room().await;
            let stop = self.fill_group(&mut pending, &mut group, cache_full);
            if !self.builder.is_empty() {
                match self.write_group().await {
                    Ok(()) => match self.shared.poison.reason() {
                        None => {
                            self.unwitnessed = !mutant!("S-witness");
                            self.complete(&mut group);
                        }
                        Some(reason) => {
                            reached!("bookie: a group synced while another journal failed");
                            self.refuse_all(&reason, &mut group);
                        }
                    },
                    Err(WriteFailure::NoRoom(error)) => self.refuse_for_space(&error, &mut group),
                    Err(WriteFailure::Disk(_)) if mutant!("S38") => return,
                    Err(WriteFailure::Disk(error)) => self.poison(error.to_string(), &mut group),
                }
            }
            if let Some(stop) = stop {
                // Whoever asked may have gone away.
                let _ = stop.send(());
                return;
            }
        }
    }

    /// What is queued next; `None` if nothing will be. In a pause the last group gets its witness.
    async fn next_items(&mut self) -> Option<VecDeque<JournalItem>> {
        let delay = self.shared.config.journal_witness_delay;
        let clock = self.shared.runtime.clock.clone();
        while self.unwitnessed {
            if let Ok(items) = clock.timeout(delay, self.mailbox.take_all()).await {
                return items;
            }
            self.write_witness().await;
        }
        self.mailbox.take_all().await
    }

    /// Writes a group without records. Without room it is tried again after the next pause.
    async fn write_witness(&mut self) {
        if self.shared.poison.reason().is_some() {
            self.unwitnessed = false;
            return;
        }
        self.builder.begin(GROUP_ALIGNMENT);
        match self.write_group().await {
            Ok(()) => {
                reached!("bookie: journal group witnessed");
                self.unwitnessed = false;
                self.shared.cache.lock().set_synced(self.number, self.position);
            }
            Err(WriteFailure::NoRoom(_)) => {}
            Err(WriteFailure::Disk(error)) => self.poison(error.to_string(), &mut Vec::new()),
        }
    }

    /// False if the write cache stayed full for the whole wait.
    async fn wait_for_room(&self) -> bool {
        if self.shared.cache.has_room() {
            return true;
        }
        reached!("bookie: journal waits for room in the write cache");
        let room = self.shared.cache.wait_for_room(self.number);
        self.shared.runtime.clock.timeout(CACHE_WAIT, room).await.is_ok()
    }

    /// Encodes queued items until the group is large enough. Items that cannot be written are answered.
    fn fill_group(
        &mut self,
        pending: &mut VecDeque<JournalItem>,
        group: &mut Vec<JournalItem>,
        cache_full: bool,
    ) -> Option<oneshot::Sender<()>> {
        // Room for a record whatever the setting: a group that takes nothing would be tried for ever.
        let limit = self.shared.config.journal_group_bytes.max(GROUP_ALIGNMENT);
        self.builder.begin(limit + LARGE_ITEM_BYTES);
        let poisoned = self.shared.poison.reason();
        while self.builder.length() < limit {
            match pending.pop_front()? {
                JournalItem::Stop(stop) => return Some(stop),
                item if poisoned.is_some() => {
                    self.refuse(item, poisoned.clone().unwrap_or_default());
                }
                JournalItem::Add(item) if cache_full => {
                    reached!("bookie: add refused, write cache full");
                    self.queue().left(item.bytes);
                    item.answer(self.shared.id, Err(AddError::Overloaded));
                }
                item => {
                    self.encode(&item);
                    group.push(item);
                }
            }
        }
        None
    }

    fn encode(&mut self, item: &JournalItem) {
        match item {
            JournalItem::Add(item) => {
                let mut facts = item.ledger.facts();
                if !facts.bind_logged {
                    facts.bind_logged = true;
                    let ledger = item.batch.ledger;
                    self.builder.push_ledger(RecordKind::Bind, ledger, facts.creator);
                }
                drop(facts);
                for entry in &item.batch.entries {
                    self.builder.push_entry(entry);
                }
            }
            JournalItem::Ledger(item) => {
                let mut facts = item.ledger.facts();
                facts.bind_logged = true;
                let creator = facts.creator;
                drop(facts);
                self.builder.push_ledger(item.kind, item.ledger.id, creator);
            }
            JournalItem::Stop(_) => {}
        }
    }

    async fn write_group(&mut self) -> Result<(), WriteFailure> {
        let padded = self.builder.length().next_multiple_of(GROUP_ALIGNMENT) as u64;
        if self.position.offset > 0 && self.position.offset + padded > self.files.file_bytes() {
            self.roll().await.map_err(|error| match error.kind {
                DiskErrorKind::Full => WriteFailure::NoRoom(error),
                _ => WriteFailure::Disk(error),
            })?;
        }
        let JournalPosition { sequence, file, offset } = self.position;
        let bytes = self.builder.finish(file, offset, sequence);
        let length = bytes.len() as u64;
        if mutant!("S8") && sequence % 2 == 0 {
            self.file.write_at(offset, vec![bytes]).await?;
        } else {
            self.file.write_and_sync(offset, vec![bytes]).await?;
        }
        self.queue().syncs.fetch_add(1, Ordering::Relaxed);
        self.queue().bytes_written.fetch_add(length, Ordering::Relaxed);
        self.position.sequence += 1;
        self.position.offset += length;
        if self.position.offset > self.files.file_bytes() {
            self.files.outgrown(file, self.position.offset);
        }
        Ok(())
    }

    /// Goes on in a new file. Nothing of the old one is unsynced.
    async fn roll(&mut self) -> Result<(), DiskError> {
        let id = self.position.file + 1;
        let ready = match self.next.take() {
            Some(next) => next.await.ok(),
            None => None,
        };
        self.file = match ready {
            Some(ready) => ready?,
            None => self.files.begin(id).await?,
        };
        self.position.file = id;
        self.position.offset = 0;
        self.make_next_ready();
        Ok(())
    }

    /// Renaming, syncing the folder and opening take milliseconds: done beside the writing. A file that is
    /// ready and never used holds no groups, and its id is not used again.
    fn make_next_ready(&mut self) {
        let (sender, next) = oneshot::channel();
        let (files, id) = (self.files.clone(), self.position.file + 1);
        self.next = Some(next);
        self.shared.runtime.tasks.spawn("bookie-journal-next", async move {
            // The writer may have ended meanwhile.
            let _ = sender.send(files.begin(id).await);
        });
    }

    /// The group is durable: makes its entries readable, moves the synced position, answers. In that order:
    /// whoever reads the position finds everything before it in the cache.
    fn complete(&self, group: &mut Vec<JournalItem>) {
        let shared = &self.shared;
        let (mut entries_added, mut bytes_added) = (0, 0);
        let mut cache = shared.cache.lock();
        for item in group.iter() {
            match item {
                JournalItem::Add(item) => {
                    let mut last_add_confirmed = EntryId::NONE;
                    let mut last_entry = EntryId::NONE;
                    for entry in &item.batch.entries {
                        last_add_confirmed = last_add_confirmed.max(entry.last_add_confirmed);
                        last_entry = last_entry.max(entry.entry);
                        bytes_added += entry.payload.len() as u64;
                    }
                    entries_added += item.batch.entries.len() as u64;
                    cache.insert(item.batch.ledger, &item.batch.entries);
                    let mut facts = item.ledger.facts();
                    facts.last_add_confirmed = facts.last_add_confirmed.max(last_add_confirmed);
                    facts.last_entry = facts.last_entry.max(last_entry);
                }
                JournalItem::Ledger(item) if item.kind == RecordKind::Fence => {
                    item.ledger.facts().fence = FenceState::Durable;
                }
                _ => {}
            }
        }
        let wake_keeper = cache.set_synced(self.number, self.position);
        drop(cache);
        if wake_keeper {
            shared.cache.flush_wanted.notify_one();
        }
        shared.counters.entries_added.fetch_add(entries_added, Ordering::Relaxed);
        shared.counters.bytes_added.fetch_add(bytes_added, Ordering::Relaxed);
        for item in group.drain(..) {
            match item {
                JournalItem::Add(item) => {
                    self.queue().left(item.bytes);
                    item.answer(shared.id, Ok(()));
                }
                JournalItem::Ledger(item) => {
                    // Whoever asked may have gone away.
                    let _ = item.done.send(Ok(()));
                }
                JournalItem::Stop(_) => {}
            }
        }
    }

    /// There is no room for another journal file. Nothing was written, so nothing is in doubt; what is in the
    /// group can be tried again once a checkpoint has let files go.
    fn refuse_for_space(&self, error: &DiskError, group: &mut Vec<JournalItem>) {
        reached!("bookie: no room for another journal file");
        tracing::warn!(%error, "no room for another journal file");
        for item in group.drain(..) {
            match item {
                JournalItem::Add(item) => {
                    // Its bind record may have been in this group.
                    item.ledger.facts().bind_logged = false;
                    self.queue().left(item.bytes);
                    item.answer(self.shared.id, Err(AddError::ReadOnly));
                }
                JournalItem::Ledger(item) => {
                    item.ledger.facts().bind_logged = false;
                    let _ = item.done.send(Err(error.to_string()));
                }
                JournalItem::Stop(_) => {}
            }
        }
        self.shared.cache.flush_wanted.notify_one();
    }

    fn poison(&self, reason: String, group: &mut Vec<JournalItem>) {
        reached!("bookie: journal poisoned");
        tracing::error!(reason, "the journal is poisoned");
        self.shared.poison.set(reason.clone());
        self.refuse_all(&reason, group);
    }

    fn refuse_all(&self, reason: &str, group: &mut Vec<JournalItem>) {
        for item in group.drain(..) {
            self.refuse(item, reason.to_owned());
        }
    }

    fn refuse(&self, item: JournalItem, reason: String) {
        match item {
            JournalItem::Add(item) => {
                self.queue().left(item.bytes);
                item.answer(self.shared.id, Err(AddError::Poisoned(reason)));
            }
            JournalItem::Ledger(item) => {
                let _ = item.done.send(Err(format!("the journal is poisoned: {reason}")));
            }
            JournalItem::Stop(_) => {}
        }
    }
}
