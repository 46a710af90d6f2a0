//! Words for ledgers: who writes, recovers, reads and closes them. Entry `e` of writer `w` has the bytes `w:e`, so that a
//! reader sees whether it got the right one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::EntryId;
use seawall::ledger::{
    ClosedLedger, LedgerClient, LedgerRecord, RecoveryError, WriterEnd, WriterEvents,
};
use seawall::runtime::Task;
use seawall::runtime::sim::SimNode;

use super::actors::Writing;
use super::places::Who;
use super::play::{PATIENCE, demand};
use super::{Outcome, Play, Story};
use crate::support::ledgers::Watched;

/// How a writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Someone else fenced its ledger.
    Fenced,
    /// An entry was not complete in time.
    TimedOut,
}

impl Ending {
    fn is(self, end: &WriterEnd) -> bool {
        match self {
            Self::Fenced => matches!(end, WriterEnd::Fenced),
            Self::TimedOut => matches!(end, WriterEnd::TimedOut(_)),
        }
    }
}

/// How many entries there are up to this one.
fn count(last: EntryId) -> u64 {
    u64::try_from(last.0 + 1).unwrap_or(0)
}

impl Story {
    /// `writer` creates a ledger on the cluster's quorum and is ready to write.
    pub fn writer(self, writer: &'static str) -> Self {
        self.step(format!("{writer} creates a ledger"), async move |play| {
            let quorum = play.stage.plan.shape.quorum;
            let ledgers = play.actor(writer).ledgers.clone();
            let until = play.stage.world.now() + PATIENCE;
            let (created, watched) = loop {
                let watched = Arc::new(Watched::default());
                let events: Arc<dyn WriterEvents> = Arc::<Watched>::clone(&watched);
                let client = ledgers.clone();
                let creating = async move { client.create(quorum, "scenario", events).await };
                match play.at(writer, creating).await? {
                    Ok(created) => break (created, watched),
                    Err(error) if play.stage.world.now() > until => return Err(error.to_string()),
                    Err(_) => play.stage.pass(Duration::from_millis(100)).await,
                }
            };
            play.look_around();
            let ledger = created.ledger();
            let record = play.record_of(ledger, ledgers).await?;
            let names = &play.bookie_names;
            let ensemble = record.fragments[0].ensemble.iter().map(|id| names[id].clone());
            let ensemble = ensemble.collect();
            let writing = Writing {
                ledger,
                writer: Some(Arc::new(created)),
                watched,
                sent: 0,
                ensemble,
                end: None,
            };
            play.writings.insert(writer.to_owned(), writing);
            Ok(())
        })
    }

    /// `who` is there, on a machine of their own; whoever has something to do in a story is there from then on anyway.
    pub fn with(self, who: &'static str) -> Self {
        self.step(format!("{who} is there"), async move |play| {
            play.actor(who);
            Ok(())
        })
    }

    /// `writer` hands over so many entries and waits for nothing. That none are taken any more is no failure.
    pub fn sends(self, writer: &'static str, entries: u64) -> Self {
        self.step(format!("{writer} sends {entries}"), async move |play| play.send(writer, entries))
    }

    /// `writer` hands over so many entries and waits until all it ever sent is confirmed.
    pub fn writes(self, writer: &'static str, entries: u64) -> Self {
        self.step(format!("{writer} writes {entries}"), async move |play| {
            play.send(writer, entries)?;
            let all = play.writing(writer)?.sent;
            play.confirmed(writer, all).await
        })
    }

    /// Waits until `writer` was told that so many entries, in all, are confirmed, and no more.
    pub fn has_confirmed(self, writer: &'static str, entries: u64) -> Self {
        self.step(format!("{writer} has {entries} confirmed"), async move |play| {
            play.confirmed(writer, entries).await
        })
    }

    /// For so many seconds `writer` is told nothing more than that so many entries, in all, are confirmed.
    pub fn has_no_more_than(self, writer: &'static str, entries: u64, seconds: u64) -> Self {
        let told = format!("{writer} has no more than {entries} confirmed for {seconds} s");
        self.step(told, async move |play| {
            play.hold(Duration::from_secs(seconds), async |play| {
                let confirmed = count(play.writing(writer)?.watched.confirmed());
                demand(confirmed <= entries, || format!("{confirmed} are confirmed"))
            })
            .await
        })
    }

    /// Waits until `writer` has ended in this way.
    pub fn ends(self, writer: &'static str, ending: Ending) -> Self {
        self.step(format!("{writer} ends: {ending:?}"), async move |play| {
            play.wait(PATIENCE, async |play| match play.writing(writer)?.watched.ended() {
                Some(end) => demand(ending.is(&end), || format!("it ended: {end}")),
                None => Err("it goes on".to_owned()),
            })
            .await
        })
    }

    /// `writer` closes its ledger, at so many entries.
    pub fn closes(self, writer: &'static str, entries: u64) -> Self {
        self.starts_to_close(writer).finishes_close(writer, Some(entries))
    }

    /// `writer` begins to close its ledger.
    pub fn starts_to_close(self, writer: &'static str) -> Self {
        self.step(format!("{writer} begins to close its ledger"), async move |play| {
            let handle = play.writing(writer)?.writer.clone().ok_or("it is gone")?;
            let actor = play.actor(writer);
            let closing = actor.machine.spawn("close", async move { handle.close().await });
            actor.closing = Some(closing);
            Ok(())
        })
    }

    /// The close that `writer` began ends, at so many entries; `None`: it is told that someone else fixed the end.
    pub fn finishes_close(self, writer: &'static str, entries: Option<u64>) -> Self {
        let how = entries.map_or("is refused".to_owned(), |entries| format!("ends at {entries}"));
        self.step(format!("{writer}'s close {how}"), async move |play| {
            let closing = play.actor(writer).closing.take().ok_or("it does not close")?;
            match (play.join(closing).await?, entries) {
                (Ok(closed), Some(entries)) => {
                    demand(count(closed.last_entry) == entries, || format!("{closed:?}"))?;
                    play.found(writer, closed)
                }
                (Err(_), None) => Ok(()),
                (other, _) => Err(format!("{other:?}")),
            }
        })
    }

    /// `who` recovers `writer`'s ledger, and finds its end at so many entries.
    pub fn recovers(self, who: &'static str, writer: &'static str, entries: u64) -> Self {
        self.step(format!("{who} recovers {writer}'s ledger at {entries}"), async move |play| {
            play.begin_recovery(who, writer)?;
            let closed = play.end_recovery(who).await?.map_err(|error| error.to_string())?;
            demand(count(closed.last_entry) == entries, || format!("{closed:?}"))?;
            play.found(writer, closed)
        })
    }

    /// `who` recovers `writer`'s ledger, and finds its end at one of these numbers of entries: some were confirmed by
    /// nobody, and may be there or not.
    pub fn recovers_within(
        self,
        who: &'static str,
        writer: &'static str,
        entries: std::ops::RangeInclusive<u64>,
    ) -> Self {
        let told = format!("{who} recovers {writer}'s ledger within {entries:?}");
        self.step(told, async move |play| {
            play.begin_recovery(who, writer)?;
            let closed = play.end_recovery(who).await?.map_err(|error| error.to_string())?;
            demand(entries.contains(&count(closed.last_entry)), || format!("{closed:?}"))?;
            play.found(writer, closed)
        })
    }

    /// `who` tries to recover `writer`'s ledger and says that it cannot be decided.
    pub fn cannot_recover(self, who: &'static str, writer: &'static str) -> Self {
        self.step(format!("{who} cannot recover {writer}'s ledger"), async move |play| {
            play.begin_recovery(who, writer)?;
            match play.end_recovery(who).await? {
                Err(RecoveryError::Undecidable { .. } | RecoveryError::WriteBack { .. }) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
    }

    /// `who` begins to recover `writer`'s ledger.
    pub fn starts_recovery(self, who: &'static str, writer: &'static str) -> Self {
        self.step(format!("{who} begins to recover {writer}'s ledger"), async move |play| {
            play.begin_recovery(who, writer)
        })
    }

    /// The recovery that `who` began ends at so many entries.
    pub fn finishes_recovery(
        self,
        who: &'static str,
        writer: &'static str,
        entries: std::ops::RangeInclusive<u64>,
    ) -> Self {
        self.step(format!("{who}'s recovery ends within {entries:?}"), async move |play| {
            let closed = play.end_recovery(who).await?.map_err(|error| error.to_string())?;
            demand(entries.contains(&count(closed.last_entry)), || format!("{closed:?}"))?;
            play.found(writer, closed)
        })
    }

    /// `reader` opens `writer`'s ledger without recovering it, and in the end can read so many entries; never more.
    pub fn sees(self, reader: &'static str, writer: &'static str, entries: u64) -> Self {
        self.step(format!("{reader} sees {entries} of {writer}'s"), async move |play| {
            let ledger = play.writing(writer)?.ledger;
            play.wait(PATIENCE, async |play| {
                let ledgers = play.actor(reader).ledgers.clone();
                let name = writer.to_owned();
                let reading = async move { read_all(&ledgers, ledger, &name, entries).await };
                play.at(reader, reading).await?
            })
            .await
        })
    }

    /// `reader` begins to wait until there is more to read of `writer`'s ledger than now, at most so long.
    pub fn waits_for_more(self, reader: &'static str, writer: &'static str, seconds: u64) -> Self {
        self.step(format!("{reader} waits for more of {writer}'s"), async move |play| {
            let ledger = play.writing(writer)?.ledger;
            let ledgers = play.actor(reader).ledgers.clone();
            let waiting = play.actor(reader).machine.spawn("wait for more", async move {
                let Ok(reader) = ledgers.open(ledger).await else { return };
                let Ok(known) = reader.last_add_confirmed().await else { return };
                let pause = Duration::from_secs(1);
                reader.wait_beyond(known, Duration::from_secs(seconds), pause).await;
            });
            play.actor(reader).waiting = Some(waiting);
            Ok(())
        })
    }

    /// The wait of `reader` ends within so many seconds.
    pub fn stops_waiting(self, reader: &'static str, seconds: u64) -> Self {
        self.step(format!("{reader} waits no longer than {seconds} s more"), async move |play| {
            let waiting = play.actor(reader).waiting.take().ok_or("it does not wait")?;
            let began = play.stage.world.now();
            play.join(waiting).await?;
            let took = play.stage.world.now() - began;
            demand(took <= Duration::from_secs(seconds), || format!("it took {took:?}"))
        })
    }

    /// From now on so many changes of metadata that `who` makes pass, and those after them wait.
    pub fn holds_changes(self, who: &'static str, after: usize) -> Self {
        let told = format!("{after} more changes of {who}'s pass, the next one waits");
        self.step(told, async move |play| {
            play.actor(who).gate.hold_after(after);
            Ok(())
        })
    }

    /// Waits until a change of metadata that `who` makes is held.
    pub fn until_held(self, who: &'static str) -> Self {
        self.step(format!("a change of {who}'s waits"), async move |play| {
            play.wait(PATIENCE, async |play| {
                demand(play.actor(who).gate.waiting() > 0, || "no change waits".to_owned())
            })
            .await
        })
    }

    /// Changes of `who`'s that were held go on, and so do all after them.
    pub fn lets_changes(self, who: &'static str) -> Self {
        self.step(format!("{who}'s changes go on"), async move |play| {
            play.actor(who).gate.open();
            Ok(())
        })
    }

    /// Waits until the record of `writer`'s ledger has so many fragments.
    pub fn fragments(self, writer: &'static str, fragments: usize) -> Self {
        self.step(format!("{writer}'s ledger has {fragments} fragments"), async move |play| {
            play.wait(PATIENCE, async |play| {
                let record = play.record(writer).await?;
                let found = record.fragments.len();
                demand(found == fragments, || format!("it has {found}"))
            })
            .await
        })
    }

    /// Waits until the record of `writer`'s ledger does not name the bookies that these machines had at first.
    pub fn no_longer_names(self, writer: &'static str, who: impl Into<Who>) -> Self {
        let who = who.into();
        self.step(format!("{writer}'s ledger does not name {who}"), async move |play| {
            play.wait(PATIENCE, async |play| play.names_none(writer, &who).await).await
        })
    }

    /// For so many seconds it does not name them.
    pub fn never_names(self, writer: &'static str, who: impl Into<Who>, seconds: u64) -> Self {
        let who = who.into();
        let told = format!("{writer}'s ledger does not name {who} for {seconds} s");
        self.step(told, async move |play| {
            let so_long = Duration::from_secs(seconds);
            play.hold(so_long, async |play| play.names_none(writer, &who).await).await
        })
    }
}

/// Reads all that may be read and holds it against what was written.
pub(super) async fn read_all(
    ledgers: &LedgerClient,
    ledger: seawall::domain::LedgerId,
    writer: &str,
    entries: u64,
) -> Outcome {
    let reader = ledgers.open(ledger).await.map_err(|error| error.to_string())?;
    let last = reader.last_add_confirmed().await.map_err(|error| error.to_string())?;
    let mut next = EntryId::FIRST;
    while next <= last {
        let read = reader.read(next, 100, 1 << 20, EntryId::NONE).await;
        for entry in read.map_err(|error| error.to_string())? {
            let wanted = format!("{writer}:{}", next.0);
            if entry.entry != next || entry.payload != wanted.as_bytes() {
                panic!("{} was read as {:?} {:?}", wanted, entry.entry, entry.payload);
            }
            next = next.next();
        }
    }
    let seen = count(last);
    if seen > entries {
        panic!("{seen} can be read, {entries} are expected");
    }
    demand(seen == entries, || format!("{seen} can be read"))
}

impl Play {
    fn send(&mut self, writer: &str, entries: u64) -> Outcome {
        let writing = self.writing_mut(writer)?;
        let handle = writing.writer.as_ref().ok_or("it is gone")?;
        let first = writing.sent;
        let payloads = (first..first + entries).map(|n| Bytes::from(format!("{writer}:{n}")));
        if handle.append(payloads.collect()).is_ok() {
            writing.sent += entries;
        }
        Ok(())
    }

    async fn confirmed(&mut self, writer: &str, entries: u64) -> Outcome {
        self.wait(PATIENCE, async |play| {
            let watched = &play.writing(writer)?.watched;
            let confirmed = count(watched.confirmed());
            if confirmed > entries {
                panic!("{confirmed} are confirmed");
            }
            demand(confirmed == entries, || match watched.ended() {
                Some(end) => format!("{confirmed} are confirmed and it ended: {end}"),
                None => format!("{confirmed} are confirmed"),
            })
        })
        .await
    }

    pub(super) fn begin_recovery(&mut self, who: &str, writer: &str) -> Outcome {
        let ledger = self.writing(writer)?.ledger;
        let actor = self.actor(who);
        let ledgers = actor.ledgers.clone();
        let recovering =
            actor.machine.spawn("recover", async move { ledgers.recover(ledger).await });
        actor.recovering = Some(recovering);
        Ok(())
    }

    pub(super) async fn end_recovery(
        &mut self,
        who: &str,
    ) -> Result<Result<ClosedLedger, RecoveryError>, String> {
        let recovering = self.actor(who).recovering.take().ok_or("it does not recover")?;
        self.join(recovering).await
    }

    /// Someone found the ledger's end: it is not before what was confirmed, and never another one, and the length is that
    /// of its entries.
    pub(super) fn found(&mut self, writer: &str, closed: ClosedLedger) -> Outcome {
        let writing = self.writing_mut(writer)?;
        let confirmed = writing.watched.confirmed();
        demand(closed.last_entry >= confirmed, || {
            format!("closed at {}, {confirmed} was confirmed", closed.last_entry)
        })?;
        let bytes = |entry: u64| format!("{writer}:{entry}").len() as u64;
        let length: u64 = (0..count(closed.last_entry)).map(bytes).sum();
        demand(closed.length == length, || {
            format!("closed with {} bytes, its entries have {length}", closed.length)
        })?;
        let before = *writing.end.get_or_insert(closed);
        demand(before == closed, || format!("first closed as {before:?}, then as {closed:?}"))
    }

    async fn record_of(
        &mut self,
        ledger: seawall::domain::LedgerId,
        ledgers: LedgerClient,
    ) -> Result<LedgerRecord, String> {
        let found = self.stage.client(async move { ledgers.record(ledger).await }).await;
        found.map_err(|error| error.to_string())?.ok_or_else(|| "it has no record".to_owned())
    }

    /// The record of a writer's ledger, as someone who is never held up reads it.
    pub(super) async fn record(&mut self, writer: &str) -> Result<LedgerRecord, String> {
        let ledger = self.writing(writer)?.ledger;
        let ledgers = self.actor("judge").ledgers.clone();
        self.record_of(ledger, ledgers).await
    }

    async fn names_none(&mut self, writer: &str, who: &Who) -> Outcome {
        let names = self.names(who)?;
        let record = self.record(writer).await?;
        let named = record.fragments.iter().flat_map(|fragment| &fragment.ensemble);
        let named = named.filter_map(|id| self.bookie_names.get(id));
        let found: Vec<&String> = named.filter(|name| names.contains(name)).collect();
        demand(found.is_empty(), || format!("it names {found:?}"))
    }

    /// Runs work on someone's machine while the cluster is looked after.
    pub(super) async fn at<T: Send + 'static>(
        &mut self,
        who: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let machine: SimNode = self.actor(who).machine.clone();
        self.join(machine.spawn("scenario", work)).await
    }

    /// Waits for work on some machine while the cluster is looked after.
    pub(super) async fn join<T: Send + 'static>(&mut self, mut task: Task<T>) -> Result<T, String> {
        let world = self.stage.world.clone();
        let work = async {
            tokio::select! {
                biased;
                output = &mut task => output.map_err(|_| "its machine died".to_owned()),
                () = world.sleep(PATIENCE) => Err(format!("it hangs for {PATIENCE:?}")),
            }
        };
        self.supervised(work).await
    }
}
