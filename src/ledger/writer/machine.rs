//! The writer's decisions. Events in (`append`, `answered`, `changed`, …), then one `settle` a turn that
//! emits what to do. Pure: `now` is passed in, nothing is awaited.
//!
//! Kept here: ids are dense; an entry is complete when `Qa` of its write set *in the current ensemble*
//! have it; entries are confirmed in order and never while the ensemble is changing; an entry is sealed
//! once, so all its copies are byte-equal for ever; what is pending when the writer ends is unknown.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::super::ensemble::{Member, Striping};
use super::super::{Quorum, WriterEnd};

use crate::domain::{AddAnswer, AddError, BookieId, Entry, EntryId, Instant, LedgerId};
use crate::{invariant, mutant, reached};

/// Entries in one request to a bookie.
const BATCH_ENTRIES_MAX: usize = 4096;
/// Payload bytes in one request to a bookie (the entry that passes it is the last).
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Entries sent to a failing bookie at a time, to see whether it is back.
const PROBE_ENTRIES_MAX: usize = 32;
/// Committed entries kept for bookies of their write set that still lack them.
const RETAINED_ENTRIES_MAX: usize = 8192;
/// Payload bytes of the same.
const RETAINED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A bookie failing for this long is replaced if there is a spare.
const CHANGE_AFTER: Duration = Duration::from_secs(1);
/// Pause between attempts to replace bookies.
const CHANGE_PAUSE: Duration = Duration::from_secs(1);
/// Ensemble changes of one writer; then it ends and the owner rolls over.
const CHANGES_MAX: u32 = 100;

/// What the driver is to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterEffect {
    /// Send entries to a bookie.
    Send {
        /// Whom.
        bookie: BookieId,
        /// Sealed entries in id order, of the bookie's write sets only.
        entries: Vec<Entry>,
    },
    /// Everything up to here is committed.
    Confirmed {
        /// The last add confirmed.
        up_to: EntryId,
        /// Payload bytes of the ledger up to it.
        length: u64,
        /// Payload bytes of the entries confirmed by this effect.
        bytes: usize,
    },
    /// Tell the ensemble the last add confirmed.
    TellLastAddConfirmed(EntryId),
    /// Look for spares for these positions and call [`WriterMachine::replace`] with what was found.
    FindReplacements(Vec<usize>),
    /// Put the change into metadata, then call [`WriterMachine::changed`].
    ChangeEnsemble {
        /// First entry under the new ensemble.
        start: EntryId,
        /// Who goes and who comes.
        replacements: Vec<(BookieId, BookieId)>,
    },
    /// The writer is finished; nothing follows.
    Ended(WriterEnd),
}

/// What came of an ensemble change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The last fragment in metadata has this ensemble.
    Done(Vec<BookieId>),
    /// Metadata certainly did not change.
    NotDone,
    /// The record is no longer open.
    Deposed,
}

/// Facts that do not change over a writer's life.
#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// The ledger.
    pub ledger: LedgerId,
    /// Its replication.
    pub quorum: Quorum,
    /// See [`super::super::LedgerConfig::add_timeout`].
    pub add_timeout: Duration,
    /// See [`super::super::LedgerConfig::explicit_last_add_confirmed_interval`].
    pub tell_interval: Duration,
}

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

    /// The answer to [`WriterEffect::FindReplacements`]: the spares found, possibly none.
    pub fn replace(&mut self, replacements: &[(usize, BookieId)], now: Instant) {
        if self.ended || self.changing.is_some() {
            return;
        }
        self.next_change_at = now + CHANGE_PAUSE;
        if replacements.is_empty() {
            self.end_if_hopeless();
            return;
        }
        if self.changes >= CHANGES_MAX {
            self.end(WriterEnd::NotEnoughBookies(format!("{CHANGES_MAX} ensemble changes")));
            return;
        }
        self.changes += 1;
        let start = self.confirmed.next();
        self.changing = Some(start);
        let replacements = replacements
            .iter()
            .filter_map(|(position, to)| Some((self.members.get(*position)?.bookie, *to)))
            .collect();
        self.effects.push(WriterEffect::ChangeEnsemble { start, replacements });
    }

    /// The answer to [`WriterEffect::ChangeEnsemble`].
    pub fn changed(&mut self, outcome: ChangeOutcome, now: Instant) {
        let Some(start) = self.changing else { return };
        if self.ended {
            return;
        }
        match outcome {
            ChangeOutcome::Deposed => {
                reached!("ledger writer: deposed while changing the ensemble");
                self.end(WriterEnd::Fenced);
            }
            ChangeOutcome::NotDone => {
                self.changing = None;
                self.next_change_at = now + CHANGE_PAUSE;
            }
            ChangeOutcome::Done(ensemble) => {
                reached!("ledger writer: ensemble changed");
                invariant!(
                    ensemble.len() == self.members.len(),
                    "ledger {}: ensemble of another size",
                    self.settings.ledger
                );
                invariant!(
                    start == self.confirmed.next() || mutant!("L8"),
                    "ledger {}: confirmed while changing",
                    self.settings.ledger
                );
                self.changing = None;
                while self.sent_first < start && self.sent.pop_front().is_some() {
                    self.sent_first = self.sent_first.next();
                }
                self.retained_bytes = 0;
                for (position, bookie) in ensemble.into_iter().enumerate() {
                    if self.members[position].bookie == bookie {
                        continue;
                    }
                    self.members[position] = Member::new(bookie);
                    self.members[position].is_owed = true;
                    for sent in &mut self.sent {
                        // What the one before acknowledged does not say that this one has it.
                        if !mutant!("L7") {
                            sent.acked &= !(1 << position);
                        }
                        sent.in_flight &= !(1 << position);
                    }
                }
            }
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
        sent.acked.count_ones() >= needed
    }

    /// Walks from the oldest pending entry while entries are complete.
    fn confirm(&mut self) {
        if self.changing.is_some() && !mutant!("L8") {
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

    /// Seals what was appended this turn with the last add confirmed of now and sends it to its write set.
    fn send_new(&mut self, now: Instant) {
        if self.queued.is_empty() {
            return;
        }
        let first = self.sent.len();
        for (payload, appended_at) in self.queued.drain(..) {
            let id = EntryId(self.sent_first.0 + self.sent.len() as i64);
            self.sealed_length += payload.len() as u64;
            let entry =
                Entry::seal(self.settings.ledger, id, self.confirmed, self.sealed_length, payload);
            self.sent.push_back(Sent { entry, appended_at, acked: 0, in_flight: 0 });
        }
        for position in 0..self.members.len() {
            if self.members[position].failure.is_some() || self.members[position].is_owed {
                // What it misses already goes first; `send_again` takes these along.
                self.members[position].is_owed = true;
            } else {
                self.send_from(position, first, usize::MAX, now);
            }
        }
    }

    /// Sends what bookies are owed: all of it to a bookie that answers, a little to one that fails.
    fn send_again(&mut self, now: Instant) {
        for position in 0..self.members.len() {
            let member = &self.members[position];
            if !member.is_owed {
                continue;
            }
            match &member.failure {
                None => {
                    self.send_from(position, 0, usize::MAX, now);
                    self.members[position].is_owed = false;
                }
                Some(failure) if failure.retry_at <= now => {
                    let bit = 1_u64 << position;
                    let is_probing = self.sent.iter().any(|sent| sent.in_flight & bit != 0);
                    if !is_probing {
                        let count = self.send_from(position, 0, PROBE_ENTRIES_MAX, now);
                        self.members[position].is_owed = count > 0;
                    }
                    self.members[position].probed(now);
                }
                Some(_) => {}
            }
        }
    }

    /// Sends at most `limit` entries from index `from` on that `position` should have and lacks.
    fn send_from(&mut self, position: usize, from: usize, limit: usize, now: Instant) -> usize {
        let bit = 1_u64 << position;
        let bookie = self.members[position].bookie;
        let striping = self.striping;
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut count = 0;
        for sent in self.sent.range_mut(from..) {
            if (sent.acked | sent.in_flight) & bit != 0
                || !striping.holds(position, sent.entry.entry)
            {
                continue;
            }
            sent.in_flight |= bit;
            self.told = self.told.max(sent.entry.last_add_confirmed);
            bytes += sent.entry.payload.len();
            count += 1;
            entries.push(sent.entry.clone());
            if entries.len() >= BATCH_ENTRIES_MAX || bytes >= BATCH_BYTES_MAX || count >= limit {
                bytes = 0;
                let entries = std::mem::take(&mut entries);
                self.effects.push(WriterEffect::Send { bookie, entries });
                if count >= limit {
                    break;
                }
            }
        }
        if !entries.is_empty() {
            self.effects.push(WriterEffect::Send { bookie, entries });
        }
        if count > 0 {
            self.last_sent_at = now;
        }
        count
    }

    fn tell(&mut self, now: Instant) {
        if self.confirmed > self.told && now.since(self.last_sent_at) >= self.settings.tell_interval
        {
            self.told = self.confirmed;
            self.effects.push(WriterEffect::TellLastAddConfirmed(self.confirmed));
        }
    }

    /// Silence this long of an entry's bookie counts as a failure.
    fn silence(&self) -> Duration {
        self.settings.add_timeout / 2
    }

    fn look_for_replacements(&mut self, now: Instant) {
        if self.changing.is_some() || now < self.next_change_at {
            return;
        }
        let silent = match self.sent(self.confirmed.next()) {
            Some(head) if now.since(head.appended_at) >= self.silence() => {
                self.striping.mask(head.entry.entry) & !head.acked
            }
            _ => 0,
        };
        let failed: Vec<usize> = (0..self.members.len())
            .filter(|position| {
                silent >> position & 1 == 1
                    || self.members[*position].failure.as_ref().is_some_and(|failure| {
                        failure.is_firm() || now.since(failure.since) >= CHANGE_AFTER
                    })
            })
            .collect();
        if !failed.is_empty() {
            self.next_change_at = now + CHANGE_PAUSE;
            self.effects.push(WriterEffect::FindReplacements(failed));
        }
    }

    /// Without spares a bookie that only might come back is waited for, within the add time-out.
    fn end_if_hopeless(&mut self) {
        let firm = self.members.iter().enumerate().fold(0_u64, |mask, (position, member)| {
            let is_firm = member.failure.as_ref().is_some_and(|failure| failure.is_firm());
            mask | u64::from(is_firm) << position
        });
        let tolerated = self.settings.quorum.write - self.settings.quorum.ack;
        let head = self.confirmed.next();
        let is_hopeless =
            self.sent.range(self.index(head).unwrap_or(0).min(self.sent.len())..).any(|sent| {
                let lost = self.striping.mask(sent.entry.entry) & firm & !sent.acked;
                lost.count_ones() > tolerated
            });
        if is_hopeless {
            reached!("ledger writer: too many bookies failed for good");
            let detail: Vec<String> = self
                .members
                .iter()
                .filter_map(|member| {
                    let failure = member.failure.as_ref()?;
                    Some(format!("bookie {}: {}", member.bookie, failure.error))
                })
                .collect();
            self.end(WriterEnd::NotEnoughBookies(detail.join("; ")));
        }
    }

    fn end(&mut self, reason: WriterEnd) {
        self.ended = true;
        self.queued.clear();
        self.sent.clear();
        self.effects.push(WriterEffect::Ended(reason));
    }
}
