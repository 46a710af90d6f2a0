//! A bookie's files: what it does in three lives, and what has to be there after each power loss.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::SubjectName;
use super::explore::{Started, Subject};
use super::record::Record;
use crate::bookie::{Bookie, BookieConfig, LedgerDirectory, LedgerPresence};
use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId, LedgerId,
    ReadError, ReadRequest,
};
use crate::runtime::sim::{SimNode, World};
use crate::runtime::{CreateMode, OpenMode, Runtime};

const CREATOR: CreatorToken = CreatorToken(5);

/// Stored in only by whoever looks whether a started bookie takes entries.
const PROBE: u64 = 1000;

/// Something asked of the bookie, or promised by it.
pub(super) enum Fact {
    /// The operator has added a folder.
    Grown,
    /// A start is over; it is this bookie.
    Started(BookieId),
    /// An entry was sent to be stored.
    Sent(Entry),
    /// Entries are stored.
    Added(LedgerId, Vec<EntryId>),
    /// A fence was asked for.
    FenceAsked(LedgerId),
    /// The ledger is fenced.
    Fenced(LedgerId),
    /// Metadata says that the ledger is gone.
    Gone(LedgerId),
    /// Its tombstone is stored.
    Buried(LedgerId),
}

/// The folder that an operator adds.
const MORE: &str = "/data/more";

/// Small files, so that everything rolls; nothing that happens by itself but witnesses.
fn config(subject: BookieSubject, is_grown: bool) -> BookieConfig {
    let more = is_grown.then(|| PathBuf::from(MORE));
    let (journals, ledgers) = match subject {
        BookieSubject::OneJournal => (Vec::new(), more.into_iter().collect()),
        BookieSubject::Journals => {
            let second = PathBuf::from("/data/journal-2");
            (std::iter::once(second).chain(more).collect(), Vec::new())
        }
    };
    BookieConfig {
        more_journal_directories: journals,
        more_ledger_directories: ledgers,
        journal_file_bytes: 24 * 1024,
        journal_group_bytes: 8 * 1024,
        journal_witness_delay: Duration::from_millis(40),
        write_cache_bytes: 32 * 1024,
        read_cache_bytes: 0,
        checkpoint_interval: Duration::from_secs(1000),
        entry_log_bytes: 6 * 1024,
        free_space_low_bytes: 0,
        garbage_interval: Duration::from_secs(1000),
        scrub_bytes_per_second: 0,
        ..BookieConfig::below(Path::new("/data"))
    }
}

/// Metadata's list: all but these exist.
#[derive(Default)]
struct AllBut(BTreeSet<LedgerId>);

#[async_trait]
impl LedgerDirectory for AllBut {
    async fn presence(&self, ledger: LedgerId, _bookie: BookieId) -> LedgerPresence {
        if self.0.contains(&ledger) { LedgerPresence::Gone } else { LedgerPresence::Exists }
    }
}

/// Writes down an answer in the moment in which it is given.
struct Answer {
    done: Mutex<Option<oneshot::Sender<Result<(), AddError>>>>,
    record: Option<(Record<Fact>, SimNode)>,
}

impl AddSink for Answer {
    fn answered(&self, answer: AddAnswer) {
        if let (Some((record, node)), Ok(())) = (&self.record, &answer.result) {
            record.promised(node, Fact::Added(answer.ledger, answer.entries));
        }
        let mut done = self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(done) = done.take() {
            // Who asked may have gone.
            let _ = done.send(answer.result);
        }
    }
}

fn entry_of(ledger: u64, entry: i64, bytes: usize) -> Entry {
    let mut payload = format!("entry {entry} of {ledger};").into_bytes();
    while payload.len() < bytes {
        payload.push((payload.len() as u64 * 31 + entry as u64 * 7) as u8);
    }
    let length = entry as u64 * 1000;
    Entry::seal(LedgerId(ledger), EntryId(entry), EntryId(entry - 1), length, payload.into())
}

fn add(
    bookie: &Bookie,
    ledger: u64,
    entries: Vec<Entry>,
    record: Option<(Record<Fact>, SimNode)>,
) -> oneshot::Receiver<Result<(), AddError>> {
    let (done, answer) = oneshot::channel();
    let batch = AddBatch { ledger: LedgerId(ledger), creator: CREATOR, recovery: false, entries };
    bookie.add(batch, Arc::new(Answer { done: Mutex::new(Some(done)), record }));
    answer
}

fn all_from(ledger: LedgerId, entry: i64) -> ReadRequest {
    ReadRequest {
        ledger,
        creator: CREATOR,
        first: EntryId(entry),
        entries_max: 50,
        bytes_max: 20_000,
        fence: false,
    }
}

/// A life of the bookie that is written down.
struct Life {
    bookie: Bookie,
    node: SimNode,
    record: Record<Fact>,
    next: BTreeMap<u64, i64>,
}

type Work = Result<(), String>;

impl Life {
    async fn begin(
        (node, runtime): (&SimNode, &Runtime),
        record: &Record<Fact>,
        next: BTreeMap<u64, i64>,
        config: BookieConfig,
    ) -> Result<Self, String> {
        let directory = Arc::new(AllBut::default());
        let started = Bookie::start(runtime.clone(), config, directory).await;
        let bookie = started.map_err(|error| error.to_string())?;
        record.promised(node, Fact::Started(bookie.id()));
        let (node, record) = (node.clone(), record.clone());
        let life = Self { bookie, node, record, next };
        life.bookie.checkpoint().await?;
        Ok(life)
    }

    /// Sends batches one right after the other, then waits for all.
    async fn add(&mut self, batches: &[(u64, i64, usize)]) -> Work {
        let mut answers = Vec::new();
        for (ledger, count, bytes) in batches {
            let next = self.next.entry(*ledger).or_default();
            let entries: Vec<Entry> =
                (*next..*next + count).map(|entry| entry_of(*ledger, entry, *bytes)).collect();
            *next += count;
            entries.iter().for_each(|entry| self.record.asked(Fact::Sent(entry.clone())));
            let record = Some((self.record.clone(), self.node.clone()));
            answers.push(add(&self.bookie, *ledger, entries, record));
        }
        for answer in answers {
            let answered = answer.await.map_err(|error| error.to_string())?;
            answered.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A checkpoint, and meanwhile entries of each of these ledgers, again and again.
    async fn checkpoint_under(&mut self, ledgers: &[u64]) -> Work {
        let bookie = self.bookie.clone();
        let adding = async {
            for _ in 0..6 {
                for ledger in ledgers {
                    self.add(&[(*ledger, 1, 100)]).await?;
                }
            }
            Ok(())
        };
        let (completed, added) = futures_util::join!(bookie.checkpoint(), adding);
        completed.and(added)
    }

    async fn fence(&self, ledger: u64) -> Work {
        let ledger = LedgerId(ledger);
        self.record.asked(Fact::FenceAsked(ledger));
        let fenced = self.bookie.last_add_confirmed(ledger, CREATOR, true).await;
        fenced.map_err(|error| error.to_string())?;
        self.record.promised(&self.node, Fact::Fenced(ledger));
        Ok(())
    }

    /// As recovery does, which asks for the entry behind the last.
    async fn fence_by_read(&self, ledger: u64) -> Work {
        let ledger = LedgerId(ledger);
        self.record.asked(Fact::FenceAsked(ledger));
        let answer = self.bookie.read(ReadRequest { fence: true, ..all_from(ledger, 100) }).await;
        if answer != Err(ReadError::Absent) {
            return Err(format!("{answer:?}"));
        }
        self.record.promised(&self.node, Fact::Fenced(ledger));
        Ok(())
    }

    async fn bury(&self, ledger: u64) {
        let ledger = LedgerId(ledger);
        self.record.asked(Fact::Gone(ledger));
        self.bookie.collect_garbage(&AllBut([ledger].into())).await;
        self.record.promised(&self.node, Fact::Buried(ledger));
    }
}

/// From the first start on empty folders to a stop, with a killed process and one more folder between.
async fn lives(subject: BookieSubject, node: SimNode, record: Record<Fact>) -> Work {
    let runtime = node.runtime();
    let begun = config(subject, false);
    let mut life = Life::begin((&node, &runtime), &record, BTreeMap::new(), begun).await?;
    life.add(&[(1, 3, 700)]).await?;
    life.add(&[(2, 1, 40), (1, 2, 900)]).await?;
    runtime.clock.sleep(Duration::from_millis(60)).await;
    life.bookie.checkpoint().await?;
    life.add(&[(2, 2, 1500), (3, 4, 1100)]).await?;
    life.fence(2).await?;
    life.bookie.checkpoint().await?;
    life.fence_by_read(4).await?;
    life.bookie.checkpoint().await?;
    for _ in 0..4 {
        life.add(&[(3, 4, 1400)]).await?;
    }
    life.bookie.checkpoint().await?;
    life.bury(1).await;
    life.add(&[(3, 1, 10), (5, 3, 600)]).await?;
    for _ in 0..3 {
        life.add(&[(5, 5, 1300)]).await?;
    }
    life.bury(3).await;
    life.add(&[(6, 2, 300)]).await?;
    // The process is killed: what it has not synced stays in the page cache for the next start.
    let next = life.next.clone();
    drop(life);
    node.crash();
    let runtime = node.runtime();
    let mut life = Life::begin((&node, &runtime), &record, next, config(subject, false)).await?;
    life.add(&[(6, 2, 2000), (5, 1, 5)]).await?;
    life.bookie.stop().await;
    let next = life.next.clone();
    drop(life);
    node.crash();
    let runtime = node.runtime();
    grow(&runtime).await.map_err(|error| error.to_string())?;
    record.asked(Fact::Grown);
    let mut life = Life::begin((&node, &runtime), &record, next, config(subject, true)).await?;
    life.add(&[(7, 2, 1000), (8, 2, 1000), (9, 2, 1000), (10, 2, 1000)]).await?;
    life.checkpoint_under(&[7, 8, 9, 10]).await?;
    life.fence_by_read(8).await?;
    life.add(&[(9, 1, 100)]).await?;
    life.bookie.stop().await;
    Ok(())
}

/// What an operator does who adds a folder.
async fn grow(runtime: &Runtime) -> crate::runtime::DiskResult<()> {
    let more = Path::new(MORE);
    runtime.disk.create_directory(more).await?;
    let adopt = more.join("adopt");
    runtime.disk.open(&adopt, CreateMode::CreateIfMissing, OpenMode::Shared).await?;
    runtime.disk.sync_directory(more).await?;
    runtime.disk.sync_directory(Path::new("/data")).await
}

/// What the facts say of one ledger.
#[derive(Default)]
struct Ledger {
    sent: BTreeMap<EntryId, Entry>,
    added: BTreeSet<EntryId>,
    fence_asked: bool,
    fenced: bool,
    is_gone: bool,
    is_buried: bool,
}

/// What has to be there.
#[derive(Default)]
struct Expected {
    is_grown: bool,
    id: Option<BookieId>,
    ledgers: BTreeMap<LedgerId, Ledger>,
}

impl Expected {
    fn of(facts: &[Fact]) -> Self {
        let mut all = Self::default();
        for fact in facts {
            match fact {
                Fact::Grown => all.is_grown = true,
                Fact::Started(id) => all.id = Some(*id),
                Fact::Sent(entry) => {
                    all.ledger(entry.ledger).sent.insert(entry.entry, entry.clone());
                }
                Fact::Added(id, entries) => all.ledger(*id).added.extend(entries),
                Fact::FenceAsked(id) => all.ledger(*id).fence_asked = true,
                Fact::Fenced(id) => all.ledger(*id).fenced = true,
                Fact::Gone(id) => all.ledger(*id).is_gone = true,
                Fact::Buried(id) => all.ledger(*id).is_buried = true,
            }
        }
        all
    }

    fn ledger(&mut self, id: LedgerId) -> &mut Ledger {
        self.ledgers.entry(id).or_default()
    }

    async fn hold(&self, bookie: &Bookie) -> Result<u64, String> {
        let mut compared = 1;
        if let Some(id) = self.id
            && (bookie.id() != id || bookie.is_fresh())
        {
            return Err(format!("bookie {id} came back as {}", bookie.id()));
        }
        for (id, ledger) in &self.ledgers {
            compared += ledger.hold(*id, bookie).await?;
        }
        Ok(compared)
    }
}

impl Ledger {
    async fn hold(&self, id: LedgerId, bookie: &Bookie) -> Result<u64, String> {
        let last = self.sent.keys().last().map_or(0, |last| last.0);
        let mut entry = 0;
        while entry <= last + 1 {
            match bookie.read(all_from(id, entry)).await {
                Ok(_) if self.is_buried => {
                    return Err(format!("ledger {id} was buried and is read"));
                }
                Ok(run) => {
                    for found in run {
                        if self.sent.get(&EntryId(entry)) != Some(&found) {
                            return Err(format!("entry {id}:{entry} was never sent like that"));
                        }
                        entry += 1;
                    }
                }
                Err(ReadError::Absent) => {
                    if self.added.contains(&EntryId(entry)) && !self.is_gone {
                        return Err(format!("entry {id}:{entry} was stored and is absent"));
                    }
                    entry += 1;
                }
                Err(_) if self.is_gone => break,
                Err(error) => return Err(format!("entry {id}:{entry}: {error}")),
            }
        }
        if !self.is_gone {
            self.hold_end(id, bookie).await?;
        }
        Ok(self.sent.len() as u64 + 2)
    }

    async fn hold_end(&self, id: LedgerId, bookie: &Bookie) -> Result<(), String> {
        let told = bookie.last_add_confirmed(id, CREATOR, false).await;
        let told = told.map_err(|error| format!("the end of ledger {id}: {error}"))?;
        if self.fenced && !told.fenced {
            return Err(format!("ledger {id} was fenced and is not"));
        }
        if told.fenced && !self.fence_asked {
            return Err(format!("ledger {id} is fenced and nobody asked"));
        }
        let last = self.added.last().copied().unwrap_or(EntryId::NONE);
        if told.last_entry < last {
            return Err(format!(
                "ledger {id} ends at {}, entry {last} was stored",
                told.last_entry
            ));
        }
        if self.fenced {
            let next = self.sent.keys().last().map_or(0, |last| last.0 + 1);
            let answer = add(bookie, id.0, vec![entry_of(id.0, next, 10)], None).await;
            if answer != Ok(Err(AddError::Fenced)) {
                return Err(format!("ledger {id} was fenced, and an add is answered {answer:?}"));
            }
        }
        Ok(())
    }
}

/// A bookie; the folder that an operator adds is for entry logs, or for another journal.
#[derive(Clone, Copy)]
pub(super) enum BookieSubject {
    OneJournal,
    /// Two, and a third one later: each is synced on its own.
    Journals,
}

impl Subject for BookieSubject {
    type Fact = Fact;

    fn name(&self) -> SubjectName {
        match self {
            Self::OneJournal => SubjectName::Bookie,
            Self::Journals => SubjectName::Journals,
        }
    }

    fn work(&self, world: World, record: Record<Fact>) -> BoxFuture<'static, ()> {
        let subject = *self;
        Box::pin(async move {
            let node = world.create_node("bookie", "bookie");
            record.watch(&node, 0);
            let worked = lives(subject, node, record).await;
            assert_eq!(worked, Ok(()), "the work of a bookie");
        })
    }

    fn recover(
        &self,
        runtime: Runtime,
        _place: u64,
        facts: Arc<Vec<Fact>>,
        count: usize,
        started: Started,
    ) -> BoxFuture<'static, Result<u64, String>> {
        let subject = *self;
        Box::pin(async move {
            let expected = Expected::of(&facts[..count]);
            let config = config(subject, expected.is_grown);
            let bookie = Bookie::start(runtime, config, Arc::new(AllBut::default())).await;
            let bookie = bookie.map_err(|error| format!("the start fails: {error}"))?;
            if started.watched {
                // The first checkpoint is a part of coming back.
                bookie.checkpoint().await?;
                started.call();
                return Ok(0);
            }
            let compared = expected.hold(&bookie).await?;
            let probe = add(&bookie, PROBE, vec![entry_of(PROBE, 0, 10)], None).await;
            match probe {
                Ok(Ok(())) => Ok(compared),
                other => Err(format!("a started bookie answers an add with {other:?}")),
            }
        })
    }
}
