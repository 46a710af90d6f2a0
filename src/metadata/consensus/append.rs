//! A follower's side of replication.

use super::machine::Part;
use super::{
    Append, AppendAnswer, AppendResult, Body, Effect, Entry, Index, Machine, MemberId, Write,
};
use crate::{invariant, mutant, reached};

impl Machine {
    /// Someone leads this term: follow, and leave it alone for an election time-out, also when what it says
    /// does not fit, or a member that is far behind would campaign for ever.
    pub(super) fn follow(&mut self, leader: MemberId) {
        invariant!(
            !matches!(self.part, Part::Leader(_)),
            "{} and {leader} both lead term {}",
            self.id,
            self.term()
        );
        self.part = Part::Follower;
        self.leader = Some(leader);
        self.is_quiet = true;
        self.effects.push(Effect::RestartElectionTimer);
    }

    pub(super) fn on_append(&mut self, from: MemberId, append: Append) {
        self.follow(from);
        let round = append.round;
        let answer = |result| Body::AppendAnswer(AppendAnswer { round, result });
        let Append { mut previous_index, mut previous_term, mut entries, commit, .. } = append;
        let start = self.log.start_index();
        if previous_index < start {
            // What stands before the log's start is committed, so the leader has the same.
            entries.retain(|entry| entry.index > start);
            previous_index = start;
            previous_term = self.log.term(start).unwrap_or(0);
        }
        if self.log.term(previous_index) != Some(previous_term) {
            reached!("consensus: an append did not fit");
            if mutant!("M17") {
                self.effects.retain(|effect| *effect != Effect::RestartElectionTimer);
            }
            let conflict = self.conflict(previous_index);
            return self.send(from, answer(conflict));
        }
        // Only this much of the log is known to be the leader's; behind it may stand anything.
        let matched = entries.last().map_or(previous_index, |entry| entry.index);
        let early = mutant!("M-unsynced-append");
        if early {
            self.send(from, answer(AppendResult::Matched(matched)));
        }
        self.take_entries(entries);
        let known = if mutant!("M2") { self.log.last_index() } else { matched };
        self.commit_to(commit.min(known));
        if !early {
            self.send(from, answer(AppendResult::Matched(matched)));
        }
    }

    fn conflict(&self, refused: Index) -> AppendResult {
        match self.log.term(refused) {
            Some(term) => AppendResult::Conflict {
                refused,
                hint_index: self.log.first_of_term(refused, self.commit),
                hint_term: Some(term),
            },
            None => AppendResult::Conflict {
                refused,
                hint_index: self.log.last_index() + 1,
                hint_term: None,
            },
        }
    }

    /// Writes what is not there yet. Entries that are there already stay: an old message must not cut off
    /// what a newer one has put behind them.
    fn take_entries(&mut self, mut entries: Vec<Entry>) {
        let has = |entry: &Entry| {
            if mutant!("M19") {
                return entry.index <= self.log.last_index();
            }
            !mutant!("M-truncate") && self.log.term(entry.index) == Some(entry.term)
        };
        let new = entries.iter().position(|entry| !has(entry)).unwrap_or(entries.len());
        entries.drain(..new);
        let Some(first) = entries.first() else { return };
        invariant!(
            first.index > self.commit || mutant!("M-truncate"),
            "committed entry {} would be replaced, commit is {}",
            first.index,
            self.commit
        );
        if first.index <= self.log.last_index() {
            reached!("consensus: a follower's tail was replaced");
            self.log.truncate_from(first.index);
        }
        for entry in &entries {
            self.log.push(entry.clone());
        }
        self.effects.push(Effect::Persist(Write { hard_state: None, entries }));
    }
}
