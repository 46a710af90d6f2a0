//! A moment at which the power may go: what is durable, what is not, and what may become of that.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::{CrashBound, CrashOccasion, CrashState, CrashStates};
use crate::runtime::sim::disk::{DiskContent, DiskFork};
use crate::runtime::sim::index::{IndexContent, IndexFork};
use crate::runtime::sim::keyed::mix;

/// What is there of a write of several sectors, which are counted from its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tear {
    /// The first so many sectors.
    First(u64),
    /// All from this sector on.
    From(u64),
    /// This sector alone.
    Only(u64),
    /// All but this sector.
    AllBut(u64),
    /// No byte, but the length that the file has with it.
    Zeros,
    /// What lies before the former end of the file, and that end.
    Inside,
}

/// What becomes of something unsynced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Kept,
    /// It is not.
    Lost,
    /// Some of it is.
    Torn(Tear),
    /// The first so many changes of an index are.
    Prefix(usize),
}

/// What kind of change is unsynced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsyncedChange {
    /// Bytes of a file.
    Write {
        /// Where.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A file's length.
    Length {
        /// The new one.
        length: u64,
    },
    /// A name that was not there.
    Created,
    /// A name that was another.
    Renamed {
        /// The former name.
        from: PathBuf,
    },
    /// A name that is gone.
    Removed,
    /// Changes of an index.
    Index {
        /// How many.
        changes: usize,
    },
}

/// Something unsynced, and what may become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// The file, name or index.
    pub path: PathBuf,
    /// What was done.
    pub what: UnsyncedChange,
    /// The fates that are looked at: kept, lost, others.
    pub fates: Vec<Fate>,
    /// How many fates there are.
    pub possible: u128,
}

/// Why files and folders are not taken for what a power loss left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlikely {
    /// No choice among the unsynced changes leaves them.
    Impossible(String),
    /// There are more choices than are gone through.
    TooMany,
}

/// A disk with its indexes, all of it durable: what a power loss left.
#[derive(Clone)]
pub struct Surviving {
    pub(in crate::runtime::sim) disk: DiskContent,
    pub(in crate::runtime::sim) indexes: IndexContent,
}

impl Surviving {
    /// Equal ones have equal sums, unequal ones hardly ever.
    pub fn sum(&self) -> u64 {
        mix(self.disk.sum() ^ self.indexes.sum())
    }
}

/// A moment at which the power may go.
pub struct CrashPoint {
    /// What happened at that moment.
    pub occasion: CrashOccasion,
    /// The file or index that was synced; of a folder the first of its names that was not durable.
    pub path: PathBuf,
    /// Virtual time since the start of the run.
    pub at: Duration,
    disk: DiskFork,
    indexes: IndexFork,
    unsynced: Vec<Unsynced>,
}

impl CrashPoint {
    pub(in crate::runtime::sim) fn new(
        (occasion, path): (CrashOccasion, PathBuf),
        at: Duration,
        disk: DiskFork,
        indexes: IndexFork,
    ) -> Self {
        let mut unsynced = disk.unsynced();
        unsynced.extend(indexes.unsynced());
        Self { occasion, path, at, disk, indexes, unsynced }
    }

    /// Everything unsynced.
    pub fn unsynced(&self) -> &[Unsynced] {
        &self.unsynced
    }

    /// The states within a bound, in a fixed order.
    pub fn states(&self, bound: CrashBound) -> CrashStates {
        CrashStates::of(self.unsynced.iter().map(|one| one.fates.len()).collect(), bound)
    }

    /// How many states a power loss may leave in all; the highest number if there are more.
    pub fn possible(&self) -> u128 {
        self.unsynced.iter().fold(1, |all, one| all.saturating_mul(one.possible))
    }

    /// What is left in a state.
    pub fn surviving(&self, state: &CrashState) -> Surviving {
        let fates: Vec<Fate> =
            self.unsynced.iter().zip(state).map(|(one, fate)| one.fates[*fate]).collect();
        let mut fates = fates.into_iter();
        let disk = self.disk.content(fates.by_ref());
        Surviving { disk, indexes: self.indexes.content(fates) }
    }

    /// Whether a power loss at this moment may leave exactly these files (with their bytes) and folders
    /// (`None`); indexes are not looked at. What speaks against it, or that there are too many choices to tell.
    pub fn may_leave(&self, found: &BTreeMap<PathBuf, Option<Bytes>>) -> Result<(), Unlikely> {
        self.disk.may_leave(found)
    }

    /// A state in words: the fate of everything unsynced.
    pub fn describe(&self, state: &CrashState) -> Vec<String> {
        let fate = |(one, fate): (&Unsynced, &usize)| format!("{one}: {}", one.fates[*fate]);
        self.unsynced.iter().zip(state).map(fate).collect()
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => formatter.write_str("kept"),
            Self::Lost => formatter.write_str("lost"),
            Self::Torn(Tear::First(count)) => write!(formatter, "the first {count} sectors kept"),
            Self::Torn(Tear::From(first)) => write!(formatter, "kept from sector {first} on"),
            Self::Torn(Tear::Only(only)) => write!(formatter, "only sector {only} kept"),
            Self::Torn(Tear::AllBut(missing)) => write!(formatter, "sector {missing} lost"),
            Self::Torn(Tear::Inside) => {
                formatter.write_str("kept as far as the file went, with its length")
            }
            Self::Torn(Tear::Zeros) => formatter.write_str("its length kept, zeros for its bytes"),
            Self::Prefix(count) => write!(formatter, "the first {count} kept"),
        }
    }
}

impl fmt::Display for Unsynced {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.what {
            UnsyncedChange::Write { offset, bytes } => {
                write!(formatter, "{bytes} bytes at {offset} of {path}")
            }
            UnsyncedChange::Length { length } => write!(formatter, "length {length} of {path}"),
            UnsyncedChange::Created => write!(formatter, "new name {path}"),
            UnsyncedChange::Renamed { from } => {
                write!(formatter, "name {path} in place of {}", from.display())
            }
            UnsyncedChange::Removed => write!(formatter, "removal of {path}"),
            UnsyncedChange::Index { changes } => write!(formatter, "{changes} changes of {path}"),
        }
    }
}
