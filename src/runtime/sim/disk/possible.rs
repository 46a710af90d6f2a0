//! Whether given files and folders are among those that a power loss may leave: the model as a judge of what
//! another disk left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::fork::{DiskFork, ForkedInode};
use super::{Change, SECTOR};
use crate::runtime::sim::crash::Unlikely;

/// Unsynced changes of names whose every combination is gone through.
const NAMES_MAX: usize = 14;
/// The same of the lengths of one file, and of the writes to one sector.
const CHANGES_MAX: usize = 12;

/// Changes of one file, those of its length chosen.
type Chosen<'a> = Vec<&'a Change>;

impl DiskFork {
    pub(in crate::runtime::sim) fn may_leave(
        &self,
        found: &BTreeMap<PathBuf, Option<Bytes>>,
    ) -> Result<(), Unlikely> {
        let count = self.names.pending().count();
        if count > NAMES_MAX {
            return Err(Unlikely::TooMany);
        }
        let mut wrong = None;
        for choice in 0..1_u32 << count {
            let mut number = 0;
            let names = self.names.after(|| {
                number += 1;
                choice >> (number - 1) & 1 == 1
            });
            let entries: Vec<(&Path, Option<u64>)> = names.entries().collect();
            let are_same = entries.len() == found.len()
                && entries.iter().zip(found).all(|((path, inode), (name, bytes))| {
                    *path == name && inode.is_some() == bytes.is_some()
                });
            if !are_same {
                continue;
            }
            match self.first_impossible(&entries, found)? {
                None => return Ok(()),
                Some(path) => {
                    wrong = Some(format!("the content of {} is none it can have", path.display()));
                }
            }
        }
        let names =
            || format!("no choice among {count} changes leaves the names {:?}", found.keys());
        Err(Unlikely::Impossible(wrong.unwrap_or_else(names)))
    }

    fn first_impossible(
        &self,
        entries: &[(&Path, Option<u64>)],
        found: &BTreeMap<PathBuf, Option<Bytes>>,
    ) -> Result<Option<PathBuf>, Unlikely> {
        for ((path, inode), bytes) in entries.iter().zip(found.values()) {
            let (Some(inode), Some(bytes)) = (inode, bytes) else { continue };
            let Some(inode) = self.inode(*inode) else { return Ok(Some(path.to_path_buf())) };
            if !inode.may_be(bytes)? {
                return Ok(Some(path.to_path_buf()));
            }
        }
        Ok(None)
    }
}

impl ForkedInode {
    fn may_be(&self, bytes: &[u8]) -> Result<bool, Unlikely> {
        let lengths =
            self.pending.iter().filter(|change| matches!(change, Change::SetLength(_))).count();
        if lengths > CHANGES_MAX {
            return Err(Unlikely::TooMany);
        }
        for choice in 0..1_u32 << lengths {
            let mut number = 0;
            let chosen: Chosen<'_> = self
                .pending
                .iter()
                .filter(|change| match change {
                    Change::Write { .. } => true,
                    Change::SetLength(_) => {
                        number += 1;
                        choice >> (number - 1) & 1 == 1
                    }
                })
                .collect();
            if self.may_be_as_long(&chosen, bytes.len() as u64) && self.may_hold(&chosen, bytes)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Each write leaves the length, or makes it one at which a sector of it ends.
    fn may_be_as_long(&self, chosen: &Chosen<'_>, length: u64) -> bool {
        let mut lengths = std::collections::BTreeSet::from([self.durable.length()]);
        for change in chosen {
            match change {
                Change::SetLength(length) => lengths = [*length].into(),
                Change::Write { bytes, .. } if bytes.is_empty() => {}
                Change::Write { offset, bytes } => {
                    let end = offset + bytes.len() as u64;
                    let ends = (offset / SECTOR + 1..=end.div_ceil(SECTOR))
                        .map(|sector| (sector * SECTOR).min(end));
                    let ends: Vec<u64> = ends.collect();
                    let longer = lengths
                        .iter()
                        .flat_map(|length| ends.iter().map(move |end| (*length).max(*end)));
                    let longer: Vec<u64> = longer.collect();
                    lengths.extend(longer);
                }
            }
        }
        lengths.contains(&length)
    }

    /// Each sector is what some of the writes to it leave.
    fn may_hold(&self, chosen: &Chosen<'_>, bytes: &[u8]) -> Result<bool, Unlikely> {
        for (number, sector) in bytes.chunks(SECTOR as usize).enumerate() {
            let start = number as u64 * SECTOR;
            let touches = |change: &&&Change| match change {
                Change::Write { offset, bytes } => {
                    *offset < start + SECTOR && offset + bytes.len() as u64 > start
                }
                Change::SetLength(length) => *length < start + SECTOR,
            };
            let changes: Vec<&Change> = chosen.iter().filter(touches).copied().collect();
            let writes = changes.iter().filter(|change| matches!(change, Change::Write { .. }));
            let writes = writes.count();
            if writes > CHANGES_MAX {
                return Err(Unlikely::TooMany);
            }
            let mut durable = [0; SECTOR as usize];
            let kept = self.durable.read(start, SECTOR as usize);
            durable[..kept.len()].copy_from_slice(&kept);
            let holds = (0..1_u32 << writes).any(|choice| {
                let left = sector_after(durable, start, &changes, choice);
                left[..sector.len()] == *sector
            });
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The sector after the writes that the bits choose.
fn sector_after(
    mut sector: [u8; SECTOR as usize],
    start: u64,
    changes: &[&Change],
    choice: u32,
) -> [u8; SECTOR as usize] {
    let mut number = 0;
    for change in changes {
        match change {
            Change::SetLength(length) => {
                let from = usize::try_from(length.saturating_sub(start)).unwrap_or(usize::MAX);
                sector.iter_mut().skip(from).for_each(|byte| *byte = 0);
            }
            Change::Write { offset, bytes } => {
                number += 1;
                if choice >> (number - 1) & 1 == 0 {
                    continue;
                }
                for (at, byte) in sector.iter_mut().enumerate() {
                    let place = (start + at as u64).checked_sub(*offset);
                    let place = place.and_then(|place| usize::try_from(place).ok());
                    if let Some(new) = place.and_then(|place| bytes.get(place)) {
                        *byte = *new;
                    }
                }
            }
        }
    }
    sector
}
