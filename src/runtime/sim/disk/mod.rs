//! A node's disk in memory: what is durable apart from what is current, for bytes and for names.

mod content;
mod driver;
mod faults;
mod file;
mod fork;
mod names;
mod possible;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;

use super::settings::DiskSettings;
use super::tape::Site;
use content::Content;
use names::Names;

pub(super) use driver::SimDisk;
pub use faults::Rotted;
pub(super) use fork::{DiskContent, DiskFork};

/// The unit that is written whole or not at all.
pub(super) const SECTOR: u64 = 512;

/// A change of a file that is not durable yet.
struct PendingChange {
    sequence: u64,
    change: Change,
}

#[derive(Clone)]
enum Change {
    Write { offset: u64, bytes: Bytes },
    SetLength(u64),
}

/// A file's content, apart from its names.
struct Inode {
    current: Content,
    durable: Content,
    pending: Vec<PendingChange>,
    /// Open handles of the running process.
    handles: u64,
    /// Some path it was opened by, for errors and fault filters.
    path: PathBuf,
}

/// The disk; it outlives the node's processes.
pub(super) struct DiskState {
    pub(super) node: u32,
    pub(super) settings: DiskSettings,
    pub(super) site: Site,
    inodes: BTreeMap<u64, Inode>,
    names: Names,
    next_inode: u64,
    next_change: u64,
    used: u64,
    operations: u64,
    power_losses: u64,
    locks: BTreeSet<PathBuf>,
    stalled: bool,
    released: Arc<Notify>,
    /// The record of what made it worse last; 0 if it is sound.
    made_worse: u32,
}

impl DiskState {
    pub(super) fn new(node: u32, settings: DiskSettings) -> Self {
        Self {
            node,
            settings,
            site: Site::new(node, 0),
            inodes: BTreeMap::new(),
            names: Names::new(),
            next_inode: 0,
            next_change: 0,
            used: 0,
            operations: 0,
            power_losses: 0,
            locks: BTreeSet::new(),
            stalled: false,
            released: Arc::new(Notify::new()),
            made_worse: 0,
        }
    }

    /// The process is gone: its handles and locks with it. The page cache stays.
    pub(super) fn process_ended(&mut self) {
        self.locks.clear();
        for inode in self.inodes.values_mut() {
            inode.handles = 0;
        }
        self.collect();
    }

    /// Everything gone, as on a new disk.
    pub(super) fn wipe(&mut self) {
        self.inodes.clear();
        self.names = Names::new();
        self.used = 0;
    }

    /// Exchanges the content; settings and decision counts stay with the node.
    pub(super) fn swap(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.inodes, &mut other.inodes);
        std::mem::swap(&mut self.names, &mut other.names);
        std::mem::swap(&mut self.used, &mut other.used);
        // Numbers must stay above those in the content.
        let inode = self.next_inode.max(other.next_inode);
        (self.next_inode, other.next_inode) = (inode, inode);
        let change = self.next_change.max(other.next_change);
        (self.next_change, other.next_change) = (change, change);
    }

    /// A folder made by an index: durable at once, the index has a crash rule of its own.
    pub(super) fn add_directory(&mut self, path: &std::path::Path) {
        self.names.set_durable_directory(path);
    }

    /// A folder removed with its index.
    pub(super) fn drop_directory(&mut self, path: &std::path::Path) {
        self.names.remove_all(path);
    }

    fn new_inode(&mut self, path: PathBuf) -> u64 {
        self.next_inode += 1;
        let inode = Inode {
            current: Content::default(),
            durable: Content::default(),
            pending: Vec::new(),
            handles: 0,
            path,
        };
        self.inodes.insert(self.next_inode, inode);
        self.next_inode
    }

    /// Forgets files that have no name any more, now or after a power loss, and no handle.
    fn collect(&mut self) {
        let named = self.names.inodes();
        let mut freed = 0;
        self.inodes.retain(|number, inode| {
            let keep = inode.handles > 0 || named.contains(number);
            if !keep {
                freed += inode.current.length();
            }
            keep
        });
        self.used = self.used.saturating_sub(freed);
    }

    /// Applies a change to what reads see, and remembers that it is not durable.
    fn change(&mut self, number: u64, change: Change) {
        self.next_change += 1;
        let sequence = self.next_change;
        let Some(inode) = self.inodes.get_mut(&number) else { return };
        let before = inode.current.length();
        inode.current.apply(&change);
        self.used = (self.used + inode.current.length()).saturating_sub(before);
        inode.pending.push(PendingChange { sequence, change });
    }

    /// Makes the changes up to `upto` durable.
    fn make_durable(&mut self, number: u64, upto: u64) {
        let Some(inode) = self.inodes.get_mut(&number) else { return };
        let pending = std::mem::take(&mut inode.pending);
        for entry in pending {
            if entry.sequence > upto {
                inode.pending.push(entry);
            } else {
                inode.durable.apply(&entry.change);
            }
        }
    }
}
