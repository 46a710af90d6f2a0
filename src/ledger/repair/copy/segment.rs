//! A stretch of consecutive entries on its way: looked up at the target, read from a source, added.

use crate::domain::{Entry, EntryId, Instant};

/// Where a segment is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// To be looked up at the target, which may hold it.
    ToProbe,
    /// The target was asked.
    Probing,
    /// To be read from the next source.
    ToRead,
    /// A source was asked.
    Reading(usize),
    /// Good copies in hand, to be sent.
    ToAdd(Vec<Entry>),
    /// Sent; kept in case it must be sent again.
    Adding(Vec<Entry>),
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) first: EntryId,
    pub(super) count: u32,
    pub(super) stage: Stage,
    /// Positions asked in this round.
    pub(super) tried: u64,
    /// Some source of this round neither had the entry nor lacked it for certain.
    pub(super) is_unsure: bool,
    /// Rounds over all sources, or adds, that failed.
    pub(super) failures: u32,
    /// Not before.
    pub(super) due: Instant,
    /// A request given up on at this time.
    pub(super) deadline: Option<Instant>,
}

impl Segment {
    pub(super) fn new(first: EntryId, count: u32, stage: Stage, now: Instant) -> Self {
        Self {
            first,
            count,
            stage,
            tried: 0,
            is_unsure: false,
            failures: 0,
            due: now,
            deadline: None,
        }
    }

    /// True if something is to be done for it now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        let waits = matches!(self.stage, Stage::Probing | Stage::Reading(_) | Stage::Adding(_));
        !waits && self.due <= now
    }
}
