//! The copy's decisions. An entry counts as copied when the target said that it is on synced storage; the
//! copy is done when that holds for every entry of the range that the place must hold, and fails as a whole
//! when it does not for a single one. An entry nobody has is never skipped.

use std::collections::BTreeMap;
use std::time::Duration;

use super::segment::{Segment, Stage};
use crate::domain::{
    AddAnswer, AddError, BookieId, Entry, EntryId, Instant, LedgerId, ReadError, ReadRequest,
};
use crate::ledger::LedgerRecord;
use crate::ledger::ensemble::Striping;
use crate::ledger::reader::good_run;
use crate::ledger::repair::{Pacer, RepairConfig};
use crate::{mutant, reached};

/// Rounds over all sources, or adds to the target, of one segment before the copy fails.
const FAILURES_MAX: u32 = 4;
/// Pause after the first failure; doubles.
const PAUSE: Duration = Duration::from_millis(200);
/// An add without an answer is given up after this.
const ADD_TIMEOUT: Duration = Duration::from_secs(10);

/// What is to be copied, and where.
#[derive(Clone, Debug)]
pub struct CopyOrder {
    /// The ledger's record, as it was read before anything else.
    pub record: LedgerRecord,
    /// The fragment's ensemble.
    pub ensemble: Vec<BookieId>,
    /// The place in it.
    pub position: usize,
    /// Who is to hold the copies.
    pub target: BookieId,
    /// First entry of the range.
    pub first: EntryId,
    /// Last entry of the range.
    pub last: EntryId,
    /// Look up first what the target holds.
    pub probes: bool,
    /// Sources worth asking first.
    pub preferred: Vec<BookieId>,
}

/// How much was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCount {
    /// Entries written to the target.
    pub entries: u64,
    /// Payload bytes of the same.
    pub bytes: u64,
    /// Entries the target was found to hold.
    pub held: u64,
}

/// Why the copy is not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyFailure {
    /// Every source answered, and none has a good copy.
    #[error("no replica has a good copy of entry {0}")]
    NoGoodCopy(EntryId),
    /// Sources did not answer, or cannot tell.
    #[error("entry {entry} cannot be read now: {detail}")]
    Unreadable {
        /// The entry.
        entry: EntryId,
        /// The last answer.
        detail: String,
    },
    /// The target does not take copies.
    #[error("bookie {bookie} does not take the copies: {detail}")]
    Target {
        /// The target.
        bookie: BookieId,
        /// Its last answer.
        detail: String,
        /// It will not take them soon either.
        is_firm: bool,
    },
    /// The ledger was deleted meanwhile.
    #[error("the ledger was deleted")]
    Deleted,
}

/// What the driver is to do.
#[derive(Clone, Debug)]
pub enum CopyEffect {
    /// Ask `bookie` for a run; answer with [`CopyMachine::read_answered`].
    Read {
        /// Which segment this is for.
        number: u64,
        /// Whom.
        bookie: BookieId,
        /// What.
        request: ReadRequest,
    },
    /// Send recovery adds to the target; answer with [`CopyMachine::add_answered`].
    Add {
        /// The entries as they were sealed.
        entries: Vec<Entry>,
    },
    /// Every entry is on the target's synced storage.
    Done,
    /// Not everything could be copied.
    Failed(CopyFailure),
}

/// See the module.
pub struct CopyMachine {
    order: CopyOrder,
    striping: Striping,
    batch_entries: u32,
    batch_bytes: u32,
    requests_max: usize,
    pacer: Pacer,
    /// The first entry no segment was begun for.
    next: EntryId,
    numbers: u64,
    segments: BTreeMap<u64, Segment>,
    count: CopyCount,
    detail: String,
    has_ended: bool,
    effects: Vec<CopyEffect>,
}

impl CopyMachine {
    /// A copy about to begin.
    pub fn new(order: CopyOrder, config: &RepairConfig, pacer: Pacer) -> Self {
        Self {
            striping: Striping::new(order.record.quorum),
            batch_entries: config.batch_entries.max(1),
            batch_bytes: config.batch_bytes,
            requests_max: config.requests_max.max(1),
            pacer,
            next: order.first,
            numbers: 0,
            segments: BTreeMap::new(),
            count: CopyCount::default(),
            detail: String::new(),
            has_ended: false,
            effects: Vec::new(),
            order,
        }
    }

    /// The ledger.
    pub fn ledger(&self) -> LedgerId {
        self.order.record.ledger
    }

    /// How much was done so far.
    pub fn count(&self) -> CopyCount {
        self.count
    }

    /// The rate limit, to be used by what comes next.
    pub fn pacer(&self) -> Pacer {
        self.pacer
    }

    /// The answer to a [`CopyEffect::Read`].
    pub fn read_answered(
        &mut self,
        number: u64,
        answer: Result<Vec<Entry>, ReadError>,
        now: Instant,
    ) {
        let ledger = self.ledger();
        let Some(segment) = self.segments.get_mut(&number) else { return };
        let answer = match answer {
            Ok(entries) if mutant!("R-verify") && !entries.is_empty() => Ok(entries),
            answer => {
                answer.and_then(|entries| good_run(ledger, segment.first, segment.count, entries))
            }
        };
        match (segment.stage.clone(), answer) {
            (Stage::Probing, Ok(held)) => self.held(number, &held, now),
            (Stage::Probing, Err(error)) => {
                // Whatever it is, a copy written again does no harm.
                segment.stage = Stage::ToRead;
                self.detail = error.to_string();
            }
            (Stage::Reading(_), Ok(entries)) => self.found(number, entries, now),
            (Stage::Reading(position), Err(error)) => {
                segment.is_unsure |= !matches!(error, ReadError::Absent | ReadError::Corrupt(_));
                segment.tried |= 1 << position;
                segment.stage = Stage::ToRead;
                self.detail = format!("bookie {}: {error}", self.order.ensemble[position]);
            }
            _ => {}
        }
    }

    /// The target's answer to an add.
    pub fn add_answered(&mut self, answer: AddAnswer, now: Instant) {
        let Some(first) = answer.entries.first() else { return };
        let found = self.segments.iter().find(|(_, segment)| {
            segment.first == *first && matches!(segment.stage, Stage::Adding(_))
        });
        let Some(number) = found.map(|(number, _)| *number) else { return };
        match answer.result {
            Ok(()) => {
                if let Some(segment) = self.segments.remove(&number)
                    && let Stage::Adding(entries) = segment.stage
                {
                    self.count.entries += entries.len() as u64;
                    self.count.bytes +=
                        entries.iter().map(|entry| entry.payload.len() as u64).sum::<u64>();
                }
            }
            Err(AddError::Deleted) => self.fail(CopyFailure::Deleted),
            Err(error) => {
                let is_firm = matches!(
                    error,
                    AddError::WrongCreator
                        | AddError::Fenced
                        | AddError::ReadOnly
                        | AddError::Poisoned(_)
                );
                self.add_failed(number, error.to_string(), is_firm, now);
            }
        }
    }

    /// Ends a turn and answers what there is to do.
    pub fn settle(&mut self, now: Instant) -> Vec<CopyEffect> {
        self.give_up_on_late_adds(now);
        if !self.has_ended {
            self.begin_segments(now);
        }
        for number in self.segments.keys().copied().collect::<Vec<_>>() {
            if !self.has_ended {
                self.advance(number, now);
            }
        }
        if !self.has_ended && self.segments.is_empty() && self.next > self.order.last {
            self.has_ended = true;
            self.effects.push(CopyEffect::Done);
        }
        std::mem::take(&mut self.effects)
    }

    /// When [`CopyMachine::settle`] must be called at the latest if nothing happens.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        if self.has_ended {
            return None;
        }
        let waiting = self.segments.values().filter_map(|segment| match segment.stage {
            Stage::Probing | Stage::Reading(_) => None,
            Stage::Adding(_) => segment.deadline,
            _ => Some(segment.due),
        });
        let may_begin = self.segments.len() < self.requests_max && self.next <= self.order.last;
        let begin = may_begin.then(|| self.pacer.free_at().max(now));
        waiting.chain(begin).min()
    }

    fn begin_segments(&mut self, now: Instant) {
        while self.segments.len() < self.requests_max && self.pacer.free_at() <= now {
            // The entries between belong to other places of the ensemble.
            while self.next <= self.order.last
                && !self.striping.holds(self.order.position, self.next)
            {
                self.next = self.next.next();
            }
            if self.next > self.order.last {
                return;
            }
            let left = u32::try_from(self.order.last.0 - self.next.0 + 1).unwrap_or(u32::MAX);
            let run = self.striping.run_length(self.order.position, self.next);
            let count = run.min(left).min(self.batch_entries);
            let stage = if self.order.probes { Stage::ToProbe } else { Stage::ToRead };
            self.begin(self.next, count, stage, now);
            self.next = EntryId(self.next.0 + i64::from(count));
        }
    }

    fn begin(&mut self, first: EntryId, count: u32, stage: Stage, now: Instant) {
        self.numbers += 1;
        self.segments.insert(self.numbers, Segment::new(first, count, stage, now));
    }

    fn advance(&mut self, number: u64, now: Instant) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        if !segment.is_ready(now) {
            return;
        }
        match std::mem::replace(&mut segment.stage, Stage::ToRead) {
            Stage::ToProbe => {
                segment.stage = Stage::Probing;
                let (first, count) = (segment.first, segment.count);
                let target = self.order.target;
                self.push_read(number, target, first, count);
            }
            Stage::ToRead => self.ask_next_source(number, now),
            Stage::ToAdd(entries) => {
                segment.deadline = Some(now + ADD_TIMEOUT);
                segment.stage = Stage::Adding(entries.clone());
                let bytes = entries.iter().map(|entry| entry.payload.len()).sum();
                self.pacer.spend(bytes, now);
                self.effects.push(CopyEffect::Add { entries });
            }
            other => segment.stage = other,
        }
    }

    fn push_read(&mut self, number: u64, bookie: BookieId, first: EntryId, count: u32) {
        let request = ReadRequest {
            ledger: self.order.record.ledger,
            creator: self.order.record.creator,
            first,
            entries_max: count,
            bytes_max: self.batch_bytes,
            fence: false,
        };
        self.effects.push(CopyEffect::Read { number, bookie, request });
    }

    fn ask_next_source(&mut self, number: u64, now: Instant) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        let (first, tried) = (segment.first, segment.tried);
        let source = self.sources(first).into_iter().find(|place| tried >> place & 1 == 0);
        let Some(segment) = self.segments.get_mut(&number) else { return };
        if let Some(position) = source {
            segment.stage = Stage::Reading(position);
            // No more than lies there without a gap.
            let count = segment.count.min(self.striping.run_length(position, first));
            let bookie = self.order.ensemble[position];
            return self.push_read(number, bookie, first, count);
        }
        if mutant!("R-hole") {
            self.segments.remove(&number);
            return;
        }
        if !segment.is_unsure {
            reached!("repair: no replica has a good copy of an entry");
            return self.fail(CopyFailure::NoGoodCopy(first));
        }
        segment.failures += 1;
        if segment.failures >= FAILURES_MAX {
            let detail = std::mem::take(&mut self.detail);
            return self.fail(CopyFailure::Unreadable { entry: first, detail });
        }
        reached!("repair: all sources asked again");
        (segment.tried, segment.is_unsure) = (0, false);
        segment.due = now + PAUSE * 2_u32.pow(segment.failures - 1);
    }

    /// Places that may have an entry, those worth asking first in front. The bookie that is leaving is a
    /// source like any other; the target is not.
    fn sources(&self, entry: EntryId) -> Vec<usize> {
        let mut places: Vec<usize> = self
            .striping
            .positions(entry)
            .filter(|place| self.order.ensemble.get(*place) != Some(&self.order.target))
            .collect();
        places.sort_by_key(|place| !self.order.preferred.contains(&self.order.ensemble[*place]));
        places
    }

    /// The target holds good copies of a run already.
    fn held(&mut self, number: u64, held: &[Entry], now: Instant) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        let count = held.len() as u32;
        self.count.held += u64::from(count);
        self.pacer.spend(held.iter().map(|entry| entry.payload.len()).sum(), now);
        if count >= segment.count {
            self.segments.remove(&number);
        } else {
            segment.first = EntryId(segment.first.0 + i64::from(count));
            segment.count -= count;
            segment.stage = Stage::ToProbe;
        }
    }

    /// A source gave good copies of a run; what it did not give becomes a segment of its own.
    fn found(&mut self, number: u64, entries: Vec<Entry>, now: Instant) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        let got = entries.len() as u32;
        let rest = segment.count.saturating_sub(got);
        let rest_first = EntryId(segment.first.0 + i64::from(got));
        segment.count = got;
        segment.stage = Stage::ToAdd(entries);
        if rest > 0 {
            let stage = if self.order.probes { Stage::ToProbe } else { Stage::ToRead };
            self.begin(rest_first, rest, stage, now);
        }
    }

    fn give_up_on_late_adds(&mut self, now: Instant) {
        let late = |segment: &Segment| segment.deadline.is_some_and(|deadline| deadline <= now);
        let is_late = self
            .segments
            .values()
            .any(|segment| matches!(segment.stage, Stage::Adding(_)) && late(segment));
        if is_late && !self.has_ended {
            reached!("repair: the target did not answer");
            let detail = format!("no answer within {ADD_TIMEOUT:?}");
            self.fail(CopyFailure::Target { bookie: self.order.target, detail, is_firm: true });
        }
    }

    fn add_failed(&mut self, number: u64, detail: String, is_firm: bool, now: Instant) {
        let Some(segment) = self.segments.get_mut(&number) else { return };
        segment.failures += 1;
        if is_firm || segment.failures >= FAILURES_MAX {
            return self.fail(CopyFailure::Target { bookie: self.order.target, detail, is_firm });
        }
        if let Stage::Adding(entries) = std::mem::replace(&mut segment.stage, Stage::ToRead) {
            segment.stage = Stage::ToAdd(entries);
            segment.due = now + PAUSE * 2_u32.pow(segment.failures - 1);
        }
    }

    fn fail(&mut self, failure: CopyFailure) {
        if !self.has_ended {
            self.has_ended = true;
            self.segments.clear();
            self.effects.push(CopyEffect::Failed(failure));
        }
    }
}
