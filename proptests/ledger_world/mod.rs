//! One ledger, its writer, its recoverers and its bookies as plain data. Every request and every answer
//! is in flight until the script delivers, loses or repeats it. What must hold is checked at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use seawall::domain::{
    AddAnswer, AddError, BookieId, CreatorToken, Entry, EntryId, Instant, LastAddConfirmed,
    LedgerId, ReadError, ReadRequest,
};
use seawall::ledger::recovery::machine::{RecoveredEnd, RecoveryEffect, RecoveryMachine};
use seawall::ledger::writer::machine::{
    ChangeOutcome, WriterEffect, WriterMachine, WriterSettings,
};
use seawall::ledger::{Fragment, LedgerRecord, LedgerState, Quorum, WriterEnd};

mod bookie;
mod script;

use bookie::{Bookie, read, unreachable};
pub use script::{Fate, Step, add_timeouts, quorums, steps, takeovers};

const LEDGER: LedgerId = LedgerId(7);

/// Who sent a request: the writer, or one attempt of one recoverer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Writer,
    Recoverer(usize, u32),
}

#[derive(Clone, Debug)]
enum Flight {
    Add(Owner, BookieId, Vec<Entry>),
    AddAnswer(Owner, AddAnswer),
    Fence(Owner, usize, BookieId),
    FenceAnswer(Owner, usize, Result<LastAddConfirmed, ReadError>),
    Read(Owner, usize, BookieId, ReadRequest),
    ReadAnswer(Owner, usize, EntryId, Result<Vec<Entry>, ReadError>),
    Change(EntryId, Vec<(BookieId, BookieId)>),
    ChangeAnswer(ChangeOutcome),
    Close(RecoveredEnd),
}

#[derive(Default)]
struct Recoverer {
    attempt: u32,
    machine: Option<RecoveryMachine>,
}

/// See the module.
pub struct World {
    quorum: Quorum,
    now: Instant,
    add_timeout: Duration,
    bookies: BTreeMap<BookieId, Bookie>,
    spares: bool,
    record: LedgerRecord,
    writer: WriterMachine,
    appended: i64,
    confirmed: EntryId,
    end: Option<WriterEnd>,
    originals: BTreeMap<EntryId, Entry>,
    /// Who has told the writer that it has which entry, of its ensemble of now.
    acked: BTreeSet<(EntryId, BookieId)>,
    recoverers: [Recoverer; 2],
    flights: Vec<Flight>,
    has_rot: bool,
    /// Bookies that never answer again.
    away: BTreeSet<BookieId>,
}

impl Flight {
    /// Whom a request is for.
    fn bookie(&self) -> Option<BookieId> {
        match self {
            Self::Add(_, id, _) | Self::Fence(_, _, id) | Self::Read(_, _, id, _) => Some(*id),
            _ => None,
        }
    }
}

impl World {
    pub fn new(quorum: Quorum, spares: u64, add_timeout: Duration) -> Self {
        let ensemble: Vec<BookieId> = (1..=u64::from(quorum.ensemble)).map(BookieId).collect();
        let bookies = (1..=u64::from(quorum.ensemble) + spares)
            .map(|id| (BookieId(id), Bookie::default()))
            .collect();
        let settings = WriterSettings {
            ledger: LEDGER,
            quorum,
            add_timeout,
            tell_interval: Duration::from_secs(1),
        };
        Self {
            quorum,
            now: Instant(1),
            add_timeout,
            bookies,
            spares: spares > 0,
            writer: WriterMachine::new(settings, &ensemble, Instant(1)),
            record: LedgerRecord {
                format: 1,
                ledger: LEDGER,
                creator: CreatorToken(1),
                quorum,
                state: LedgerState::Open,
                fragments: vec![Fragment { first_entry: EntryId::FIRST, ensemble }],
                purpose: String::new(),
            },
            appended: 0,
            confirmed: EntryId::NONE,
            end: None,
            originals: BTreeMap::new(),
            acked: BTreeSet::new(),
            recoverers: Default::default(),
            flights: Vec::new(),
            has_rot: false,
            away: BTreeSet::new(),
        }
    }

    pub fn run(&mut self, script: &[Step]) {
        for step in script {
            match step {
                Step::Append(count) => {
                    for _ in 0..*count {
                        let payload = Bytes::from(format!("payload {}", self.appended));
                        self.writer.append(payload, self.now);
                        self.appended += 1;
                    }
                    self.settle();
                }
                Step::Flight(place, fate) => {
                    if !self.flights.is_empty() {
                        let place = usize::from(*place) % self.flights.len();
                        let flight = self.flights.swap_remove(place);
                        self.meet(flight, *fate);
                    }
                }
                Step::Pass(milliseconds) => self.pass(u64::from(*milliseconds)),
                Step::Recover(who) => self.begin_recovery(usize::from(*who)),
                Step::Rot(bookie, entry) => self.rot(*bookie, *entry),
            }
            self.check();
        }
    }

    /// From here on some bookies are away for ever: of those of the last fragment that `named` names as many as
    /// recovery can do without. Of no write set so many that they could have confirmed an entry, and each with a
    /// spare to take its place.
    pub fn take_away(&mut self, named: u8) {
        let last = self.record.fragments.last().unwrap();
        for (position, id) in last.ensemble.iter().enumerate() {
            let mut away = self.away.clone();
            away.insert(*id);
            let is_needed = (0..self.quorum.ensemble).any(|first| {
                let write_set = self.record.write_set(last, EntryId(i64::from(first)));
                write_set.iter().filter(|id| away.contains(id)).count() >= self.quorum.ack as usize
            });
            let spares = self.bookies.len() - last.ensemble.len();
            if named >> position & 1 == 1 && !is_needed && away.len() <= spares {
                self.away = away;
            }
        }
    }

    /// Everything that is not away works from here on: what was begun must come to its end. That a bookie is away
    /// shows later than what others answer.
    pub fn run_out(&mut self) {
        for _ in 0..200 {
            let mut flights = std::mem::take(&mut self.flights);
            let away = self.away.clone();
            let is_vain = |flight: &Flight| flight.bookie().is_some_and(|id| away.contains(&id));
            flights.sort_by_key(is_vain);
            for flight in flights {
                let fate = if is_vain(&flight) { Fate::Fails } else { Fate::Arrives };
                self.meet(flight, fate);
                self.check();
            }
            if self.flights.is_empty() {
                self.pass(1100);
                self.check();
                let in_recovery = self.record.state == LedgerState::InRecovery;
                if in_recovery && self.recoverers.iter().all(|one| one.machine.is_none()) {
                    self.begin_recovery(0);
                }
            }
        }
    }

    /// An entry that an ack quorum of its write set has, as the writer was told, is confirmed in the same turn: nothing
    /// may come that would make up for it later.
    fn check_writer_is_prompt(&self) {
        if self.end.is_some() || self.writer.is_changing() {
            return;
        }
        let head = self.confirmed.next();
        let ensemble = self.writer.ensemble();
        let acks = (0..u64::from(self.quorum.write))
            .map(|k| ensemble[((head.0 as u64 + k) % ensemble.len() as u64) as usize])
            .filter(|bookie| self.acked.contains(&(head, *bookie)))
            .count();
        assert!(acks < self.quorum.ack as usize, "{head} has {acks} copies and is not confirmed");
    }

    pub fn check_writer_is_done(&self) {
        let last = EntryId(self.appended - 1);
        assert!(
            self.end.is_some() || self.confirmed == last,
            "the writer hangs at {}, {} were appended",
            self.confirmed,
            self.appended
        );
    }

    pub fn check_recovery_is_done(&self) {
        if !self.has_rot {
            assert_ne!(self.record.state, LedgerState::InRecovery, "recovery hangs");
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        self.settle();
    }

    fn rot(&mut self, bookie: u8, entry: u8) {
        let id = BookieId(u64::from(bookie) % self.bookies.len() as u64 + 1);
        let bookie = self.bookies.get_mut(&id).unwrap();
        let ids: Vec<EntryId> = bookie.entries.keys().copied().collect();
        if !ids.is_empty() {
            self.has_rot = true;
            bookie.rotten.insert(ids[usize::from(entry) % ids.len()]);
        }
    }

    fn begin_recovery(&mut self, who: usize) {
        if self.recoverers[who].machine.is_some() {
            return;
        }
        match self.record.state {
            LedgerState::Closed { .. } => return,
            LedgerState::Open => self.record.state = LedgerState::InRecovery,
            LedgerState::InRecovery => {}
        }
        let recoverer = &mut self.recoverers[who];
        recoverer.attempt += 1;
        recoverer.machine = RecoveryMachine::new(self.record.clone(), 3, self.add_timeout);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            let effects = self.writer.settle(self.now);
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
        for who in 0..self.recoverers.len() {
            self.settle_recoverer(who);
        }
    }

    fn settle_recoverer(&mut self, who: usize) {
        let owner = Owner::Recoverer(who, self.recoverers[who].attempt);
        while let Some(machine) = &mut self.recoverers[who].machine {
            let effects = machine.settle(self.now);
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                match effect {
                    RecoveryEffect::Fence { position, bookie } => {
                        self.flights.push(Flight::Fence(owner, position, bookie));
                    }
                    RecoveryEffect::Read { position, bookie, request } => {
                        self.flights.push(Flight::Read(owner, position, bookie, request));
                    }
                    RecoveryEffect::Add { bookie, entries } => {
                        self.flights.push(Flight::Add(owner, bookie, entries));
                    }
                    RecoveryEffect::FindReplacements(failed) => {
                        let machine = self.recoverers[who].machine.as_ref().unwrap();
                        let found = self.spares_for(&machine.ensemble(), &failed);
                        self.recoverers[who].machine.as_mut().unwrap().replace(&found);
                    }
                    RecoveryEffect::Close(end) => {
                        self.recoverers[who].machine = None;
                        self.flights.push(Flight::Close(end));
                    }
                    RecoveryEffect::Fail(_) => self.recoverers[who].machine = None,
                }
            }
        }
    }

    fn spares_for(&self, ensemble: &[BookieId], failed: &[usize]) -> Vec<(usize, BookieId)> {
        let is_spare = |id: &BookieId| !ensemble.contains(id) && !self.away.contains(id);
        let spares = self.bookies.keys().copied().filter(is_spare);
        if self.spares { failed.iter().copied().zip(spares).collect() } else { Vec::new() }
    }

    fn perform(&mut self, effect: WriterEffect) {
        assert!(self.end.is_none(), "{effect:?} after the end");
        match effect {
            WriterEffect::Send { bookie, entries } => {
                for entry in &entries {
                    assert!(entry.last_add_confirmed <= self.confirmed, "carries too much");
                    let original =
                        self.originals.entry(entry.entry).or_insert_with(|| entry.clone());
                    assert_eq!(original, entry, "sealed twice");
                }
                assert!(entries.is_sorted_by(|a, b| a.entry < b.entry));
                self.flights.push(Flight::Add(Owner::Writer, bookie, entries));
            }
            WriterEffect::Confirmed { up_to, .. } => {
                assert!(up_to > self.confirmed, "confirmed went back");
                self.confirmed = up_to;
            }
            WriterEffect::TellLastAddConfirmed(value) => assert!(value <= self.confirmed),
            WriterEffect::FindReplacements(failed) => {
                let found = self.spares_for(&self.writer.ensemble(), &failed);
                self.writer.replace(&found, self.now);
            }
            WriterEffect::ChangeEnsemble { start, replacements } => {
                self.flights.push(Flight::Change(start, replacements));
            }
            WriterEffect::Ended(reason) => self.end = Some(reason),
        }
    }

    fn meet(&mut self, flight: Flight, fate: Fate) {
        // Changes of metadata name a version: a second one of the same would just be refused.
        let is_metadata =
            matches!(flight, Flight::Change(..) | Flight::ChangeAnswer(_) | Flight::Close(_));
        if matches!(fate, Fate::Repeated) && !is_metadata {
            self.flights.push(flight.clone());
        }
        let takes_effect = !matches!(fate, Fate::Fails | Fate::Poisoned);
        let is_heard = matches!(fate, Fate::Arrives | Fate::Repeated | Fate::Misplaced);
        match flight {
            Flight::Add(owner, id, entries) => {
                let ids = entries.iter().map(|entry| entry.entry).collect();
                let is_recovery = owner != Owner::Writer;
                let stored =
                    if takes_effect { self.store(id, entries, is_recovery) } else { Ok(()) };
                let result = match fate {
                    Fate::Poisoned => Err(AddError::Poisoned("script".to_owned())),
                    _ if is_heard => stored,
                    _ => Err(AddError::Unreachable("script".to_owned())),
                };
                let answer = AddAnswer { bookie: id, ledger: LEDGER, entries: ids, result };
                self.flights.push(Flight::AddAnswer(owner, answer));
            }
            Flight::Fence(owner, position, id) => {
                let bookie = self.bookies.get_mut(&id).unwrap();
                bookie.fenced |= takes_effect;
                let carried = bookie.entries.values().map(|entry| entry.last_add_confirmed).max();
                let known = LastAddConfirmed {
                    last_add_confirmed: carried.unwrap_or(EntryId::NONE),
                    last_entry: EntryId::NONE,
                    fenced: bookie.fenced,
                };
                let answer = if is_heard { Ok(known) } else { Err(unreachable()) };
                self.flights.push(Flight::FenceAnswer(owner, position, answer));
            }
            Flight::Read(owner, position, id, request) => {
                let bookie = self.bookies.get_mut(&id).unwrap();
                bookie.fenced |= takes_effect && request.fence;
                let mut answer = if is_heard { read(bookie, request) } else { Err(unreachable()) };
                if matches!(fate, Fate::Misplaced)
                    && let Ok(run) = &mut answer
                {
                    run.remove(0);
                }
                self.flights.push(Flight::ReadAnswer(owner, position, request.first, answer));
            }
            Flight::AddAnswer(Owner::Writer, answer) => {
                if answer.result.is_ok() && self.writer.ensemble().contains(&answer.bookie) {
                    self.acked.extend(answer.entries.iter().map(|entry| (*entry, answer.bookie)));
                }
                self.writer.answered(answer, self.now);
            }
            Flight::AddAnswer(owner, answer) => {
                let now = self.now;
                self.with(owner, |machine| machine.add_answered(answer, now));
            }
            Flight::FenceAnswer(owner, position, answer) => {
                self.with(owner, |machine| machine.fence_answered(position, answer));
            }
            Flight::ReadAnswer(owner, position, first, answer) => {
                let now = self.now;
                self.with(owner, |machine| machine.read_answered(position, first, answer, now));
            }
            Flight::Change(start, replacements) => {
                let outcome = self.change(start, &replacements);
                self.flights.push(Flight::ChangeAnswer(outcome));
            }
            Flight::ChangeAnswer(outcome) => {
                if self.writer.is_changing() {
                    self.writer.changed(outcome, self.now);
                    let ensemble = self.writer.ensemble();
                    self.acked.retain(|(_, bookie)| ensemble.contains(bookie));
                }
            }
            Flight::Close(end) => self.close(&end),
        }
        self.settle();
    }

    fn with(&mut self, owner: Owner, work: impl FnOnce(&mut RecoveryMachine)) {
        let Owner::Recoverer(who, attempt) = owner else { return };
        let recoverer = &mut self.recoverers[who];
        if recoverer.attempt == attempt
            && let Some(machine) = &mut recoverer.machine
        {
            work(machine);
        }
    }

    fn store(
        &mut self,
        id: BookieId,
        entries: Vec<Entry>,
        is_recovery: bool,
    ) -> Result<(), AddError> {
        let confirmed = self.confirmed;
        let bookie = self.bookies.get_mut(&id).unwrap();
        if bookie.fenced && !is_recovery {
            return Err(AddError::Fenced);
        }
        for entry in entries {
            assert!(entry.last_add_confirmed <= confirmed, "a last add confirmed from nowhere");
            let before = bookie.entries.insert(entry.entry, entry.clone());
            assert!(before.is_none_or(|before| before == entry), "copies differ");
            bookie.rotten.remove(&entry.entry);
        }
        Ok(())
    }

    fn change(&mut self, start: EntryId, replacements: &[(BookieId, BookieId)]) -> ChangeOutcome {
        if self.record.state != LedgerState::Open {
            return ChangeOutcome::Deposed;
        }
        let last = self.record.fragments.last_mut().unwrap();
        let mut ensemble = last.ensemble.clone();
        for (from, to) in replacements {
            if let Some(place) = ensemble.iter_mut().find(|id| *id == from) {
                *place = *to;
            }
        }
        if ensemble != last.ensemble {
            assert!(start >= last.first_entry);
            if start == last.first_entry {
                last.ensemble.clone_from(&ensemble);
            } else {
                self.record
                    .fragments
                    .push(Fragment { first_entry: start, ensemble: ensemble.clone() });
            }
        }
        ChangeOutcome::Done(ensemble)
    }

    fn close(&mut self, end: &RecoveredEnd) {
        if self.record.state != LedgerState::InRecovery {
            return;
        }
        let last = self.record.fragments.last().unwrap();
        assert_eq!(last.first_entry, end.tail[0].first_entry);
        self.record.fragments.pop();
        self.record.fragments.extend(end.tail.iter().cloned());
        assert!(self.record.fragments.is_sorted_by(|a, b| a.first_entry < b.first_entry));
        self.record.state = LedgerState::Closed { last_entry: end.last_entry, length: end.length };
        let length = self.originals.get(&end.last_entry).map_or(0, |entry| entry.length);
        assert_eq!(end.length, length, "closed with a wrong length");
    }

    /// Every confirmed entry is on an ack quorum of the write set metadata names; a closed ledger holds
    /// everything the writer ever confirmed.
    fn check(&self) {
        self.check_writer_is_prompt();
        let mut must_hold = self.confirmed;
        if let LedgerState::Closed { last_entry, .. } = self.record.state {
            assert!(
                last_entry >= self.confirmed,
                "closed at {last_entry}, {} was confirmed",
                self.confirmed
            );
            must_hold = last_entry;
        }
        for id in (0..=must_hold.0).map(EntryId) {
            let fragment = self.record.fragment_of(id).unwrap();
            let write_set = self.record.write_set(fragment, id);
            let distinct: BTreeSet<_> = fragment.ensemble.iter().collect();
            assert_eq!(distinct.len(), fragment.ensemble.len(), "a bookie twice in an ensemble");
            let copies =
                write_set.iter().filter(|id_| self.bookies[id_].entries.contains_key(&id)).count();
            assert!(
                copies >= self.quorum.ack as usize,
                "entry {id} has {copies} copies in its write set"
            );
        }
    }
}
