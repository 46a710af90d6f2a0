//! Recovered entries on their way back to a full write set. The copy that was found may be the only one,
//! so the ledger is closed only when an ack quorum holds each; more copies are waited for a short while.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::{AddAnswer, BookieId, Entry, EntryId, Instant};
use crate::ledger::ensemble::{Member, Striping};
use crate::ledger::{Fragment, Quorum};
use crate::{mutant, reached};

/// Entries in one request.
const BATCH_ENTRIES_MAX: usize = 1024;
/// Payload bytes in one request (the entry that passes it is the last).
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Entries held here before recovery stops reading on.
const HELD_ENTRIES_MAX: usize = 2048;
/// Payload bytes of the same.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;

struct Written {
    entry: Entry,
    since: Instant,
    acked: u64,
    in_flight: u64,
}

/// The entries being written back and the bookies they go to.
pub(super) struct WriteBack {
    quorum: Quorum,
    striping: Striping,
    members: Vec<Member>,
    /// The last fragment as it will be stored, and fragments begun by replacing bookies. Nothing of it is
    /// in metadata before the ledger is closed: a later recoverer must read where the writer wrote.
    fragments: Vec<Fragment>,
    written: VecDeque<Written>,
    first: EntryId,
    held_bytes: usize,
    /// Entries up to here are on an ack quorum.
    secured: EntryId,
}

impl WriteBack {
    pub(super) fn new(quorum: Quorum, fragment: &Fragment, start: EntryId) -> Self {
        Self {
            quorum,
            striping: Striping::new(quorum),
            members: fragment.ensemble.iter().copied().map(Member::new).collect(),
            fragments: vec![fragment.clone()],
            written: VecDeque::new(),
            first: start.next(),
            held_bytes: 0,
            secured: start,
        }
    }

    /// The entry that [`WriteBack::push`] expects.
    pub(super) fn next(&self) -> EntryId {
        EntryId(self.first.0 + self.written.len() as i64)
    }

    /// Entries up to here are on an ack quorum.
    pub(super) fn secured(&self) -> EntryId {
        self.secured
    }

    /// The ensemble written to now.
    pub(super) fn ensemble(&self) -> Vec<BookieId> {
        self.members.iter().map(|member| member.bookie).collect()
    }

    /// The fragments that take the place of the last one.
    pub(super) fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    pub(super) fn push(&mut self, entry: Entry, now: Instant) {
        self.held_bytes += entry.payload.len();
        let (acked, secured) = if mutant!("L-unwritten") {
            (self.striping.mask(entry.entry), entry.entry)
        } else {
            (0, self.secured)
        };
        self.secured = secured;
        self.written.push_back(Written { entry, since: now, acked, in_flight: 0 });
        for member in &mut self.members {
            member.is_owed = true;
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.written.len() < HELD_ENTRIES_MAX && self.held_bytes < HELD_BYTES_MAX
    }

    pub(super) fn answered(&mut self, answer: AddAnswer, now: Instant) {
        let Some(position) = self.members.iter().position(|m| m.bookie == answer.bookie) else {
            return;
        };
        let bit = 1_u64 << position;
        for id in &answer.entries {
            let Ok(index) = usize::try_from(id.0 - self.first.0) else { continue };
            if !self.striping.holds(position, *id) {
                continue;
            }
            if let Some(written) = self.written.get_mut(index) {
                written.in_flight &= !bit;
                if answer.result.is_ok() {
                    written.acked |= bit;
                }
            }
        }
        match answer.result {
            Ok(()) => self.members[position].failure = None,
            Err(error) => self.members[position].fail(error, now),
        }
        let copies = if mutant!("L-one-copy") { 1 } else { self.quorum.ack };
        while let Some(index) = usize::try_from(self.secured.0 + 1 - self.first.0).ok()
            && self.written.get(index).is_some_and(|w| w.acked.count_ones() >= copies)
        {
            self.secured = self.secured.next();
        }
    }

    /// True if every entry is on its whole write set.
    pub(super) fn is_everywhere(&self) -> bool {
        self.written.iter().all(|w| w.acked == self.striping.mask(w.entry.entry))
    }

    /// True if a bookie that still lacks an entry has not failed: more copies are worth a short wait.
    pub(super) fn expects_more(&self) -> bool {
        self.written.iter().any(|written| {
            let lacking = self.striping.mask(written.entry.entry) & !written.acked;
            self.members
                .iter()
                .enumerate()
                .any(|(position, member)| lacking >> position & 1 == 1 && member.failure.is_none())
        })
    }

    /// Drops what needs no more attention: entries on their whole write set, and, when too much is held,
    /// entries on an ack quorum.
    pub(super) fn trim(&mut self) {
        while let Some(front) = self.written.front() {
            let is_everywhere = front.acked == self.striping.mask(self.first);
            let may_go = self.first <= self.secured && (is_everywhere || !self.has_room());
            if !may_go {
                break;
            }
            self.held_bytes -= front.entry.payload.len().min(self.held_bytes);
            self.written.pop_front();
            self.first = self.first.next();
        }
    }

    /// What to send now: to every bookie that is owed something and is not being waited for.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(BookieId, Vec<Entry>)> {
        let mut sends = Vec::new();
        for (position, member) in self.members.iter_mut().enumerate() {
            let is_waiting = member.failure.as_ref().is_some_and(|failure| failure.retry_at > now);
            if !member.is_owed || is_waiting {
                continue;
            }
            member.probed(now);
            member.is_owed = false;
            let bit = 1_u64 << position;
            let striping = self.striping;
            let mut entries = Vec::new();
            let mut bytes = 0;
            for written in &mut self.written {
                let is_due = (written.acked | written.in_flight) & bit == 0
                    && striping.holds(position, written.entry.entry);
                if is_due && entries.len() < BATCH_ENTRIES_MAX && bytes < BATCH_BYTES_MAX {
                    bytes += written.entry.payload.len();
                    written.in_flight |= bit;
                    entries.push(written.entry.clone());
                } else if is_due {
                    member.is_owed = true;
                    break;
                }
            }
            if !entries.is_empty() {
                sends.push((member.bookie, entries));
            }
        }
        sends
    }

    /// When to look again: retries are due, or the oldest unsecured entry is over `limit` old.
    pub(super) fn next_deadline(&self, limit: Duration) -> Option<Instant> {
        let retries = self
            .members
            .iter()
            .filter(|member| member.is_owed)
            .filter_map(|member| member.failure.as_ref())
            .map(|failure| failure.retry_at);
        let oldest = self.oldest_unsecured().map(|since| since + limit);
        retries.chain(oldest).min()
    }

    /// Since when the oldest unsecured entry is waited for.
    pub(super) fn oldest_unsecured(&self) -> Option<Instant> {
        let index = usize::try_from(self.secured.0 + 1 - self.first.0).ok()?;
        self.written.get(index).map(|written| written.since)
    }

    /// Positions whose bookies fail while some entry waits for them.
    pub(super) fn failing(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|p| self.members[*p].failure.is_some()).collect()
    }

    /// True if so many bookies failed for good that an entry cannot reach an ack quorum.
    pub(super) fn is_hopeless(&self) -> bool {
        let tolerated = self.quorum.write - self.quorum.ack;
        self.written.iter().any(|written| {
            let lost = self.members.iter().enumerate().filter(|(position, member)| {
                self.striping.holds(*position, written.entry.entry)
                    && written.acked >> position & 1 == 0
                    && member.failure.as_ref().is_some_and(|failure| failure.is_firm())
            });
            written.entry.entry > self.secured && lost.count() > tolerated as usize
        })
    }

    /// Sends unsecured entries to other bookies from now on.
    pub(super) fn replace(&mut self, replacements: &[(usize, BookieId)]) {
        if replacements.is_empty() {
            return;
        }
        reached!("ledger recovery: a bookie replaced locally");
        let start = self.secured.next();
        while self.first < start && self.written.pop_front().is_some() {
            self.first = self.first.next();
        }
        self.held_bytes = self.written.iter().map(|w| w.entry.payload.len()).sum();
        for (position, bookie) in replacements {
            self.members[*position] = Member::new(*bookie);
            self.members[*position].is_owed = true;
            for written in &mut self.written {
                if !mutant!("L-replaced") {
                    written.acked &= !(1 << position);
                }
                written.in_flight &= !(1 << position);
            }
        }
        let ensemble = self.ensemble();
        match self.fragments.last_mut() {
            Some(last) if last.first_entry == start => last.ensemble = ensemble,
            _ => self.fragments.push(Fragment { first_entry: start, ensemble }),
        }
    }

    /// Who failed and how, for an error message.
    pub(super) fn detail(&self) -> String {
        let failures = self.members.iter().filter_map(|member| {
            let failure = member.failure.as_ref()?;
            Some(format!("bookie {}: {}", member.bookie, failure.error))
        });
        let detail = failures.collect::<Vec<_>>().join("; ");
        if detail.is_empty() { "no answer".to_owned() } else { detail }
    }
}
