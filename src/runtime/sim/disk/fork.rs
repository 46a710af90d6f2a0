//! A copy of a disk at one moment, and the disk that each choice among its unsynced changes leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Content;
use super::faults::write_sectors;
use super::names::{NameSteps, Names, NamesFork};
use super::{Change, DiskState, Inode, SECTOR};
use crate::runtime::sim::crash::{Fate, Tear, Unsynced, UnsyncedChange};
use crate::runtime::sim::keyed::mix;

/// What of a disk is durable, and what is not yet.
#[derive(Clone)]
pub(in crate::runtime::sim) struct DiskFork {
    inodes: BTreeMap<u64, ForkedInode>,
    pub(super) names: NamesFork,
}

#[derive(Clone)]
pub(super) struct ForkedInode {
    path: PathBuf,
    pub(super) durable: Content,
    pub(super) pending: Vec<Change>,
}

/// A disk on which everything is durable.
#[derive(Clone)]
pub(in crate::runtime::sim) struct DiskContent {
    inodes: BTreeMap<u64, Arc<Content>>,
    names: NamesFork,
}

/// A write of at most so many sectors is torn between any two of them, and at each of them.
const TORN_EVERYWHERE: u64 = 8;

fn sectors(offset: u64, bytes: u64) -> u64 {
    (offset + bytes).div_ceil(SECTOR) - offset / SECTOR
}

impl Tear {
    fn keeps(self, sector: u64) -> bool {
        match self {
            Self::First(count) => sector < count,
            Self::From(first) => sector >= first,
            Self::Only(only) => sector == only,
            Self::AllBut(missing) => sector != missing,
            Self::Zeros | Self::Inside => false,
        }
    }

    /// The tears looked at of a write of so many sectors: up to three all there are, up to [`TORN_EVERYWHERE`]
    /// each cut and each hole of one sector, else those at the ends and in the middle.
    fn of(sectors: u64) -> Vec<Self> {
        let (middle, last) = (sectors / 2, sectors.saturating_sub(1));
        match sectors {
            0 | 1 => Vec::new(),
            2..=TORN_EVERYWHERE => {
                let cuts = (1..sectors).flat_map(|cut| [Self::First(cut), Self::From(cut)]);
                // The first and the last alone, or missing, are cuts.
                let holes = (1..last).flat_map(|at| [Self::Only(at), Self::AllBut(at)]);
                cuts.chain(holes).collect()
            }
            _ => vec![
                Self::First(1),
                Self::From(1),
                Self::First(middle),
                Self::From(middle),
                Self::First(last),
                Self::From(last),
                Self::Only(middle),
                Self::AllBut(middle),
            ],
        }
    }
}

fn unsynced_change(path: &Path, change: &Change, length: u64) -> Unsynced {
    let (what, mut fates, possible) = match change {
        Change::SetLength(length) => {
            (UnsyncedChange::Length { length: *length }, vec![Fate::Kept, Fate::Lost], 2)
        }
        Change::Write { offset, bytes } => {
            let bytes = bytes.len() as u64;
            let sectors = if bytes == 0 { 0 } else { sectors(*offset, bytes) };
            let tears = Tear::of(sectors).into_iter().map(Fate::Torn);
            let all = 1_u128.checked_shl(u32::try_from(sectors).unwrap_or(u32::MAX));
            let what = UnsyncedChange::Write { offset: *offset, bytes };
            let fates = [Fate::Kept, Fate::Lost].into_iter().chain(tears).collect();
            (what, fates, all.unwrap_or(u128::MAX).max(2))
        }
    };
    let mut possible = possible;
    if let Change::Write { offset, bytes } = change
        && !bytes.is_empty()
        && offset + bytes.len() as u64 > length
    {
        // The length is kept by another mechanism than the bytes.
        fates.push(Fate::Torn(Tear::Zeros));
        possible = possible.saturating_add(1);
        if *offset < length {
            fates.push(Fate::Torn(Tear::Inside));
            possible = possible.saturating_add(1);
        }
    }
    Unsynced { path: path.to_owned(), what, fates, possible }
}

impl DiskFork {
    pub(super) fn inode(&self, number: u64) -> Option<&ForkedInode> {
        self.inodes.get(&number)
    }

    /// Everything unsynced: of files by their number, then of names, each in the order it was done.
    pub(in crate::runtime::sim) fn unsynced(&self) -> Vec<Unsynced> {
        let mut all = Vec::new();
        for inode in self.inodes.values() {
            let mut length = inode.durable.length();
            for change in &inode.pending {
                all.push(unsynced_change(&inode.path, change, length));
                length = match change {
                    Change::Write { offset, bytes } => length.max(offset + bytes.len() as u64),
                    Change::SetLength(length) => *length,
                };
            }
        }
        for steps in self.names.pending() {
            let (path, what) = named_change(steps);
            let fates = vec![Fate::Kept, Fate::Lost];
            all.push(Unsynced { path, what, fates, possible: 2 });
        }
        all
    }

    /// The disk that these fates leave, one for each of [`Self::unsynced`], in its order.
    pub(in crate::runtime::sim) fn content(
        &self,
        mut fates: impl Iterator<Item = Fate>,
    ) -> DiskContent {
        let mut inodes = BTreeMap::new();
        for (number, inode) in &self.inodes {
            let mut content = inode.durable.clone();
            for change in &inode.pending {
                match (fates.next().unwrap_or(Fate::Kept), change) {
                    (Fate::Lost, _) => {}
                    (Fate::Torn(Tear::Inside), Change::Write { offset, bytes }) => {
                        let inside = content.length().saturating_sub(*offset);
                        let inside = usize::try_from(inside).unwrap_or(usize::MAX);
                        content.write(*offset, &bytes[..inside.min(bytes.len())]);
                    }
                    (Fate::Torn(tear), Change::Write { offset, bytes }) => {
                        write_sectors(&mut content, *offset, bytes, |sector| tear.keeps(sector));
                        if tear == Tear::Zeros {
                            let end = offset + bytes.len() as u64;
                            content.set_length(content.length().max(end));
                        }
                    }
                    (_, change) => content.apply(change),
                }
            }
            inodes.insert(*number, Arc::new(content));
        }
        let names = self.names.after(|| fates.next().unwrap_or(Fate::Kept) != Fate::Lost);
        let named = names.inodes();
        inodes.retain(|number, _| named.contains(number));
        DiskContent { inodes, names }
    }
}

fn named_change(steps: &NameSteps) -> (PathBuf, UnsyncedChange) {
    let removed = steps.iter().find(|(_, named)| named.is_none()).map(|(path, _)| path.clone());
    let made = steps.iter().find(|(_, named)| named.is_some()).map(|(path, _)| path.clone());
    match (removed, made) {
        (Some(from), Some(to)) => (to, UnsyncedChange::Renamed { from }),
        (Some(path), None) => (path, UnsyncedChange::Removed),
        (None, made) => (made.unwrap_or_default(), UnsyncedChange::Created),
    }
}

impl DiskContent {
    /// Equal disks have equal sums.
    pub(in crate::runtime::sim) fn sum(&self) -> u64 {
        let mut sum = 0;
        let mut add = |value: u64| sum = mix(sum ^ value);
        for (path, inode) in self.names.entries() {
            add(u64::from(crc32c::crc32c(path.as_os_str().as_encoded_bytes())));
            let Some(content) = inode.and_then(|number| self.inodes.get(&number)) else { continue };
            add(content.length());
            content.page_sums(&mut add);
        }
        sum
    }
}

impl DiskState {
    /// A copy of the content at this moment.
    pub(in crate::runtime::sim) fn fork(&self) -> DiskFork {
        let fork = |inode: &Inode| ForkedInode {
            path: inode.path.clone(),
            durable: inode.durable.clone(),
            pending: inode.pending.iter().map(|pending| pending.change.clone()).collect(),
        };
        let inodes = self.inodes.iter().map(|(number, inode)| (*number, fork(inode))).collect();
        DiskFork { inodes, names: self.names.fork() }
    }

    /// Takes this content in place of all there was.
    pub(in crate::runtime::sim) fn mount(&mut self, content: &DiskContent) {
        self.wipe();
        for (path, inode) in content.names.entries() {
            let Some(number) = inode else { continue };
            let Some(found) = content.inodes.get(&number) else { continue };
            let inode = Inode {
                current: Content::clone(found),
                durable: Content::clone(found),
                pending: Vec::new(),
                handles: 0,
                path: path.to_owned(),
            };
            self.used += inode.current.length();
            self.inodes.insert(number, inode);
            self.next_inode = self.next_inode.max(number);
        }
        self.names = Names::of(&content.names);
    }
}
