//! Recovery's decisions. Generous on yes, strict on no: one good copy makes an entry part of the ledger;
//! only explicit absence at so many bookies that the rest is no ack quorum makes an end; anything else is
//! undecidable, and then nothing is decided.

use std::time::Duration;

use super::write_back::WriteBack;
use crate::domain::{
    AddAnswer, BookieId, Entry, EntryId, Instant, LastAddConfirmed, ReadError, ReadRequest,
};
use crate::ledger::ensemble::{Striping, every_write_set_covered};
use crate::ledger::reader::good_run;
use crate::ledger::{Fragment, LedgerRecord, RecoveryError};
use crate::{invariant, mutant, reached};

/// Payload bytes asked for at once.
const READ_BYTES_MAX: u32 = 1024 * 1024;
/// How long more than an ack quorum of copies is waited for.
const GRACE: Duration = Duration::from_millis(200);
/// A bookie failing to take entries back is replaced after this, if there is a spare.
const REPLACE_AFTER: Duration = Duration::from_secs(1);

/// What the driver is to do, in order.
#[derive(Clone, Debug)]
pub enum RecoveryEffect {
    /// Fence the ledger there and ask for its last add confirmed.
    Fence {
        /// Place in the last fragment's ensemble.
        position: usize,
        /// Whom.
        bookie: BookieId,
    },
    /// Read a run.
    Read {
        /// Place in the fragment's ensemble.
        position: usize,
        /// Whom.
        bookie: BookieId,
        /// What.
        request: ReadRequest,
    },
    /// Send recovery adds.
    Add {
        /// Whom.
        bookie: BookieId,
        /// The entries as they were found.
        entries: Vec<Entry>,
    },
    /// Look for spares for these positions and call [`RecoveryMachine::replace`].
    FindReplacements(Vec<usize>),
    /// Close the record.
    Close(RecoveredEnd),
    /// Give up this attempt; the ledger stays in recovery.
    Fail(RecoveryError),
}

/// Where the ledger ends, as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredEnd {
    /// The last entry.
    pub last_entry: EntryId,
    /// Bytes of payload.
    pub length: u64,
    /// What takes the place of the last fragment: itself, and fragments begun by this recovery.
    pub tail: Vec<Fragment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Vote {
    Silent,
    Absent,
    /// Fenced (phase one only).
    Fenced,
    /// Neither yes nor no: time-out, damage, not known.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fencing,
    Reading,
    /// Nothing was found beyond the start: its own entry tells the ledger's length.
    Measuring,
    /// Read to the end; write-backs are on their way.
    Finishing,
    Done,
}

/// See the module. One attempt; a new one begins with a new machine.
pub struct RecoveryMachine {
    record: LedgerRecord,
    /// The last fragment as it was when recovery was claimed. Reads always go there.
    fragment: Fragment,
    striping: Striping,
    read_batch: u32,
    add_timeout: Duration,
    phase: Phase,
    votes: Vec<Vote>,
    heard: EntryId,
    start: EntryId,
    /// The entry being decided.
    next: EntryId,
    is_read_due: bool,
    length: u64,
    write_back: WriteBack,
    grace_until: Option<Instant>,
    next_replacement_at: Option<Instant>,
    has_no_spares: bool,
    effects: Vec<RecoveryEffect>,
}

impl RecoveryMachine {
    /// Recovery of the ledger of `record`, which must be in recovery. `None` for a record without fragment.
    pub fn new(record: LedgerRecord, read_batch: u32, add_timeout: Duration) -> Option<Self> {
        let fragment = record.fragments.last()?.clone();
        let effects = fragment
            .ensemble
            .iter()
            .enumerate()
            .map(|(position, bookie)| RecoveryEffect::Fence { position, bookie: *bookie })
            .collect();
        Some(Self {
            striping: Striping::new(record.quorum),
            read_batch: read_batch.max(1),
            add_timeout,
            phase: Phase::Fencing,
            votes: vec![Vote::Silent; fragment.ensemble.len()],
            heard: EntryId::NONE,
            start: EntryId::NONE,
            next: EntryId::FIRST,
            is_read_due: false,
            length: 0,
            write_back: WriteBack::new(record.quorum, &fragment, EntryId::NONE),
            grace_until: None,
            next_replacement_at: None,
            has_no_spares: false,
            record,
            fragment,
            effects,
        })
    }

    /// A bookie's answer to [`RecoveryEffect::Fence`].
    pub fn fence_answered(&mut self, position: usize, answer: Result<LastAddConfirmed, ReadError>) {
        if self.phase != Phase::Fencing || position >= self.votes.len() {
            return;
        }
        let heard = || self.votes.iter().filter(|vote| **vote != Vote::Silent).count();
        let position = if mutant!("L28") { heard() } else { position };
        self.votes[position] = match answer {
            Ok(answer) => {
                self.heard = self.heard.max(answer.last_add_confirmed);
                match answer.fenced || mutant!("L-no-fence") {
                    true => Vote::Fenced,
                    false => Vote::Other("not fenced".to_owned()),
                }
            }
            Err(error) => Vote::Other(error.to_string()),
        };
        let is_covered = every_write_set_covered(self.record.quorum, |position| {
            self.votes[position] == Vote::Fenced
                || mutant!("L20") && self.votes[position] == Vote::Silent
        });
        if is_covered {
            // Whatever precedes the last fragment is committed; its bookies may know nothing of it.
            let floor = self.fragment.first_entry.previous();
            self.start = if mutant!("L2") { self.heard } else { self.heard.max(floor) };
            self.write_back = WriteBack::new(self.record.quorum, &self.fragment, self.start);
            self.phase = Phase::Reading;
            self.begin_round(self.start.next());
        } else if self.votes.iter().all(|vote| *vote != Vote::Silent) {
            reached!("ledger recovery: too few bookies fenced");
            self.fail_undecidable(EntryId::NONE);
        }
    }

    /// A bookie's answer to [`RecoveryEffect::Read`] of a run from `first`.
    pub fn read_answered(
        &mut self,
        position: usize,
        first: EntryId,
        answer: Result<Vec<Entry>, ReadError>,
        now: Instant,
    ) {
        let is_awaited = matches!(self.phase, Phase::Reading | Phase::Measuring);
        if !is_awaited || first != self.next || !self.striping.holds(position, first) {
            return;
        }
        let batch = self.batch(position, first);
        let vote =
            match answer.and_then(|entries| good_run(self.record.ledger, first, batch, entries)) {
                Ok(entries) => {
                    self.found(entries, now);
                    return;
                }
                Err(ReadError::Absent) => Vote::Absent,
                Err(error) => Vote::Other(error.to_string()),
            };
        self.votes[position] = vote;
        let count = |wanted: fn(&Vote) -> bool| {
            self.striping.positions(first).filter(|p| wanted(&self.votes[*p])).count()
        };
        let absent = count(|vote| match vote {
            Vote::Absent => true,
            Vote::Other(_) => mutant!("L22"),
            Vote::Silent => mutant!("L20"),
            Vote::Fenced => false,
        });
        let needed = if mutant!("L22") { 1 } else { self.record.quorum.coverage() as usize };
        let silent = count(|vote| *vote == Vote::Silent);
        if self.phase == Phase::Reading && absent >= needed {
            self.end_found();
        } else if silent == 0 {
            reached!("ledger recovery: an entry could not be decided");
            self.fail_undecidable(first);
        }
    }

    /// A bookie's answer to [`RecoveryEffect::Add`].
    pub fn add_answered(&mut self, answer: AddAnswer, now: Instant) {
        self.write_back.answered(answer, now);
    }

    /// The answer to [`RecoveryEffect::FindReplacements`]: the spares found, possibly none.
    pub fn replace(&mut self, replacements: &[(usize, BookieId)]) {
        if self.phase != Phase::Done {
            self.has_no_spares = replacements.is_empty();
            self.write_back.replace(replacements);
        }
    }

    /// The ensemble written back to.
    pub fn ensemble(&self) -> Vec<BookieId> {
        self.write_back.ensemble()
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The highest entry that is known to be part of the ledger, once it is fenced.
    pub(super) fn last_found(&self) -> EntryId {
        self.write_back.next().previous()
    }

    /// Ends a turn and answers what there is to do.
    pub fn settle(&mut self, now: Instant) -> Vec<RecoveryEffect> {
        if self.phase != Phase::Done {
            self.check_write_back(now);
        }
        if self.phase != Phase::Done {
            self.write_back.trim();
            for (bookie, entries) in self.write_back.take_due(now) {
                self.effects.push(RecoveryEffect::Add { bookie, entries });
            }
            if self.is_read_due && self.write_back.has_room() {
                self.is_read_due = false;
                self.send_reads();
            }
            self.finish(now);
        }
        std::mem::take(&mut self.effects)
    }

    /// When [`RecoveryMachine::settle`] must be called at the latest if nothing happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.phase == Phase::Done {
            return None;
        }
        let deadlines = [
            self.write_back.next_deadline(self.add_timeout),
            self.grace_until,
            self.write_back.oldest_unsecured().and(self.next_replacement_at),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn batch(&self, position: usize, first: EntryId) -> u32 {
        if self.phase == Phase::Measuring {
            return 1;
        }
        self.read_batch.min(self.striping.run_length(position, first))
    }

    fn begin_round(&mut self, first: EntryId) {
        self.next = first;
        self.votes.fill(Vote::Silent);
        self.is_read_due = true;
    }

    fn send_reads(&mut self) {
        let ensemble = match self.phase {
            Phase::Reading if mutant!("L4") => self.write_back.ensemble(),
            Phase::Measuring => match self.record.fragment_of(self.next) {
                Some(fragment) => fragment.ensemble.clone(),
                None => return,
            },
            _ => self.fragment.ensemble.clone(),
        };
        for position in self.striping.positions(self.next) {
            let request = ReadRequest {
                ledger: self.record.ledger,
                creator: self.record.creator,
                first: self.next,
                entries_max: self.batch(position, self.next),
                bytes_max: READ_BYTES_MAX,
                // With the fence a "no" stays a "no": this bookie will never take the entry from the
                // writer any more. The measured entry is committed: there is nothing to decide.
                fence: self.phase == Phase::Reading && !mutant!("L1") && !mutant!("L-no-fence"),
            };
            let Some(bookie) = ensemble.get(position).copied() else { continue };
            self.effects.push(RecoveryEffect::Read { position, bookie, request });
        }
    }

    fn found(&mut self, entries: Vec<Entry>, now: Instant) {
        let Some(last) = entries.last() else { return };
        self.length = last.length;
        let next = last.entry.next();
        if self.phase == Phase::Measuring {
            self.phase = Phase::Finishing;
            return;
        }
        for entry in entries {
            invariant!(
                entry.entry == self.write_back.next() || mutant!("L29"),
                "ledger {}: recovered {} out of order",
                self.record.ledger,
                entry.entry
            );
            let entry = if mutant!("L23") {
                let advancing = entry.entry.previous();
                Entry::seal(entry.ledger, entry.entry, advancing, entry.length, entry.payload)
            } else {
                // As the writer sealed it, so that all copies stay byte-equal. The last add confirmed it
                // carries was confirmed by the writer, so it is below every possible end.
                entry
            };
            self.write_back.push(entry, now);
        }
        self.begin_round(next);
    }

    fn end_found(&mut self) {
        let found = self.next.previous();
        if found == self.start && found >= EntryId::FIRST && !mutant!("L-length") {
            self.phase = Phase::Measuring;
            self.begin_round(found);
        } else {
            self.phase = Phase::Finishing;
        }
    }

    fn check_write_back(&mut self, now: Instant) {
        let Some(since) = self.write_back.oldest_unsecured() else {
            self.next_replacement_at = None;
            return;
        };
        let failing = self.write_back.failing();
        if failing.is_empty() {
            self.next_replacement_at = None;
        } else {
            let patience =
                if self.write_back.is_hopeless() { Duration::ZERO } else { REPLACE_AFTER };
            let due = *self.next_replacement_at.get_or_insert(now + patience);
            if now >= due {
                self.next_replacement_at = Some(now + REPLACE_AFTER);
                self.effects.push(RecoveryEffect::FindReplacements(failing));
            }
        }
        let is_hopeless = self.has_no_spares && self.write_back.is_hopeless();
        if now.since(since) < self.add_timeout && !is_hopeless {
            return;
        }
        reached!("ledger recovery: write back failed");
        let secured = self.write_back.secured();
        if mutant!("L5") {
            self.close(secured);
            return;
        }
        self.fail(RecoveryError::WriteBack {
            ledger: self.record.ledger,
            entry: secured.next(),
            detail: self.write_back.detail(),
        });
    }

    fn finish(&mut self, now: Instant) {
        if self.phase != Phase::Finishing || self.write_back.oldest_unsecured().is_some() {
            return;
        }
        if !self.write_back.is_everywhere() && self.write_back.expects_more() {
            let until = *self.grace_until.get_or_insert(now + GRACE);
            if now < until {
                return;
            }
            reached!("ledger recovery: closed with fewer copies than the write quorum");
        }
        self.close(self.write_back.secured());
    }

    fn close(&mut self, last_entry: EntryId) {
        self.phase = Phase::Done;
        self.effects.push(RecoveryEffect::Close(RecoveredEnd {
            last_entry,
            length: self.length,
            tail: self.write_back.fragments().to_vec(),
        }));
    }

    fn fail_undecidable(&mut self, entry: EntryId) {
        let said = self.votes.iter().enumerate().map(|(position, vote)| {
            let who = self.fragment.ensemble.get(position).copied().unwrap_or(BookieId(0));
            format!("{who}: {vote:?}")
        });
        let detail = said.collect::<Vec<_>>().join("; ");
        self.fail(RecoveryError::Undecidable { ledger: self.record.ledger, entry, detail });
    }

    fn fail(&mut self, error: RecoveryError) {
        self.phase = Phase::Done;
        self.effects.push(RecoveryEffect::Fail(error));
    }
}
