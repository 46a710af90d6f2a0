//! A run: consecutive entries of one ledger in one stretch of an entry log. The index holds one key per run.

use bytes::{BufMut, Bytes, BytesMut};

use crate::bookie::record::{u32_at, u64_at};
use crate::domain::{EntryId, LedgerId};

/// A run keeps the offset of every so many entries, so that reading one entry reads few others.
const RUN_STRIDE: i64 = 8;
/// A run is closed at this many bytes: what one disk read of a catch-up reader brings.
const RUN_BYTES_MAX: u64 = 1024 * 1024;
const FIXED_BYTES: usize = 36;
const KEY_BYTES: usize = 17;
/// First byte of a run's key.
pub(super) const RUN_KEY: u8 = b'r';

/// One run.
///
/// Key: `r`, ledger, first entry (big-endian, so that keys sort like numbers). Value, little-endian: i64
/// entry id of the first record of the stretch; i64 end; u64 log; u64 offset; u32 length; then u32 offsets
/// of every [`RUN_STRIDE`]th record, the first being 0. The first entry can lie after the stretch's first
/// record, and the end before its last: when entries are stored again, the older run is trimmed, not
/// rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bookie) struct Run {
    /// The ledger.
    pub ledger: LedgerId,
    /// First entry of the run.
    pub first: EntryId,
    /// First entry after the run.
    pub end: EntryId,
    /// Entry of the stretch's first record.
    pub base: EntryId,
    /// The entry log.
    pub log: u64,
    /// Where the stretch begins.
    pub offset: u64,
    /// Bytes of the stretch.
    pub length: u32,
    /// Offsets of every [`RUN_STRIDE`]th record from the start of the stretch.
    pub strides: Vec<u32>,
}

/// The key of a run that begins with this entry.
pub(super) fn run_key(ledger: LedgerId, first: EntryId) -> Bytes {
    let mut key = BytesMut::with_capacity(KEY_BYTES);
    key.put_u8(RUN_KEY);
    key.put_u64(ledger.0);
    key.put_u64(u64::try_from(first.0).unwrap_or(0));
    key.freeze()
}

impl Run {
    /// The run as an index pair.
    pub fn encode(&self) -> (Bytes, Bytes) {
        let mut value = BytesMut::with_capacity(FIXED_BYTES + 4 * self.strides.len());
        value.put_i64_le(self.base.0);
        value.put_i64_le(self.end.0);
        value.put_u64_le(self.log);
        value.put_u64_le(self.offset);
        value.put_u32_le(self.length);
        for stride in &self.strides {
            value.put_u32_le(*stride);
        }
        (run_key(self.ledger, self.first), value.freeze())
    }

    /// The run of an index pair; `None` if it is not one.
    pub fn decode(key: &[u8], value: &[u8]) -> Option<Self> {
        if key.len() != KEY_BYTES || key[0] != RUN_KEY || value.len() < FIXED_BYTES {
            return None;
        }
        let ledger = u64::from_be_bytes(key[1..9].try_into().ok()?);
        let first = u64::from_be_bytes(key[9..17].try_into().ok()?);
        let strides = value[FIXED_BYTES..].chunks_exact(4).map(|four| u32_at(four, 0)).collect();
        let run = Self {
            ledger: LedgerId(ledger),
            first: EntryId(i64::try_from(first).ok()?),
            base: EntryId(u64_at(value, 0) as i64),
            end: EntryId(u64_at(value, 8) as i64),
            log: u64_at(value, 16),
            offset: u64_at(value, 24),
            length: u32_at(value, 32),
            strides,
        };
        let sound = run.base <= run.first && run.first < run.end && !run.strides.is_empty();
        sound.then_some(run)
    }

    /// True if the run holds this entry.
    pub fn holds(&self, ledger: LedgerId, entry: EntryId) -> bool {
        self.ledger == ledger && self.first <= entry && entry < self.end
    }

    /// The part of the stretch to read for entries from `entry` on, about `bytes_max` long but always with
    /// `entry` whole: (offset in the stretch, length, entry of the first record there).
    pub fn part(&self, entry: EntryId, entries_max: u32, bytes_max: u64) -> (u32, u32, EntryId) {
        let ordinal = entry.0 - self.base.0;
        let stride = usize::try_from(ordinal / RUN_STRIDE).unwrap_or(0).min(self.strides.len() - 1);
        let start = self.strides[stride];
        let last = ordinal.saturating_add(i64::from(entries_max)).min(self.end.0 - self.base.0);
        let mut end = self.length;
        for (later, offset) in self.strides.iter().enumerate().skip(stride + 1) {
            // The stride before this one held everything wanted.
            if later as i64 * RUN_STRIDE >= last || u64::from(*offset - start) >= bytes_max {
                end = *offset;
                break;
            }
        }
        (start, end.saturating_sub(start), EntryId(self.base.0 + stride as i64 * RUN_STRIDE))
    }
}

/// Collects consecutive records into runs.
#[derive(Default)]
pub(in crate::bookie) struct RunBuilder {
    open: Option<Run>,
    done: Vec<Run>,
}

impl RunBuilder {
    /// A record of `length` bytes was put at `offset` of a log.
    pub fn record(&mut self, ledger: LedgerId, entry: EntryId, log: u64, offset: u64, length: u32) {
        if let Some(run) = &mut self.open {
            let follows = run.ledger == ledger
                && run.end == entry
                && run.log == log
                && run.offset + u64::from(run.length) == offset
                && u64::from(run.length) < RUN_BYTES_MAX;
            if follows {
                if (entry.0 - run.base.0) % RUN_STRIDE == 0 {
                    run.strides.push(run.length);
                }
                run.end = entry.next();
                run.length += length;
                return;
            }
        }
        let run = Run {
            ledger,
            first: entry,
            end: entry.next(),
            base: entry,
            log,
            offset,
            length,
            strides: vec![0],
        };
        self.done.extend(self.open.replace(run));
    }

    /// The runs so far.
    pub fn finish(&mut self) -> Vec<Run> {
        self.done.extend(self.open.take());
        std::mem::take(&mut self.done)
    }

    /// Number of closed runs waiting to be taken.
    pub fn closed(&self) -> usize {
        self.done.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_the_entry_and_stay_near_the_limit() {
        let mut builder = RunBuilder::default();
        for entry in 0..100 {
            let offset = 64 + u64::try_from(entry).unwrap() * 100;
            builder.record(LedgerId(1), EntryId(10 + entry), 3, offset, 100);
        }
        let runs = builder.finish();
        assert_eq!(runs.len(), 1);
        let (key, value) = runs[0].encode();
        assert_eq!(Run::decode(&key, &value).as_ref(), Some(&runs[0]));
        let (start, length, first) = runs[0].part(EntryId(30), 1, 1);
        assert_eq!((start, length, first), (1600, 800, EntryId(26)));
        let (start, length, _) = runs[0].part(EntryId(109), 10, 1_000_000);
        assert_eq!((start, length), (9600, 400));
        let (start, length, _) = runs[0].part(EntryId(10), 1000, u64::MAX);
        assert_eq!((start, length), (0, 10_000));
    }
}
