//! A leader's side of replication: what is sent to whom, and what answers mean.

use super::machine::Part;
use super::progress::Feeding;
use super::{Append, AppendAnswer, AppendResult, Body, Effect, Index, Machine, MemberId, Term};
use crate::{mutant, reached};

impl Machine {
    pub(super) fn on_heartbeat(&mut self) {
        let Part::Leader(leading) = &mut self.part else { return };
        for progress in leading.progress.values_mut() {
            match &mut progress.feeding {
                // Whatever was on its way has had its time.
                Feeding::Probe { waiting } => *waiting = false,
                Feeding::Replicate { inflight } => {
                    inflight.pop_front();
                }
                Feeding::Snapshot { .. } => {}
            }
        }
        for member in self.others() {
            self.replicate_to(member);
            let is_probe = self
                .leading()
                .and_then(|leading| leading.progress.get(&member))
                .is_some_and(|progress| matches!(progress.feeding, Feeding::Probe { .. }));
            // To one that is probed an `Append` has just gone.
            if !is_probe {
                self.send_heartbeat(member);
            }
        }
        self.resend_snapshots();
    }

    /// Sends what each member lacks, within its window.
    pub(super) fn replicate_to_all(&mut self) {
        for member in self.others() {
            self.replicate_to(member);
        }
    }

    pub(super) fn replicate_to(&mut self, member: MemberId) {
        while self.send_entries(member) {}
    }

    /// Sends one `Append`, if the member may be sent one; true if another may follow.
    fn send_entries(&mut self, member: MemberId) -> bool {
        let settings = self.settings;
        let Part::Leader(leading) = &mut self.part else { return false };
        let round = leading.reads.round();
        let Some(progress) = leading.progress.get_mut(&member) else { return false };
        let next = progress.next;
        let is_full = match &progress.feeding {
            Feeding::Probe { waiting } => *waiting,
            Feeding::Replicate { inflight } => inflight.len() >= settings.inflight,
            Feeding::Snapshot { .. } => true,
        };
        let last = self.log.last_index();
        let is_probe = matches!(progress.feeding, Feeding::Probe { .. });
        if is_full || (next > last && !is_probe) {
            return false;
        }
        let previous_index = next - 1;
        let previous = (self.log.start_index() <= previous_index)
            .then(|| self.log.term(previous_index))
            .flatten();
        let Some(previous_term) = previous else {
            self.begin_snapshot(member);
            return false;
        };
        let entries = self.log.slice(next, last, settings.append_entries, settings.append_bytes);
        let end = previous_index + entries.len() as u64;
        match &mut progress.feeding {
            Feeding::Probe { waiting } => *waiting = true,
            Feeding::Replicate { inflight } => {
                inflight.push_back(end);
                progress.next = end + 1;
            }
            Feeding::Snapshot { .. } => {}
        }
        let commit = self.commit;
        let append = Append { previous_index, previous_term, entries, commit, round };
        self.send(member, Body::Append(append));
        !is_probe && end < last
    }

    /// An `Append` without entries: shows that the leader is there, carries commit index and read round, and
    /// finds out when an earlier one was lost.
    pub(super) fn send_heartbeat(&mut self, member: MemberId) {
        let Part::Leader(leading) = &self.part else { return };
        let Some(progress) = leading.progress.get(&member) else { return };
        let place = match progress.feeding {
            Feeding::Replicate { .. } => progress.next - 1,
            _ => progress.matched,
        };
        // Index 0 is before every log.
        let (previous_index, previous_term) =
            self.log.term(place).map_or((0, 0), |term| (place, term));
        let append = Append {
            previous_index,
            previous_term,
            entries: Vec::new(),
            commit: self.commit,
            round: leading.reads.round(),
        };
        self.send(member, Body::Append(append));
    }

    pub(super) fn on_append_answer(&mut self, from: MemberId, answer: AppendAnswer) {
        let Some(leading) = self.leading() else { return };
        let Some(progress) = leading.progress.get_mut(&from) else { return };
        progress.active = true;
        progress.round = progress.round.max(answer.round);
        match answer.result {
            AppendResult::Matched(index) => self.on_matched(from, index),
            AppendResult::Conflict { refused, hint_index, hint_term } => {
                self.on_conflict(from, refused, hint_index, hint_term);
            }
        }
        self.confirm_reads();
    }

    fn on_matched(&mut self, from: MemberId, index: Index) {
        let last = self.log.last_index();
        let Some(progress) = self.leading().and_then(|leading| leading.progress.get_mut(&from))
        else {
            return;
        };
        if index > last {
            return;
        }
        let is_news = index > progress.matched;
        progress.matched = progress.matched.max(index);
        progress.next = progress.next.max(index + 1);
        match &mut progress.feeding {
            Feeding::Replicate { inflight } => inflight.retain(|end| *end > index),
            Feeding::Probe { .. } if index + 1 >= progress.next => {
                progress.feeding = Feeding::Replicate { inflight: Default::default() };
            }
            Feeding::Probe { .. } | Feeding::Snapshot { .. } => {}
        }
        if is_news {
            self.advance_commit();
            self.continue_transfer(from);
        }
        self.replicate_to(from);
    }

    /// Steps back over whole terms: to the end of the leader's own entries of the follower's term, or else
    /// before the follower's entries of that term.
    fn on_conflict(
        &mut self,
        from: MemberId,
        refused: Index,
        hint_index: Index,
        hint_term: Option<Term>,
    ) {
        let back = hint_term
            .and_then(|term| self.log.last_of_term(term, refused.saturating_sub(1)))
            .map_or(hint_index, |last| last + 1);
        let Some(progress) = self.leading().and_then(|leading| leading.progress.get_mut(&from))
        else {
            return;
        };
        let is_current = match progress.feeding {
            Feeding::Probe { .. } => refused == progress.next - 1,
            Feeding::Replicate { .. } => refused > progress.matched,
            Feeding::Snapshot { .. } => false,
        };
        if !is_current || refused == 0 {
            return;
        }
        reached!("consensus: the leader stepped back for a follower");
        progress.probe(back.min(refused));
        self.replicate_to(from);
    }

    pub(super) fn on_unreachable(&mut self, member: MemberId) {
        let Some(progress) = self.leading().and_then(|leading| leading.progress.get_mut(&member))
        else {
            return;
        };
        if matches!(progress.feeding, Feeding::Replicate { .. }) {
            let next = progress.matched + 1;
            progress.probe(next);
            // Tried again with the next heartbeat.
            progress.feeding = Feeding::Probe { waiting: true };
        }
    }

    pub(super) fn on_persisted(&mut self, index: Index, term: Term) {
        // Of another term it is another entry, which has been replaced since.
        if self.log.term(index) != Some(term) && !mutant!("M4") {
            return;
        }
        let Some(leading) = self.leading() else { return };
        leading.persisted = leading.persisted.max(index);
        self.advance_commit();
    }

    /// Puts an entry of this term behind the log.
    pub(super) fn append_own(&mut self, payload: super::Payload) -> Index {
        let entry = super::Entry { index: self.log.last_index() + 1, term: self.term(), payload };
        let index = entry.index;
        self.log.push(entry.clone());
        let write = super::Write { hard_state: None, entries: vec![entry] };
        self.effects.push(Effect::Persist(write));
        index
    }
}
