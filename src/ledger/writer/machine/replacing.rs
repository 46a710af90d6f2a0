//! Replacing failed bookies: when to look for spares, and what a finished change does to what is pending.

use std::time::Duration;

use super::{ChangeOutcome, WriterEffect, WriterMachine};
use crate::domain::{BookieId, Instant};
use crate::ledger::WriterEnd;
use crate::ledger::ensemble::Member;
use crate::{invariant, mutant, reached};

/// A bookie failing for this long is replaced if there is a spare.
pub(super) const CHANGE_AFTER: Duration = Duration::from_secs(1);
/// Pause between attempts to replace bookies.
const CHANGE_PAUSE: Duration = Duration::from_secs(1);
/// Ensemble changes of one writer; then it ends and the owner rolls over.
const CHANGES_MAX: u32 = 100;

impl WriterMachine {
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

    /// Silence this long of an entry's bookie counts as a failure.
    pub(super) fn silence(&self) -> Duration {
        self.settings.add_timeout / 2
    }

    pub(super) fn look_for_replacements(&mut self, now: Instant) {
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
                    || self.members[*position].is_stalled
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
    pub(super) fn end_if_hopeless(&mut self) {
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
}
