//! What the fault plan and a power loss do to a disk.

use std::path::{Path, PathBuf};

use super::content::Content;
use super::{Change, DiskState, SECTOR};
use crate::runtime::sim::keyed::{below, keyed, mix};
use crate::runtime::sim::lock;
use crate::runtime::sim::node::SimNode;
use crate::runtime::sim::recorder::{Happening, Note};
use crate::runtime::sim::settings::DiskSettings;
use crate::runtime::sim::tape::{DecisionKind, Site};
use crate::runtime::sim::trace::EventKind;
use crate::runtime::sim::world::Shared;

/// A bit that was flipped at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotted {
    /// The file.
    pub path: PathBuf,
    /// The byte.
    pub offset: u64,
    /// The bit in it.
    pub bit: u8,
}

/// What becomes of one unsynced write.
enum Fate {
    Kept,
    Lost,
    /// Each sector on its own, by these bits.
    Torn(u64),
}

/// The value on the tape: 0 lost, otherwise torn by the bits that follow from it.
fn fate(value: u64, style: u64) -> Fate {
    // Whole files mostly share a fate; mixes are where the bugs are, so they are half of the cases.
    match style % 4 {
        0 => Fate::Lost,
        1 => Fate::Kept,
        _ => match value % 3 {
            0 => Fate::Lost,
            1 => Fate::Kept,
            _ => Fate::Torn(value),
        },
    }
}

/// Writes the sectors of a write that are to be there; they are counted from its own first.
pub(super) fn write_sectors(
    content: &mut Content,
    offset: u64,
    bytes: &[u8],
    mut keeps: impl FnMut(u64) -> bool,
) {
    let (mut at, mut sector) = (0, 0);
    while at < bytes.len() {
        let to_boundary = (SECTOR - (offset + at as u64) % SECTOR) as usize;
        let length = to_boundary.min(bytes.len() - at);
        if keeps(sector) {
            content.write(offset + at as u64, &bytes[at..at + length]);
        }
        at += length;
        sector += 1;
    }
}

fn tear(content: &mut Content, offset: u64, bytes: &[u8], mut bits: u64) {
    write_sectors(content, offset, bytes, |_| {
        bits = mix(bits);
        bits & 1 == 1
    });
}

/// Decides what of an unsynced change is on the disk, once and for all.
fn leave_to_fate(
    shared: &Shared,
    site: &mut Site,
    durable: &mut Content,
    change: &Change,
    style: u64,
) {
    let (key, value) = site.next(shared.seed, DecisionKind::UnsyncedWrite);
    let decided = match fate(value, style) {
        Fate::Kept => Fate::Kept,
        other if shared.admit(key, value) => other,
        _ => Fate::Kept,
    };
    match (decided, change) {
        (Fate::Lost, _) => {}
        (Fate::Torn(bits), Change::Write { offset, bytes }) => tear(durable, *offset, bytes, bits),
        (_, change) => durable.apply(change),
    }
}

impl DiskState {
    /// A sync failed. What it covered is on the disk or not, from now on: the system takes it for written
    /// and no later sync tries again, while reads see all of it until the power goes.
    pub(super) fn fail_sync(&mut self, shared: &Shared, number: u64, upto: u64) {
        let Some(inode) = self.inodes.get_mut(&number) else { return };
        let style = match self.settings.lossy {
            true => keyed(&[shared.seed, 11, u64::from(self.node), number, upto]),
            false => 1,
        };
        for entry in std::mem::take(&mut inode.pending) {
            if entry.sequence > upto {
                inode.pending.push(entry);
            } else {
                leave_to_fate(shared, &mut self.site, &mut inode.durable, &entry.change, style);
            }
        }
    }

    /// Unsynced writes and names are lost, kept or torn; then what is durable is all there is.
    pub(in crate::runtime::sim) fn power_loss(&mut self, shared: &Shared) {
        let lossy = self.settings.lossy;
        self.power_losses += 1;
        let loss = keyed(&[shared.seed, 9, u64::from(self.node), self.power_losses]);
        let mut inodes = std::mem::take(&mut self.inodes);
        for (number, inode) in &mut inodes {
            let pending = std::mem::take(&mut inode.pending);
            let style = if lossy { keyed(&[loss, *number]) } else { 1 };
            for entry in pending {
                leave_to_fate(shared, &mut self.site, &mut inode.durable, &entry.change, style);
            }
            inode.current = inode.durable.clone();
        }
        self.inodes = inodes;
        let style = if lossy { keyed(&[loss, 0]) } else { 1 };
        let site = &mut self.site;
        self.names.power_loss(|| {
            let (key, value) = site.next(shared.seed, DecisionKind::UnsyncedName);
            let keeps = match style % 4 {
                0 => false,
                1 => true,
                _ => value % 2 == 1,
            };
            keeps || !shared.admit(key, value)
        });
        self.collect();
        self.used = self.inodes.values().map(|inode| inode.current.length()).sum();
    }
}

impl SimNode {
    /// Changes the settings of the node's disk: error rates, slowness, capacity. Decided once per call.
    pub fn set_disk(&self, change: impl FnOnce(&mut DiskSettings)) -> bool {
        if !self.admit(DecisionKind::DiskSettings, 0) {
            return false;
        }
        let mut disk = lock(&self.state.disk);
        change(&mut disk.settings);
        let text = || disk.settings.differences(&self.shared.settings.disk);
        let made_worse = self
            .shared
            .recorder()
            .note(|| Note::from(Happening::DiskWorse).on(self.id()).text(text()));
        disk.made_worse = made_worse;
        true
    }

    /// The disk as good as the world's settings say.
    pub fn heal_disk(&self) {
        {
            let mut disk = lock(&self.state.disk);
            disk.settings = self.shared.settings.disk.clone();
            if disk.made_worse != 0 {
                self.shared.recorder().note(|| Note::from(Happening::DiskBetter).on(self.id()));
            }
            disk.made_worse = 0;
        }
        self.release_disk();
    }

    /// The disk answers nothing until [`SimNode::release_disk`].
    pub fn stall_disk(&self) -> bool {
        if !self.admit(DecisionKind::DiskStall, 0) {
            return false;
        }
        lock(&self.state.disk).stalled = true;
        self.shared.recorder().note(|| Note::from(Happening::DiskStalled).on(self.id()));
        self.shared.event(EventKind::DiskFault, [u64::from(self.id()), 0, 1]);
        true
    }

    /// Ends a stall.
    pub fn release_disk(&self) {
        let released = {
            let mut disk = lock(&self.state.disk);
            std::mem::take(&mut disk.stalled).then(|| std::sync::Arc::clone(&disk.released))
        };
        if let Some(released) = released {
            self.shared.event(EventKind::DiskFault, [u64::from(self.id()), 0, 2]);
            self.shared.recorder().note(|| Note::from(Happening::DiskReleased).on(self.id()));
            released.notify_waiters();
        }
    }

    /// Flips up to `count` bits at rest, in durable written parts of files the filter takes. Says which.
    pub fn rot(&self, takes: impl Fn(&Path) -> bool, count: usize) -> Vec<Rotted> {
        let mut rotted = Vec::new();
        let mut disk = lock(&self.state.disk);
        let mut places = Vec::new();
        for (path, number) in disk.names.files() {
            if let Some(inode) = disk.inodes.get(&number).filter(|_| takes(&path)) {
                let pages = inode.durable.written_pages();
                places.extend(pages.into_iter().map(|page| (path.clone(), number, page)));
            }
        }
        for _ in 0..count {
            let (key, value) = disk.site.next(self.shared.seed, DecisionKind::BitRot);
            let chosen = places.get(below(value, places.len() as u64) as usize);
            let Some((path, number, page)) = chosen else { break };
            let Some(inode) = disk.inodes.get_mut(number) else { continue };
            let room = (inode.durable.length() - page).min(Content::page_size());
            let offset = page + below(mix(value), room);
            let bit = (value % 8) as u8;
            if !self.shared.admit(key, value) {
                continue;
            }
            inode.durable.flip(offset, bit);
            inode.current.flip(offset, bit);
            self.shared.event(EventKind::DiskFault, [u64::from(self.id()), *number, offset]);
            self.record_rot(path, offset, bit);
            rotted.push(Rotted { path: path.clone(), offset, bit });
        }
        rotted
    }

    fn record_rot(&self, path: &Path, offset: u64, bit: u8) {
        self.shared.recorder().note(|| {
            let note = Note::from(Happening::Rot).on(self.id()).text(path.display().to_string());
            note.facts([offset as i64, i64::from(bit), 0])
        });
    }

    /// Flips one bit at rest; false if there is no such place.
    pub fn flip(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let mut disk = lock(&self.state.disk);
        let found = disk.names.files().into_iter().find(|(name, _)| name == path);
        let Some((_, number)) = found else { return false };
        let (key, _) = disk.site.next(self.shared.seed, DecisionKind::BitRot);
        let Some(inode) = disk.inodes.get_mut(&number) else { return false };
        let is_there = offset < inode.durable.length();
        if !is_there || !self.shared.admit(key, offset) {
            return false;
        }
        inode.durable.flip(offset, bit);
        inode.current.flip(offset, bit);
        self.shared.event(EventKind::DiskFault, [u64::from(self.id()), number, offset]);
        self.record_rot(path, offset, bit);
        true
    }

    /// Paths and lengths of all files, as the process sees them; for checkers.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let disk = lock(&self.state.disk);
        let length =
            |number: u64| disk.inodes.get(&number).map_or(0, |inode| inode.current.length());
        disk.names.files().into_iter().map(|(path, number)| (path, length(number))).collect()
    }
}
