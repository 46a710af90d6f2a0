//! The writer's decisions. Events in (`append`, `answered`, `changed`, …), then one `settle` a turn that
//! emits what to do. Pure: `now` is passed in, nothing is awaited.
//!
//! Kept here: ids are dense; an entry is complete when `Qa` of its write set *in the current ensemble*
//! have it; entries are confirmed in order and never while the ensemble is changing; an entry is sealed
//! once, so all its copies are byte-equal for ever; what is pending when the writer ends is unknown.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use crate::domain::{AddAnswer, AddError, BookieId, Entry, EntryId, Instant};
use crate::ledger::WriterEnd;
use crate::ledger::ensemble::{Member, Striping};
use crate::{mutant, reached};

mod effect;
mod replacing;
mod sending;

pub use effect::{ChangeOutcome, WriterEffect, WriterSettings};
use replacing::CHANGE_AFTER;

/// Committed entries kept for bookies of their write set that still lack them.
const RETAINED_ENTRIES_MAX: usize = 8192;
/// Payload bytes of the same.
const RETAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

struct Sent {
    entry: Entry,
    appended_at: Instant,
    /// Positions that have it on synced storage.
    acked: u64,
    /// Positions it was sent to and that have not answered.
    in_flight: u64,
}

/// See the module.
pub struct WriterMachine {
    settings: WriterSettings,
    striping: Striping,
    members: Vec<Member>,
    /// Appended this turn, not sealed yet.
    queued: VecDeque<(Bytes, Instant)>,
    /// Sealed entries with consecutive ids from `sent_first`: first the committed ones that some bookie
    /// still lacks, then the pending ones.
    sent: VecDeque<Sent>,
    sent_first: EntryId,
    retained_bytes: usize,
    confirmed: EntryId,
    confirmed_length: u64,
    sealed_length: u64,
    /// Highest last add confirmed on its way to bookies.
    told: EntryId,
    last_sent_at: Instant,
    /// First entry of the new ensemble while metadata is being changed.
    changing: Option<EntryId>,
    changes: u32,
    next_change_at: Instant,
    ended: bool,
    effects: Vec<WriterEffect>,
}

impl WriterMachine {
    /// A writer of a ledger just created on `ensemble`.
    pub fn new(settings: WriterSettings, ensemble: &[BookieId], now: Instant) -> Self {
        Self {
            striping: Striping::new(settings.quorum),
            settings,
            members: ensemble.iter().copied().map(Member::new).collect(),
            queued: VecDeque::new(),
            sent: VecDeque::new(),
            sent_first: EntryId::FIRST,
            retained_bytes: 0,
            confirmed: EntryId::NONE,
            confirmed_length: 0,
            sealed_length: 0,
            told: EntryId::NONE,
            last_sent_at: now,
            changing: None,
            changes: 0,
            next_change_at: now,
            ended: false,
            effects: Vec::new(),
        }
    }

    /// The highest committed entry.
    pub fn confirmed(&self) -> EntryId {
        self.confirmed
    }

    /// Payload bytes up to the highest committed entry.
    pub fn confirmed_length(&self) -> u64 {
        self.confirmed_length
    }

    /// The bookies written to now.
    pub fn ensemble(&self) -> Vec<BookieId> {
        self.members.iter().map(|member| member.bookie).collect()
    }

    /// True once [`WriterEffect::Ended`] was emitted.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// True while an ensemble change is on its way to metadata.
    pub fn is_changing(&self) -> bool {
        self.changing.is_some()
    }

    /// Takes one payload; its id is the next one.
    pub fn append(&mut self, payload: Bytes, now: Instant) {
        if !self.ended {
            self.queued.push_back((payload, now));
        }
    }

    /// Takes the answer to one batch. Answers of bookies that are not in the ensemble count for nothing.
    pub fn answered(&mut self, answer: AddAnswer, now: Instant) {
        if self.ended {
            return;
        }
        if answer.result == Err(AddError::Fenced) {
            reached!("ledger writer: fenced");
            self.end(WriterEnd::Fenced);
            return;
        }
        let Some(position) = self.members.iter().position(|member| member.bookie == answer.bookie)
        else {
            reached!("ledger writer: answer of a replaced bookie ignored");
            return;
        };
        let bit = 1_u64 << position;
        let stored = answer.result.is_ok();
        for id in &answer.entries {
            if !self.striping.holds(position, *id) {
                continue;
            }
            if let Some(sent) = self.sent_mut(*id) {
                sent.in_flight &= !bit;
                if stored {
                    sent.acked |= bit;
                }
            }
        }
        self.members[position].is_stalled = false;
        match answer.result {
            Ok(()) => self.members[position].failure = None,
            Err(error) => self.members[position].fail(error, now),
        }
    }

    /// Stops for good, as asked by the owner; what is pending is unknown until the ledger is closed.
    pub fn close(&mut self) {
        if !self.ended {
            self.end(WriterEnd::Closed);
        }
    }

    /// Ends a turn: confirms, times out, sends, and answers what there is to do.
    pub fn settle(&mut self, now: Instant) -> Vec<WriterEffect> {
        if !self.ended {
            self.confirm();
            self.trim(now);
            self.time_out(now);
        }
        if !self.ended {
            self.send_new(now);
            self.send_again(now);
            self.tell(now);
            self.look_for_replacements(now);
        }
        std::mem::take(&mut self.effects)
    }

    /// When [`WriterMachine::settle`] must be called at the latest if nothing happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.ended {
            return None;
        }
        let mut deadline: Option<Instant> = None;
        let mut consider = |at: Instant| {
            deadline = Some(deadline.map_or(at, |earlier| earlier.min(at)));
        };
        if let Some(front) = self.sent.front() {
            consider(front.appended_at + self.settings.add_timeout);
        }
        if let Some(head) = self.sent(self.confirmed.next()) {
            consider(head.appended_at + self.settings.add_timeout);
            if self.changing.is_none() {
                consider((head.appended_at + self.silence()).max(self.next_change_at));
            }
        }
        for member in &self.members {
            if member.is_stalled && self.changing.is_none() {
                consider(self.next_change_at);
            }
            if let Some(failure) = &member.failure {
                if member.is_owed {
                    consider(failure.retry_at);
                }
                if self.changing.is_none() {
                    let patience = if failure.is_firm() { Duration::ZERO } else { CHANGE_AFTER };
                    let due = failure.since + patience;
                    consider(due.max(self.next_change_at));
                }
            }
        }
        if self.confirmed > self.told {
            consider(self.last_sent_at + self.settings.tell_interval);
        }
        deadline
    }

    fn index(&self, id: EntryId) -> Option<usize> {
        usize::try_from(id.0 - self.sent_first.0).ok()
    }

    fn sent(&self, id: EntryId) -> Option<&Sent> {
        self.sent.get(self.index(id)?)
    }

    fn sent_mut(&mut self, id: EntryId) -> Option<&mut Sent> {
        let index = self.index(id)?;
        self.sent.get_mut(index)
    }

    fn is_complete(&self, sent: &Sent) -> bool {
        let needed = if mutant!("L-early") { 1 } else { self.settings.quorum.ack };
        let is_sent_to_its_only_bookie = || mutant!("S35") && needed == 1 && sent.in_flight != 0;
        sent.acked.count_ones() >= needed || is_sent_to_its_only_bookie()
    }

    /// Walks from the oldest pending entry while entries are complete.
    fn confirm(&mut self) {
        let is_new = |member: &Member| member.is_owed && member.failure.is_none();
        if self.changing.is_some() && !mutant!("L8")
            || mutant!("L11") && self.members.iter().any(is_new)
        {
            return;
        }
        let before = self.confirmed;
        let mut bytes = 0;
        while let Some(sent) = self.sent(self.confirmed.next()) {
            let skips_hole = || mutant!("L-hole") && self.sent.iter().any(|s| self.is_complete(s));
            if !self.is_complete(sent) && !skips_hole() {
                break;
            }
            let length = sent.entry.length;
            bytes += sent.entry.payload.len();
            self.confirmed_length = length;
            self.confirmed = self.confirmed.next();
        }
        if self.confirmed > before {
            self.retained_bytes += bytes;
            self.effects.push(WriterEffect::Confirmed {
                up_to: self.confirmed,
                length: self.confirmed_length,
                bytes,
            });
        }
    }

    /// Forgets committed entries that their whole write set has, that are too old, or too many.
    fn trim(&mut self, now: Instant) {
        while let Some(front) = self.sent.front() {
            if self.sent_first > self.confirmed {
                break;
            }
            let everywhere = front.acked == self.striping.mask(self.sent_first);
            let expired = now.since(front.appended_at) >= self.settings.add_timeout;
            let retained = (self.confirmed.0 - self.sent_first.0 + 1) as usize;
            let crowded =
                retained > RETAINED_ENTRIES_MAX || self.retained_bytes > RETAINED_BYTES_MAX;
            if !everywhere && !expired && !crowded {
                break;
            }
            if !everywhere {
                reached!("ledger writer: a committed entry left to repair");
            }
            if expired {
                for (position, member) in self.members.iter_mut().enumerate() {
                    // Requests to it would only pile up.
                    member.is_stalled |= front.in_flight >> position & 1 == 1;
                }
            }
            self.retained_bytes -= front.entry.payload.len().min(self.retained_bytes);
            self.sent.pop_front();
            self.sent_first = self.sent_first.next();
        }
    }

    fn time_out(&mut self, now: Instant) {
        let head = self.confirmed.next();
        let late = self
            .sent(head)
            .is_some_and(|sent| now.since(sent.appended_at) >= self.settings.add_timeout);
        if late {
            reached!("ledger writer: an entry timed out");
            self.end(if mutant!("T10") { WriterEnd::Closed } else { WriterEnd::TimedOut(head) });
        }
    }

    fn end(&mut self, reason: WriterEnd) {
        self.ended = true;
        self.queued.clear();
        self.sent.clear();
        self.effects.push(WriterEffect::Ended(reason));
    }
}
