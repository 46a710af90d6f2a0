//! Snapshots: forgetting the log a snapshot covers, and sending the snapshot to who needs what was
//! forgotten, piece by piece, one piece on its way at a time.

use super::machine::Receiving;
use super::progress::Feeding;
use super::{Body, Effect, Entry, Index, Log, Machine, MemberId, SnapshotMark, SnapshotPart};
use crate::{invariant, mutant, reached};

impl Machine {
    pub(super) fn on_snapshot_taken(&mut self, mark: SnapshotMark, keep_from: Index) {
        if mark.index <= self.log.snapshot().index {
            return;
        }
        invariant!(mark.index <= self.commit, "a snapshot of what is not committed");
        self.log.compact(mark, keep_from);
    }

    /// What a snapshot of the state after `index`, a committed entry still held, stands for.
    pub fn mark_at(&self, index: Index) -> Option<SnapshotMark> {
        let term = self.log.term(index)?;
        let membership = if mutant!("M-snapshot-members") {
            self.log.membership_at(self.log.start_index()).clone()
        } else {
            self.log.membership_at(index).clone()
        };
        Some(SnapshotMark { index, term, membership })
    }

    pub(super) fn begin_snapshot(&mut self, to: MemberId) {
        reached!("consensus: a follower was sent a snapshot");
        let index = self.log.snapshot().index;
        if let Some(progress) = self.leading().and_then(|leading| leading.progress.get_mut(&to)) {
            progress.feeding = Feeding::Snapshot { index, offset: 0 };
        }
        self.send_snapshot(to, 0);
    }

    fn send_snapshot(&mut self, to: MemberId, offset: u64) {
        let (term, mark) = (self.term(), self.log.snapshot().clone());
        self.effects.push(Effect::SendSnapshot { to, term, mark, offset });
    }

    /// A piece or its answer was lost, or the snapshot was replaced by a newer one: called with a heartbeat.
    pub(super) fn resend_snapshots(&mut self) {
        let current = self.log.snapshot().index;
        let mut again = Vec::new();
        let Some(leading) = self.leading() else { return };
        for (member, progress) in &mut leading.progress {
            if let Feeding::Snapshot { index, offset } = &mut progress.feeding {
                if *index != current {
                    (*index, *offset) = (current, 0);
                }
                again.push((*member, *offset));
            }
        }
        for (member, offset) in again {
            self.send_snapshot(member, offset);
        }
    }

    pub(super) fn on_snapshot_answer(
        &mut self,
        from: MemberId,
        answered: Index,
        next: u64,
        done: bool,
    ) {
        let Some(progress) = self.leading().and_then(|leading| leading.progress.get_mut(&from))
        else {
            return;
        };
        progress.active = true;
        let Feeding::Snapshot { index, offset } = &mut progress.feeding else { return };
        if *index != answered {
            return;
        }
        if done {
            progress.matched = progress.matched.max(answered);
            let next = progress.matched + 1;
            progress.probe(next);
            self.advance_commit();
            self.replicate_to(from);
        } else if next != *offset {
            *offset = next;
            self.send_snapshot(from, next);
        }
    }

    pub(super) fn on_snapshot_part(&mut self, from: MemberId, part: SnapshotPart) {
        self.follow(from);
        let index = part.mark.index;
        let answer = |next, done| Body::SnapshotAnswer { index, next, done };
        if index <= self.commit {
            // Had already. Telling what matches lets the leader go on with entries.
            self.receiving = None;
            return self.send(from, answer(0, true));
        }
        let term = self.term();
        let begins = part.offset == 0;
        let goes_on = self.receiving.as_ref().is_some_and(|receiving| {
            receiving.mark == part.mark && receiving.term == term && receiving.next == part.offset
        });
        if !begins && !goes_on {
            let wanted = self
                .receiving
                .as_ref()
                .filter(|receiving| receiving.mark == part.mark && receiving.term == term)
                .map_or(0, |receiving| receiving.next);
            return self.send(from, answer(wanted, false));
        }
        let next = part.offset + part.data.len() as u64;
        self.effects.push(Effect::StorePart { offset: part.offset, data: part.data });
        if part.last {
            self.receiving = None;
            self.install(part.mark);
            self.send(from, answer(next, true));
        } else {
            self.receiving = Some(Receiving { mark: part.mark, term, next });
            self.send(from, answer(next, false));
        }
    }

    /// Begins the log anew behind the snapshot. Entries behind it are kept only if the log held the
    /// snapshot's last entry: then they may be acknowledged ones.
    fn install(&mut self, mut mark: SnapshotMark) {
        reached!("consensus: a snapshot was installed");
        if mutant!("M-install-members") {
            mark.membership = self.log.membership().clone();
        }
        let keeps = self.log.term(mark.index) == Some(mark.term);
        let entries: Vec<Entry> = if keeps {
            self.log.entries().filter(|entry| entry.index > mark.index).cloned().collect()
        } else {
            Vec::new()
        };
        self.log = Log::behind(mark.clone());
        for entry in &entries {
            self.log.push(entry.clone());
        }
        self.commit = mark.index;
        let hard_state = self.hard_state;
        self.effects.push(Effect::InstallSnapshot { mark, hard_state, entries });
        let membership = self.log.membership().clone();
        self.effects.push(Effect::MembershipChanged(membership));
    }
}
