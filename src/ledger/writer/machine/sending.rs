//! Sending: sealing what is new, and giving bookies what they are owed.

use super::{Sent, WriterEffect, WriterMachine};
use crate::domain::{Entry, EntryId, Instant};
use crate::reached;

/// Entries in one request to a bookie.
const BATCH_ENTRIES_MAX: usize = 4096;
/// Payload bytes in one request to a bookie (the entry that passes it is the last).
const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Entries sent to a failing bookie at a time, to see whether it is back.
const PROBE_ENTRIES_MAX: usize = 32;

impl WriterMachine {
    /// Seals what was appended this turn with the last add confirmed of now and sends it to its write set.
    pub(super) fn send_new(&mut self, now: Instant) {
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
            let member = &self.members[position];
            if member.failure.is_some() || member.is_owed || member.is_stalled {
                // What it misses already goes first; `send_again` takes these along.
                self.members[position].is_owed = true;
            } else {
                self.send_from(position, first, usize::MAX, now);
            }
        }
    }

    /// Sends what bookies are owed: all of it to a bookie that answers, a little to one that fails.
    pub(super) fn send_again(&mut self, now: Instant) {
        for position in 0..self.members.len() {
            let member = &self.members[position];
            if !member.is_owed || member.is_stalled {
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
                        reached!("ledger writer: a failing bookie tried again");
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
    pub(super) fn send_from(
        &mut self,
        position: usize,
        from: usize,
        limit: usize,
        now: Instant,
    ) -> usize {
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

    pub(super) fn tell(&mut self, now: Instant) {
        if self.confirmed > self.told && now.since(self.last_sent_at) >= self.settings.tell_interval
        {
            self.told = self.confirmed;
            self.effects.push(WriterEffect::TellLastAddConfirmed(self.confirmed));
        }
    }
}
