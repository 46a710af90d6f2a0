//! The periodic check: does each bookie hold what it must? *Absent* where an entry must be and *corrupt*
//! are findings; silence, overload and "cannot tell" are not.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::domain::{BookieId, EntryId, ReadError, ReadRequest};
use crate::ledger::LedgerRecord;
use crate::ledger::ensemble::Striping;
use crate::ledger::reader::good_run;
use crate::ledger::repair::ledger_repair::Environment;
use crate::ledger::repair::plan::{Extent, extents};
use crate::ledger::repair::{Flaw, FlawKind, Pacer, Standing};
use crate::{mutant, reached};

/// Entries read at a sampled place: gaps are long more often than not.
const SAMPLE_ENTRIES: u32 = 8;

/// The `number`-th of `parts` parts of so many entries, as equal as they can be; none is empty if there are
/// as many entries as parts.
fn part_of(entries: u64, number: u32, parts: u32) -> Range<u64> {
    if mutant!("R-samples") {
        let length = entries / u64::from(parts);
        return u64::from(number) * length..u64::from(number + 1) * length;
    }
    let bound = |number: u32| {
        let bound = u128::from(entries) * u128::from(number) / u128::from(parts);
        u64::try_from(bound).unwrap_or(entries)
    };
    bound(number)..bound(number + 1)
}

/// Looks at every place of every fragment of one ledger.
pub(super) async fn check_ledger(
    environment: &Environment,
    record: &LedgerRecord,
    pacer: &mut Pacer,
) -> Vec<Flaw> {
    let confirmed = environment.confirmed(record).await;
    let mut flaws = BTreeSet::new();
    for extent in extents(record, confirmed) {
        for (position, bookie) in extent.fragment.ensemble.iter().copied().enumerate() {
            let is_away = environment.standings.standing(bookie) == Standing::Missing;
            if is_away || flaws.iter().any(|flaw: &Flaw| flaw.bookie == bookie) {
                continue;
            }
            let place = Place { environment, record, position, bookie, last: extent.last };
            if let Some(kind) = place.check(&extent, pacer).await {
                flaws.insert(Flaw { bookie, kind });
            }
        }
    }
    flaws.into_iter().collect()
}

struct Place<'a> {
    environment: &'a Environment,
    record: &'a LedgerRecord,
    position: usize,
    bookie: BookieId,
    last: EntryId,
}

enum Look {
    /// Good copies of this many entries.
    Good(u32),
    Flaw(FlawKind),
    /// Nobody knows.
    Unknown,
}

impl Place<'_> {
    async fn check(&self, extent: &Extent<'_>, pacer: &mut Pacer) -> Option<FlawKind> {
        let first = extent.fragment.first_entry;
        if self.last < first {
            return None;
        }
        let samples = self.environment.config.check_samples;
        let count = (self.last.0 - first.0 + 1) as u64;
        if samples == 0 || count <= u64::from(samples) * u64::from(SAMPLE_ENTRIES) {
            return self.check_from(first, u64::MAX, pacer).await.err()?;
        }
        for sample in 0..samples {
            // One at random in each of as many parts, which leave nothing out.
            let part = part_of(count, sample, samples);
            let offset = part.start + self.environment.random.below(part.end - part.start);
            let entry = EntryId(first.0 + offset as i64);
            if let Err(found) = self.check_from(entry, SAMPLE_ENTRIES.into(), pacer).await {
                return found;
            }
        }
        None
    }

    /// Looks at so many entries from `first` on, as far as the place must hold them. An error ends the check of
    /// this place: a flaw, or that nobody knows. What ends early is asked for again: a bookie answers
    /// with what it has in front of an entry that it lacks.
    async fn check_from(
        &self,
        first: EntryId,
        entries: u64,
        pacer: &mut Pacer,
    ) -> Result<(), Option<FlawKind>> {
        let (mut next, mut left) = (first, entries);
        while left > 0 {
            let Some(entry) = self.held_from(next) else { break };
            let batch = self.environment.config.batch_entries;
            let entries_max = u32::try_from(left).map_or(batch, |left| left.min(batch));
            match self.look(entry, entries_max, pacer).await {
                Look::Good(count) => {
                    next = EntryId(entry.0 + i64::from(count));
                    left = left.saturating_sub(count.into());
                }
                Look::Flaw(kind) => return Err(Some(kind)),
                Look::Unknown => return Err(None),
            }
        }
        Ok(())
    }

    /// The first entry from `entry` on that the place must hold.
    fn held_from(&self, entry: EntryId) -> Option<EntryId> {
        let striping = Striping::new(self.record.quorum);
        (entry.0..=self.last.0).map(EntryId).find(|entry| striping.holds(self.position, *entry))
    }

    async fn look(&self, entry: EntryId, entries_max: u32, pacer: &mut Pacer) -> Look {
        let clock = &self.environment.runtime.clock;
        if pacer.free_at() > clock.now() {
            clock.sleep_until(pacer.free_at()).await;
        }
        let left = u32::try_from(self.last.0 - entry.0 + 1).unwrap_or(u32::MAX);
        let run = Striping::new(self.record.quorum).run_length(self.position, entry);
        let request = ReadRequest {
            ledger: self.record.ledger,
            creator: self.record.creator,
            first: entry,
            entries_max: entries_max.min(left).min(run).max(1),
            bytes_max: self.environment.config.batch_bytes,
            fence: false,
        };
        let client = self.environment.bookies.bookie(self.bookie);
        let limit = self.environment.ledger_config.read_timeout;
        let Ok(answer) = clock.timeout(limit, client.read(request)).await else {
            return Look::Unknown;
        };
        let checked =
            answer.and_then(|found| good_run(request.ledger, entry, request.entries_max, found));
        match checked {
            Ok(entries) => {
                pacer.spend(entries.iter().map(|entry| entry.payload.len()).sum(), clock.now());
                Look::Good(entries.len() as u32)
            }
            Err(ReadError::Absent) => {
                reached!("auditor: an entry is absent where it must be");
                Look::Flaw(FlawKind::Absent)
            }
            Err(ReadError::Corrupt(_)) => {
                reached!("auditor: a damaged copy found");
                Look::Flaw(FlawKind::Corrupt)
            }
            Err(_) => Look::Unknown,
        }
    }
}
