//! Bookies in memory, one ledger map each, that fail on demand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::domain::{
    AddAnswer, AddBatch, AddError, AddSink, BookieId, CreatorToken, Entry, EntryId,
    LastAddConfirmed, LedgerId, ReadError, ReadRequest,
};
use crate::ledger::{BookieClient, BookiePool};

/// How a bookie behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Well.
    Up,
    /// Every call fails at once.
    Down,
    /// Takes everything, stores nothing, never answers.
    Silent,
    /// Answers reads, but no adds for good.
    Poisoned,
}

#[derive(Default)]
struct Stored {
    entries: BTreeMap<EntryId, Entry>,
    told: Option<EntryId>,
    fenced: bool,
}

struct State {
    mode: Mode,
    /// Of this ledger ordinary adds are stored, but never answered.
    muted: Option<LedgerId>,
    /// Ordinary adds to this ledger are lost on their way.
    deaf: Option<LedgerId>,
    /// Adds of this entry and later ones are refused for good.
    refused_from: Option<EntryId>,
    /// Ordinary adds that nothing was decided about yet.
    held: Option<Vec<(AddAnswer, Arc<dyn AddSink>)>>,
    ledgers: BTreeMap<LedgerId, Stored>,
}

/// One bookie.
pub(crate) struct FakeBookie {
    id: BookieId,
    state: Mutex<State>,
}

impl FakeBookie {
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.state.lock().unwrap().mode = mode;
    }

    /// From now on stores ordinary adds to this ledger without ever answering them.
    pub(crate) fn mute(&self, ledger: LedgerId) {
        self.state.lock().unwrap().muted = Some(ledger);
    }

    /// From now on hears nothing of ordinary adds to this ledger.
    pub(crate) fn deafen(&self, ledger: LedgerId) {
        self.state.lock().unwrap().deaf = Some(ledger);
    }

    /// From now on takes nothing of this entry and later ones.
    pub(crate) fn refuse_from(&self, first: i64) {
        self.state.lock().unwrap().refused_from = Some(EntryId(first));
    }

    /// From now on holds ordinary adds back.
    pub(crate) fn hold(&self) {
        self.state.lock().unwrap().held = Some(Vec::new());
    }

    /// Answers what is held back: the ledger is fenced. How many batches that were.
    pub(crate) fn fence_held(&self) -> usize {
        let held = self.state.lock().unwrap().held.as_mut().map(std::mem::take).unwrap_or_default();
        for (answer, sink) in &held {
            sink.answered(AddAnswer { result: Err(AddError::Fenced), ..answer.clone() });
        }
        held.len()
    }

    /// How many entries of a ledger are here.
    pub(crate) fn count(&self, ledger: LedgerId) -> usize {
        self.state.lock().unwrap().ledgers.get(&ledger).map_or(0, |stored| stored.entries.len())
    }

    /// Damages a stored copy.
    pub(crate) fn damage(&self, ledger: LedgerId, entry: i64) {
        let mut state = self.state.lock().unwrap();
        let stored = state.ledgers.get_mut(&ledger).unwrap();
        stored.entries.get_mut(&EntryId(entry)).unwrap().digest ^= 1;
    }

    /// Forgets entries from `from` on, as if they had never arrived.
    pub(crate) fn forget_from(&self, ledger: LedgerId, from: i64) {
        let mut state = self.state.lock().unwrap();
        let stored = state.ledgers.get_mut(&ledger).unwrap();
        stored.entries.retain(|id, _| id.0 < from);
    }

    fn store(&self, batch: AddBatch) -> Option<Result<(), AddError>> {
        let mut state = self.state.lock().unwrap();
        match state.mode {
            Mode::Up => {}
            Mode::Down => return Some(Err(AddError::Unreachable("down".to_owned()))),
            Mode::Silent => return None,
            Mode::Poisoned => return Some(Err(AddError::Poisoned("test".to_owned()))),
        }
        let is_refused = |first| batch.entries.iter().any(|entry| entry.entry >= first);
        if state.refused_from.is_some_and(is_refused) {
            return Some(Err(AddError::Poisoned("test".to_owned())));
        }
        if state.deaf == Some(batch.ledger) && !batch.recovery {
            return None;
        }
        let muted = state.muted == Some(batch.ledger) && !batch.recovery;
        let stored = state.ledgers.entry(batch.ledger).or_default();
        if stored.fenced && !batch.recovery {
            return (!muted).then_some(Err(AddError::Fenced));
        }
        for entry in batch.entries {
            entry.verify(batch.ledger, entry.entry).unwrap();
            if let Some(before) = stored.entries.insert(entry.entry, entry.clone())
                && before.verify_digest().is_ok()
            {
                assert_eq!(before, entry, "an entry was overwritten by another");
            }
        }
        (!muted).then_some(Ok(()))
    }

    async fn answering(&self) -> Result<(), ReadError> {
        let mode = self.state.lock().unwrap().mode;
        match mode {
            Mode::Up | Mode::Poisoned => Ok(()),
            Mode::Down => Err(ReadError::Unreachable("down".to_owned())),
            Mode::Silent => std::future::pending().await,
        }
    }
}

#[async_trait]
impl BookieClient for FakeBookie {
    fn add(&self, batch: AddBatch, sink: Arc<dyn AddSink>) {
        let ledger = batch.ledger;
        let entries = batch.entries.iter().map(|entry| entry.entry).collect();
        if let Some(held) = &mut self.state.lock().unwrap().held
            && !batch.recovery
        {
            held.push((AddAnswer { bookie: self.id, ledger, entries, result: Ok(()) }, sink));
            return;
        }
        if let Some(result) = self.store(batch) {
            sink.answered(AddAnswer { bookie: self.id, ledger, entries, result });
        }
    }

    async fn read(&self, request: ReadRequest) -> Result<Vec<Entry>, ReadError> {
        self.answering().await?;
        let mut state = self.state.lock().unwrap();
        let stored = state.ledgers.entry(request.ledger).or_default();
        stored.fenced |= request.fence;
        let mut run = Vec::new();
        let mut next = request.first;
        while let Some(entry) = stored.entries.get(&next)
            && run.len() < request.entries_max as usize
        {
            run.push(entry.clone());
            next = next.next();
        }
        if run.is_empty() { Err(ReadError::Absent) } else { Ok(run) }
    }

    async fn last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        fence: bool,
    ) -> Result<LastAddConfirmed, ReadError> {
        self.answering().await?;
        let mut state = self.state.lock().unwrap();
        let stored = state.ledgers.entry(ledger).or_default();
        stored.fenced |= fence;
        let carried = stored.entries.values().map(|entry| entry.last_add_confirmed).max();
        Ok(LastAddConfirmed {
            last_add_confirmed: carried.max(stored.told).unwrap_or(EntryId::NONE),
            last_entry: stored.entries.keys().last().copied().unwrap_or(EntryId::NONE),
            fenced: stored.fenced,
        })
    }

    async fn tell_last_add_confirmed(
        &self,
        ledger: LedgerId,
        _creator: CreatorToken,
        last_add_confirmed: EntryId,
    ) -> Result<(), ReadError> {
        self.answering().await?;
        let mut state = self.state.lock().unwrap();
        let stored = state.ledgers.entry(ledger).or_default();
        stored.told = stored.told.max(Some(last_add_confirmed));
        Ok(())
    }
}

/// All bookies, with ids from 1.
pub(crate) struct FakeBookies(Vec<Arc<FakeBookie>>);

impl FakeBookies {
    /// This many, all up.
    pub(crate) fn new(count: u64) -> Self {
        let bookie = |id| FakeBookie {
            id: BookieId(id),
            state: Mutex::new(State {
                mode: Mode::Up,
                muted: None,
                deaf: None,
                refused_from: None,
                held: None,
                ledgers: BTreeMap::new(),
            }),
        };
        Self((1..=count).map(|id| Arc::new(bookie(id))).collect())
    }

    pub(crate) fn get(&self, id: BookieId) -> &FakeBookie {
        &self.0[id.0 as usize - 1]
    }
}

impl BookiePool for FakeBookies {
    fn bookie(&self, id: BookieId) -> Arc<dyn BookieClient> {
        Arc::<FakeBookie>::clone(&self.0[id.0 as usize - 1])
    }

    fn writable(&self) -> Vec<BookieId> {
        let up = |bookie: &&Arc<FakeBookie>| bookie.state.lock().unwrap().mode == Mode::Up;
        self.0.iter().filter(up).map(|bookie| bookie.id).collect()
    }
}
