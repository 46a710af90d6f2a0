//! Names: the tree as the process sees it, the tree as a power loss may find it, and the changes between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::mutant;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Directory,
    File(u64),
}

/// What names stand for from now on; `None`: they are gone.
pub(super) type NameSteps = [(PathBuf, Option<Named>)];

/// One step that happens whole or not at all.
pub(super) struct NameChange {
    pub(super) sequence: u64,
    /// Folders whose sync makes it durable.
    parents: Vec<PathBuf>,
    steps: Vec<(PathBuf, Option<Named>)>,
}

/// Names at one moment: those that are durable, and the changes that are not.
#[derive(Clone)]
pub(super) struct NamesFork {
    durable: BTreeMap<PathBuf, Named>,
    pending: Vec<Vec<(PathBuf, Option<Named>)>>,
}

/// Both trees.
pub(super) struct Names {
    current: BTreeMap<PathBuf, Named>,
    durable: BTreeMap<PathBuf, Named>,
    pending: Vec<NameChange>,
    sequence: u64,
}

fn apply(tree: &mut BTreeMap<PathBuf, Named>, steps: &NameSteps) {
    for (path, named) in steps {
        match named {
            Some(named) => tree.insert(path.clone(), *named),
            None => tree.remove(path),
        };
    }
}

/// Without what is in a folder that did not survive.
fn reachable(names: &BTreeMap<PathBuf, Named>) -> BTreeMap<PathBuf, Named> {
    let mut kept = BTreeMap::new();
    for (path, named) in names {
        let above = parent(path);
        let reachable = above.as_os_str().is_empty()
            || above == Path::new("/")
            || kept.get(&above) == Some(&Named::Directory);
        if reachable || path == Path::new("/") {
            kept.insert(path.clone(), *named);
        }
    }
    kept
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or_else(|| Path::new("")).to_owned()
}

impl NamesFork {
    /// The changes that are not durable, in the order they were done.
    pub(super) fn pending(&self) -> impl Iterator<Item = &NameSteps> {
        self.pending.iter().map(Vec::as_slice)
    }

    /// The names that a power loss leaves; `keeps` says of each unsynced change whether it survives.
    pub(super) fn after(&self, mut keeps: impl FnMut() -> bool) -> Self {
        let mut durable = self.durable.clone();
        for steps in &self.pending {
            let is_rename = steps.len() > 1;
            if keeps() || (is_rename && mutant!("X-rename")) {
                apply(&mut durable, steps);
            }
        }
        Self { durable: reachable(&durable), pending: Vec::new() }
    }

    /// Each durable name, and the file if it stands for one.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Path, Option<u64>)> {
        self.durable.iter().map(|(path, named)| match named {
            Named::File(inode) => (path.as_path(), Some(*inode)),
            Named::Directory => (path.as_path(), None),
        })
    }

    /// Every file with a durable name.
    pub(super) fn inodes(&self) -> BTreeSet<u64> {
        self.entries().filter_map(|(_, inode)| inode).collect()
    }
}

impl Names {
    /// The durable names of a fork.
    pub(super) fn of(fork: &NamesFork) -> Self {
        let (current, durable) = (fork.durable.clone(), fork.durable.clone());
        Self { current, durable, pending: Vec::new(), sequence: 0 }
    }

    /// A copy at this moment.
    pub(super) fn fork(&self) -> NamesFork {
        let pending = self.pending.iter().map(|change| change.steps.clone()).collect();
        NamesFork { durable: self.durable.clone(), pending }
    }

    /// The name that the first unsynced change in this folder is about.
    pub(super) fn first_unsynced(&self, folder: &Path) -> Option<PathBuf> {
        let steps = self.pending.iter().flat_map(|change| &change.steps);
        steps.map(|(path, _)| path).find(|path| path.parent() == Some(folder)).cloned()
    }

    pub(super) fn new() -> Self {
        Self {
            current: BTreeMap::new(),
            durable: BTreeMap::new(),
            pending: Vec::new(),
            sequence: 0,
        }
    }

    pub(super) fn get(&self, path: &Path) -> Option<Named> {
        if path == Path::new("/") || path == Path::new("") || path == Path::new(".") {
            return Some(Named::Directory);
        }
        self.current.get(path).copied()
    }

    /// Number of the last change.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    fn change(&mut self, steps: Vec<(PathBuf, Option<Named>)>) {
        apply(&mut self.current, &steps);
        self.sequence += 1;
        let mut parents: Vec<PathBuf> = steps.iter().map(|(path, _)| parent(path)).collect();
        parents.dedup();
        self.pending.push(NameChange { sequence: self.sequence, parents, steps });
    }

    pub(super) fn set(&mut self, path: &Path, named: Named) {
        self.change(vec![(path.to_owned(), Some(named))]);
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(vec![(path.to_owned(), None)]);
    }

    /// Moves a name, and all below it if it is a directory.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        let mut steps = Vec::new();
        for (path, named) in self.below(from) {
            steps.push((path.clone(), None));
            let moved = path.strip_prefix(from).map_or_else(
                |_| to.to_owned(),
                |rest| {
                    if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) }
                },
            );
            steps.push((moved, Some(named)));
        }
        self.change(steps);
    }

    /// Removes a directory and all below it, one name after the other, the deepest first.
    pub(super) fn remove_all(&mut self, path: &Path) {
        for (path, _) in self.below(path).into_iter().rev() {
            self.remove(&path);
        }
    }

    /// The name and everything below it.
    fn below(&self, path: &Path) -> Vec<(PathBuf, Named)> {
        self.current
            .range(path.to_owned()..)
            .take_while(|(found, _)| found.starts_with(path))
            .map(|(found, named)| (found.clone(), *named))
            .collect()
    }

    /// What is directly in a directory, in name order.
    pub(super) fn children(&self, path: &Path) -> Vec<(String, Named)> {
        let at_root = path == Path::new("") || path == Path::new(".");
        let all: Box<dyn Iterator<Item = (&PathBuf, &Named)>> = if at_root {
            Box::new(self.current.iter())
        } else {
            Box::new(
                self.current
                    .range(path.to_owned()..)
                    .take_while(move |(found, _)| found.starts_with(path)),
            )
        };
        let wanted = if at_root { Path::new("") } else { path };
        let mut children: Vec<(String, Named)> = all
            .filter(|(found, _)| found.parent() == Some(wanted))
            .filter_map(|(found, named)| Some((found.file_name()?.to_str()?.to_owned(), *named)))
            .collect();
        children.sort_by(|one, other| one.0.cmp(&other.0));
        children
    }

    /// Makes the changes of names in this folder durable, up to a change number.
    pub(super) fn make_durable(&mut self, folder: &Path, upto: u64) {
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            let covered =
                change.sequence <= upto && change.parents.iter().any(|parent| parent == folder);
            if covered {
                apply(&mut self.durable, &change.steps);
            } else {
                self.pending.push(change);
            }
        }
    }

    /// Makes a directory exist and durable, with its parents.
    pub(super) fn set_durable_directory(&mut self, path: &Path) {
        for ancestor in path.ancestors() {
            if self.get(ancestor).is_none() {
                self.current.insert(ancestor.to_owned(), Named::Directory);
            }
            if !ancestor.as_os_str().is_empty() {
                self.durable.entry(ancestor.to_owned()).or_insert(Named::Directory);
            }
        }
    }

    /// Power loss: `keeps` says of each unsynced change whether it survives.
    pub(super) fn power_loss(&mut self, mut keeps: impl FnMut() -> bool) {
        for change in std::mem::take(&mut self.pending) {
            if keeps() {
                apply(&mut self.durable, &change.steps);
            }
        }
        self.durable = reachable(&self.durable);
        self.current = self.durable.clone();
    }

    /// Every file that has a name, or may have one after a power loss.
    pub(super) fn inodes(&self) -> BTreeSet<u64> {
        let pending = self.pending.iter().flat_map(|change| &change.steps);
        self.current
            .values()
            .chain(self.durable.values())
            .copied()
            .chain(pending.filter_map(|(_, named)| *named))
            .filter_map(|named| match named {
                Named::File(inode) => Some(inode),
                Named::Directory => None,
            })
            .collect()
    }

    /// The files by their present names.
    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        self.current
            .iter()
            .filter_map(|(path, named)| match named {
                Named::File(inode) => Some((path.clone(), *inode)),
                Named::Directory => None,
            })
            .collect()
    }
}
