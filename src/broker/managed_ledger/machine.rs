//! Decisions about appends: in what order entries go to which ledger, when the ledger is rolled over,
//! and what became of entries whose writer failed. Pure: events in, effects out.
//!
//! ```text
//!  Idle --entry--> Creating --opened--> Open --full and drained / writer ended--> Settling --settled--> Idle
//!  any --fenced--> Fenced      any --close--> Closed
//! ```
//! Nothing is sent to a ledger before the record lists it; no entry is sent to the next ledger before
//! the end of the last is decided, so an entry of unknown fate is never stored twice.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::contract::{AppendError, AppendOutcome, NewEntry};
use crate::broker::{AppendTerms, EntryHeader};
use crate::domain::{EntryId, FormatLevel, Instant, LedgerId, Position, WallTime};
use crate::{invariant, mutant, reached};

/// Limits.
#[derive(Clone, Debug)]
pub struct MachineLimits {
    /// Entries without outcome; more are refused.
    pub pending_max: usize,
    /// Entries of one ledger.
    pub entries_max: u64,
    /// Bytes of one ledger.
    pub bytes_max: u64,
    /// Age of a ledger that is not empty.
    pub age_max: Duration,
}

/// How the end of a ledger is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Its writer is alive and has nothing pending.
    Close,
    /// Its writer ended.
    Recover,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Find the end of the current ledger.
    Settle(LedgerId, Settle),
    /// Create a ledger and list it.
    Create,
    /// Committed entries of a ledger, from `first` on.
    Committed {
        /// The ledger.
        ledger: LedgerId,
        /// Id of the first.
        first: EntryId,
        /// Their stored form.
        payloads: Vec<Bytes>,
        /// The smallest publish time among them.
        publish_min: WallTime,
    },
    /// Outcomes, in the order of appending.
    Outcomes(Vec<AppendOutcome>),
    /// The log is lost to this owner.
    Fenced(String),
}

/// Entries of one turn share allocations of this size: an entry kept for long keeps no more than that.
const SHARED_BYTES: usize = 64 * 1024;

/// The stamp of an entry appended at this time.
fn stamp(wall: WallTime) -> WallTime {
    static FIRST: std::sync::OnceLock<WallTime> = std::sync::OnceLock::new();
    if mutant!("T8") { *FIRST.get_or_init(|| wall) } else { wall }
}

fn stored_bytes(entry: &NewEntry) -> usize {
    EntryHeader::LENGTH_MAX + entry.client_bytes.len()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Creating,
    Open,
    Settling,
    Fenced,
    Closed,
}

struct Pending {
    tag: u64,
    /// The sequence number it gets: all taken before it get theirs, or none of them is stored any more.
    number: u64,
    payload: Bytes,
    publish_time: WallTime,
    sent: Option<EntryId>,
    /// Not taken; waits in line only for its turn to be answered. Holds no payload.
    refused: Option<AppendError>,
}

struct Current {
    ledger: LedgerId,
    /// The number of its first entry.
    first_number: u64,
    confirmed: EntryId,
    entries: u64,
    bytes: u64,
    opened_at: Instant,
}

/// The machine.
pub struct Machine {
    limits: MachineLimits,
    state: State,
    queue: VecDeque<Pending>,
    /// Entries at the head of the queue that are sent or refused.
    handled: usize,
    current: Option<Current>,
    next_index: u64,
    /// The number the next entry taken gets.
    next_number: u64,
    token: u64,
    /// Of the headers it makes.
    level: FormatLevel,
    effects: Vec<Effect>,
}

impl Machine {
    /// A machine without a ledger; the first entry makes it ask for one.
    pub fn new(limits: MachineLimits, next_index: u64) -> Self {
        Self {
            limits,
            state: State::Idle,
            queue: VecDeque::new(),
            handled: 0,
            current: None,
            next_index,
            next_number: 0,
            token: 0,
            level: FormatLevel::NEWEST,
            effects: Vec::new(),
        }
    }

    /// The same, making headers of this level.
    pub fn writing(self, level: FormatLevel) -> Self {
        Self { level, ..self }
    }

    /// The same with the number of the next entry and the fencing token, as the record has them.
    pub fn numbered(self, next_number: u64, token: u64) -> Self {
        Self { next_number, token, ..self }
    }

    /// Takes a token that is in the record; it never goes back. Answers the number below which entries may
    /// have been taken under a lower one.
    pub fn raise_token(&mut self, token: u64) -> u64 {
        self.token = self.token.max(token);
        self.next_number
    }

    /// The number of the current ledger's first entry.
    pub fn first_number(&self) -> Option<u64> {
        self.current.as_ref().map(|current| current.first_number)
    }

    /// Number of the first entry that is not sent: where the next ledger begins.
    fn first_pending_number(&self) -> u64 {
        let first = self.queue.iter().skip(self.handled).find(|p| p.refused.is_none());
        first.map_or(self.next_number, |pending| pending.number)
    }

    /// Index of the next message.
    pub fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Index of the first message that is not sent: where the next ledger begins.
    pub fn first_pending_index(&self) -> u64 {
        let first = self.queue.iter().skip(self.handled).find(|p| p.refused.is_none());
        let header = first
            .and_then(|pending| EntryHeader::split(&pending.payload, FormatLevel::NEWEST).ok());
        header.map_or(self.next_index, |(header, _)| header.first_index)
    }

    /// Entries without outcome.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// True when nothing more will come of it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Fenced | State::Closed)
    }

    /// Takes entries. `wall` is stamped on them.
    pub fn append(&mut self, entries: Vec<NewEntry>, wall: WallTime) {
        if self.has_ended() {
            let refuse = |entry: NewEntry| AppendOutcome {
                tag: entry.tag,
                number: 0,
                result: Err(AppendError::Fenced),
            };
            self.effects.push(Effect::Outcomes(entries.into_iter().map(refuse).collect()));
            return;
        }
        // Planted bug: the level it is set to is for others.
        let level = if mutant!("V-header") { FormatLevel::NEWEST } else { self.level };
        let mut buffer = BytesMut::new();
        let mut left: usize = entries.iter().map(stored_bytes).sum();
        for (place, entry) in entries.into_iter().enumerate() {
            let stored = stored_bytes(&entry);
            if buffer.capacity() < stored {
                buffer = BytesMut::with_capacity(left.min(SHARED_BYTES).max(stored));
            }
            left -= stored;
            let refusal = self.refusal(&entry.terms);
            if let Some(refusal) = refusal.filter(|_| place == 0 || !mutant!("P2")) {
                if let Some(session) = &entry.terms.session
                    && !mutant!("G-session")
                {
                    session.break_off();
                }
                if mutant!("B5") {
                    let result = Err(refusal);
                    let outcome = AppendOutcome { tag: entry.tag, number: 0, result };
                    self.effects.push(Effect::Outcomes(vec![outcome]));
                } else {
                    self.queue.push_back(Pending {
                        tag: entry.tag,
                        number: 0,
                        payload: Bytes::new(),
                        publish_time: entry.publish_time,
                        sent: None,
                        refused: Some(refusal),
                    });
                    continue;
                }
            }
            let header = EntryHeader {
                is_batch: entry.is_batch,
                message_count: entry.message_count.max(1),
                first_index: self.next_index,
                broker_time: stamp(wall),
                publish_time: entry.publish_time,
            };
            self.next_index += u64::from(header.message_count);
            let number = self.next_number;
            self.next_number += 1;
            self.queue.push_back(Pending {
                tag: entry.tag,
                number,
                payload: header.store_in(&mut buffer, &entry.client_bytes, level),
                publish_time: entry.publish_time,
                sent: None,
                refused: None,
            });
        }
    }

    /// Why an entry is not taken, if it is not. It waits in line with its refusal, so that what it says of the
    /// log's end is true of what is committed when it is heard.
    fn refusal(&self, terms: &AppendTerms) -> Option<AppendError> {
        if self.queue.len() >= self.limits.pending_max {
            reached!("managed ledger: too many entries pending");
            return Some(AppendError::TooManyPending);
        }
        if terms.session.as_ref().is_some_and(|session| session.is_broken()) {
            return Some(AppendError::SessionBroken);
        }
        if terms.token.is_some_and(|token| token != self.token) {
            reached!("managed ledger: an append with another token");
            return Some(AppendError::StaleToken { current: self.token });
        }
        let next = self.next_number;
        if terms.expected.is_some_and(|expected| expected != next) && !mutant!("G-number") {
            return Some(AppendError::WrongNumber { next });
        }
        None
    }

    /// What may be sent to the current ledger now.
    pub fn sendable(&self, now: Instant) -> Vec<Bytes> {
        let Some(current) = &self.current else { return Vec::new() };
        if self.state != State::Open || self.is_full(now) {
            return Vec::new();
        }
        let (mut entries, mut bytes) = (current.entries, current.bytes);
        let mut payloads = Vec::with_capacity(self.queue.len() - self.handled);
        for pending in self.queue.range(self.handled..) {
            if entries >= self.limits.entries_max || bytes >= self.limits.bytes_max {
                break;
            }
            if pending.refused.is_none() {
                entries += 1;
                bytes += pending.payload.len() as u64;
                payloads.push(pending.payload.clone());
            }
        }
        payloads
    }

    /// The first `count` sendable entries were sent; `first` is the id of the first.
    pub fn sent(&mut self, first: EntryId, count: usize) {
        let Some(current) = &mut self.current else { return };
        invariant!(
            first.0 == current.entries as i64,
            "ledger {} numbers entry {first} where {} is next",
            current.ledger,
            current.entries
        );
        let mut entry = first;
        let end = EntryId(first.0 + count as i64);
        for pending in self.queue.range_mut(self.handled..) {
            if pending.refused.is_none() {
                if entry == end {
                    break;
                }
                pending.sent = Some(entry);
                current.entries += 1;
                current.bytes += pending.payload.len() as u64;
                entry = entry.next();
            }
            self.handled += 1;
        }
    }

    /// The record lists this new ledger and its writer is ready.
    pub fn opened(&mut self, ledger: LedgerId, now: Instant) {
        if self.state != State::Creating {
            return;
        }
        self.state = State::Open;
        self.current = Some(Current {
            ledger,
            first_number: self.first_pending_number(),
            confirmed: EntryId::NONE,
            entries: 0,
            bytes: 0,
            opened_at: now,
        });
    }

    /// A writer confirmed entries up to `up_to`. Late news of former ledgers is ignored.
    pub fn confirmed(&mut self, ledger: LedgerId, up_to: EntryId) {
        let is_current = self.current.as_ref().is_some_and(|current| current.ledger == ledger);
        if !is_current && !mutant!("B4") {
            reached!("managed ledger: late news of a former ledger");
            return;
        }
        // While the end is being found the settlement answers.
        if matches!(self.state, State::Open | State::Settling) {
            self.commit(up_to);
        }
    }

    fn commit(&mut self, up_to: EntryId) {
        let Some(current) = &mut self.current else { return };
        let (ledger, first_number) = (current.ledger, current.first_number);
        let first = current.confirmed.next();
        current.confirmed = current.confirmed.max(up_to);
        let mut outcomes = Vec::new();
        let mut payloads = Vec::new();
        let mut publish_min = WallTime(u64::MAX);
        while let Some(head) = self.queue.front() {
            let committed = head.sent.filter(|entry| *entry <= up_to);
            if committed.is_none() && head.refused.is_none() {
                break;
            }
            let Some(head) = self.queue.pop_front() else { break };
            self.handled = self.handled.saturating_sub(1);
            let result = match (head.refused, committed) {
                (None, Some(entry)) => {
                    invariant!(
                        first_number + entry.0 as u64 == head.number,
                        "entry {entry} of ledger {ledger}, which begins at {first_number}, is number {}",
                        head.number
                    );
                    publish_min = publish_min.min(head.publish_time);
                    payloads.push(head.payload);
                    Ok(Position::new(ledger, entry))
                }
                (refused, _) => Err(refused.unwrap_or(AppendError::Fenced)),
            };
            outcomes.push(AppendOutcome { tag: head.tag, number: head.number, result });
        }
        if !payloads.is_empty() {
            self.effects.push(Effect::Committed { ledger, first, payloads, publish_min });
        }
        if !outcomes.is_empty() {
            self.effects.push(Effect::Outcomes(outcomes));
        }
    }

    /// Refusals that are first in line: all before them is committed.
    fn answer_refused(&mut self) {
        let mut outcomes = Vec::new();
        while let Some(head) = self.queue.front_mut()
            && let Some(refused) = head.refused.take()
        {
            outcomes.push(AppendOutcome { tag: head.tag, number: 0, result: Err(refused) });
            self.queue.pop_front();
            self.handled = self.handled.saturating_sub(1);
        }
        if !outcomes.is_empty() {
            self.effects.push(Effect::Outcomes(outcomes));
        }
    }

    /// The current ledger's writer ended by itself.
    pub fn writer_ended(&mut self, ledger: LedgerId, fenced: bool) {
        let is_current = self.current.as_ref().is_some_and(|current| current.ledger == ledger);
        if !is_current || self.state != State::Open {
            return;
        }
        if fenced {
            self.fence("the ledger was fenced by another owner");
        } else {
            reached!("managed ledger: a writer failed");
            self.state = State::Settling;
            self.effects.push(Effect::Settle(ledger, Settle::Recover));
        }
    }

    /// The end of the current ledger is decided: entries up to it are stored, the others certainly not.
    pub fn settled(&mut self, last_entry: EntryId) {
        if self.state != State::Settling {
            return;
        }
        self.commit(last_entry);
        if let Some(current) = &self.current {
            invariant!(
                current.confirmed <= last_entry,
                "ledger {} closed at {last_entry} below confirmed {}",
                current.ledger,
                current.confirmed
            );
        }
        for pending in self.queue.iter_mut().take(self.handled) {
            if pending.sent.take().is_some() {
                reached!("managed ledger: entries moved to the next ledger");
            }
        }
        self.handled = 0;
        self.current = None;
        self.state = State::Idle;
    }

    /// The log is lost: to another owner, or since storage failed for good.
    pub fn fence(&mut self, reason: &str) {
        if self.has_ended() {
            return;
        }
        self.state = State::Fenced;
        self.abandon(reason);
        self.effects.push(Effect::Fenced(reason.to_owned()));
    }

    /// Gives the log up. What is pending has an unknown outcome.
    pub fn close(&mut self) {
        if !self.has_ended() {
            self.state = State::Closed;
            self.abandon("the topic was closed");
        }
    }

    fn abandon(&mut self, reason: &str) {
        self.handled = 0;
        self.current = None;
        let outcomes: Vec<_> = std::mem::take(&mut self.queue)
            .into_iter()
            .map(|pending| {
                let error = match (pending.refused, pending.sent) {
                    // What it says of the end was not to become true.
                    (Some(AppendError::WrongNumber { .. }), _) if !mutant!("P1") => {
                        AppendError::Fenced
                    }
                    (Some(refused), _) => refused,
                    (None, Some(_)) => AppendError::OutcomeUnknown(reason.to_owned()),
                    (None, None) => AppendError::Fenced,
                };
                AppendOutcome { tag: pending.tag, number: 0, result: Err(error) }
            })
            .collect();
        if !outcomes.is_empty() {
            self.effects.push(Effect::Outcomes(outcomes));
        }
    }

    fn is_full(&self, now: Instant) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.entries > 0
                && (current.entries >= self.limits.entries_max
                    || current.bytes >= self.limits.bytes_max
                    || now.since(current.opened_at) >= self.limits.age_max)
        })
    }

    /// Ends a turn: what is to be done now.
    pub fn settle(&mut self, now: Instant) -> Vec<Effect> {
        self.answer_refused();
        let waiting = !self.queue.is_empty();
        match (self.state, &self.current) {
            (State::Idle, _) if waiting => {
                self.state = State::Creating;
                self.effects.push(Effect::Create);
            }
            (State::Open, Some(current))
                if waiting
                    && self.is_full(now)
                    && current.confirmed.next().0 == current.entries as i64 =>
            {
                self.effects.push(Effect::Settle(current.ledger, Settle::Close));
                self.state = State::Settling;
            }
            _ => {}
        }
        std::mem::take(&mut self.effects)
    }
}
