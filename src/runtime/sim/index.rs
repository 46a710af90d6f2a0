//! Ordered indexes in memory, with the crash rule of the contract: unflushed changes are lost as all, none
//! or a prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::agenda::delay;
use super::crash::{CrashOccasion, Fate, Unsynced, UnsyncedChange};
use super::keyed::{below, keyed, mix, with_tail};
use super::lock;
use super::node::{NodeState, SimNode};
use super::recorder::{Happening, Note};
use super::tape::{DecisionKind, Site};
use super::trace::EventKind;
use super::world::Shared;
use crate::runtime::{IndexChange, IndexDriver, IndexError, IndexFactoryDriver, OrderedIndex};

type Pairs = BTreeMap<Bytes, Bytes>;

#[derive(Default)]
struct Store {
    current: Pairs,
    durable: Pairs,
    pending: Vec<IndexChange>,
    /// Changes since the store was made, to tell which a flush covers.
    applied: u64,
    crashed: bool,
    /// Keys whose pairs do not match their checksums any more. Only destroying the index helps.
    rotten: BTreeSet<Bytes>,
}

/// The indexes of a node; they outlive its processes.
pub(super) struct IndexState {
    node: u32,
    site: Site,
    stores: BTreeMap<PathBuf, Store>,
    broken: BTreeSet<PathBuf>,
    flushes: u64,
}

fn apply(pairs: &mut Pairs, change: &IndexChange) {
    match change {
        IndexChange::Put { key, value } => pairs.insert(key.clone(), value.clone()),
        IndexChange::Remove { key } => pairs.remove(key),
    };
}

impl Store {
    /// An engine checks what it reads, so rot is an error and never another value. Reading and changing
    /// a pair both read it.
    fn check<'a>(
        &self,
        operation: &'static str,
        mut keys: impl Iterator<Item = &'a Bytes>,
    ) -> Result<(), IndexError> {
        match keys.any(|key| self.rotten.contains(key)) {
            true => Err(failed(operation, "injected: a page does not match its checksum")),
            false => Ok(()),
        }
    }

    fn make_durable(&mut self, count: usize) {
        let count = count.min(self.pending.len());
        for change in self.pending.drain(..count) {
            apply(&mut self.durable, &change);
        }
    }
}

impl IndexState {
    pub(super) fn new(node: u32) -> Self {
        Self {
            node,
            site: Site::new(node, 0),
            stores: BTreeMap::new(),
            broken: BTreeSet::new(),
            flushes: 0,
        }
    }

    pub(super) fn wipe(&mut self) {
        self.stores.clear();
        self.broken.clear();
    }

    /// Exchanges the content with another node's.
    pub(super) fn swap(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.stores, &mut other.stores);
        std::mem::swap(&mut self.broken, &mut other.broken);
    }

    /// The process ended, in whichever way.
    pub(super) fn crash(&mut self, shared: &Shared) {
        for store in self.stores.values_mut() {
            store.crashed = true;
            let unflushed = store.pending.len();
            if unflushed == 0 {
                continue;
            }
            let (key, value) = self.site.next(shared.seed, DecisionKind::IndexLoss);
            let kept = match value % 3 {
                0 => 0,
                1 => unflushed,
                _ => below(mix(value), unflushed as u64) as usize,
            };
            let kept =
                if kept == unflushed || shared.admit(key, kept as u64) { kept } else { unflushed };
            store.make_durable(kept);
            store.pending.clear();
            store.current = store.durable.clone();
        }
    }

    /// A folder was removed, and the indexes in it.
    pub(super) fn remove_below(&mut self, path: &Path) {
        self.stores.retain(|found, _| !found.starts_with(path));
        self.broken.retain(|found| !found.starts_with(path));
    }
}

/// Indexes at one moment: what is flushed, and what is not yet.
#[derive(Clone)]
pub(super) struct IndexFork(BTreeMap<PathBuf, (Pairs, Vec<IndexChange>)>);

/// Indexes that are flushed.
#[derive(Clone)]
pub(super) struct IndexContent(BTreeMap<PathBuf, Pairs>);

/// Of the prefixes of an index's changes this many are looked at, beside none and all.
const PREFIXES: usize = 6;

impl IndexState {
    /// A copy of the content at this moment.
    pub(super) fn fork(&self) -> IndexFork {
        let fork = |store: &Store| (store.durable.clone(), store.pending.clone());
        IndexFork(self.stores.iter().map(|(path, store)| (path.clone(), fork(store))).collect())
    }

    /// Takes this content in place of all there was.
    pub(super) fn mount(&mut self, content: &IndexContent) {
        self.wipe();
        for (path, pairs) in &content.0 {
            let (current, durable) = (pairs.clone(), pairs.clone());
            let store = Store { current, durable, crashed: true, ..Store::default() };
            self.stores.insert(path.clone(), store);
        }
    }
}

impl IndexFork {
    /// Each index with changes that are not flushed.
    pub(super) fn unsynced(&self) -> Vec<Unsynced> {
        let unflushed = self.0.iter().filter(|(_, (_, pending))| !pending.is_empty());
        let unsynced = unflushed.map(|(path, (_, pending))| {
            let changes = pending.len();
            let step = changes.div_ceil(PREFIXES + 1).max(1);
            let prefixes = (1..changes).step_by(step).map(Fate::Prefix);
            Unsynced {
                path: path.clone(),
                what: UnsyncedChange::Index { changes },
                fates: [Fate::Kept, Fate::Lost].into_iter().chain(prefixes).collect(),
                possible: changes as u128 + 1,
            }
        });
        unsynced.collect()
    }

    /// The indexes that these fates leave, one for each of [`Self::unsynced`], in its order.
    pub(super) fn content(&self, mut fates: impl Iterator<Item = Fate>) -> IndexContent {
        let mut stores = BTreeMap::new();
        for (path, (durable, pending)) in &self.0 {
            let mut pairs = durable.clone();
            if !pending.is_empty() {
                let kept = match fates.next() {
                    Some(Fate::Lost) => 0,
                    Some(Fate::Prefix(count)) => count,
                    _ => pending.len(),
                };
                pending.iter().take(kept).for_each(|change| apply(&mut pairs, change));
            }
            stores.insert(path.clone(), pairs);
        }
        IndexContent(stores)
    }
}

impl IndexContent {
    /// Equal indexes have equal sums.
    pub(super) fn sum(&self) -> u64 {
        let mut sum = 0;
        let mut add = |bytes: &[u8]| {
            sum = mix(sum ^ (bytes.len() as u64) << 32 ^ u64::from(crc32c::crc32c(bytes)));
        };
        for (path, pairs) in &self.0 {
            add(path.as_os_str().as_encoded_bytes());
            for (key, value) in pairs {
                add(key);
                add(value);
            }
        }
        sum
    }
}

impl SimNode {
    /// Makes the indexes the filter takes fail to open until they are destroyed.
    pub fn break_indexes(&self, takes: impl Fn(&Path) -> bool) -> bool {
        if !self.admit(DecisionKind::IndexOpen, 0) {
            return false;
        }
        let mut indexes = lock(&self.state.indexes);
        let broken: Vec<PathBuf> =
            indexes.stores.keys().filter(|path| takes(path)).cloned().collect();
        indexes.broken.extend(broken);
        true
    }
}

impl SimNode {
    /// Makes up to `count` durable pairs of the indexes the filter takes unreadable, as flipped bytes in an
    /// index's files do. Returns how many.
    pub fn rot_indexes(&self, takes: impl Fn(&Path) -> bool, count: usize) -> usize {
        let mut indexes = lock(&self.state.indexes);
        let indexes = &mut *indexes;
        let pairs: Vec<(PathBuf, Bytes)> = indexes
            .stores
            .iter()
            .filter(|(path, _)| takes(path))
            .flat_map(|(path, store)| store.durable.keys().map(|key| (path.clone(), key.clone())))
            .collect();
        let mut rotten = 0;
        for _ in 0..count {
            let (key, value) = indexes.site.next(self.shared.seed, DecisionKind::IndexRot);
            let Some((path, pair)) = pairs.get(below(value, pairs.len() as u64) as usize) else {
                break;
            };
            if let Some(store) = indexes.stores.get_mut(path)
                && self.shared.admit(key, value)
            {
                rotten += usize::from(store.rotten.insert(pair.clone()));
                self.shared.event(EventKind::Index, [u64::from(self.id()), 4, rotten as u64]);
            }
        }
        rotten
    }
}

/// Opens indexes for one start of a node.
pub(super) struct SimIndexes {
    pub(super) shared: Arc<Shared>,
    pub(super) node: Arc<NodeState>,
    pub(super) start: u64,
}

fn index_note(node: u32, operation: &str, path: &Path, count: u64) -> Note {
    let text = format!("{operation} {}", path.display());
    Note::from(Happening::Index).on(node).facts([count as i64, 0, 0]).text(text)
}

fn failed(operation: &'static str, detail: &str) -> IndexError {
    IndexError { operation, detail: detail.to_owned() }
}

#[async_trait]
impl IndexFactoryDriver for SimIndexes {
    async fn open(&self, path: &Path) -> Result<OrderedIndex, IndexError> {
        if !self.node.is_start(self.start) {
            return Err(failed("open", "this process is gone"));
        }
        let path: PathBuf = path.components().collect();
        let rate = lock(&self.node.disk).settings.index_open_error_rate;
        {
            let mut indexes = lock(&self.node.indexes);
            let indexes = &mut *indexes;
            let store = indexes.stores.entry(path.clone()).or_default();
            if std::mem::take(&mut store.crashed)
                && self.shared.chance(&mut indexes.site, DecisionKind::IndexOpen, rate).is_some()
            {
                indexes.broken.insert(path.clone());
            }
            if indexes.broken.contains(&path) {
                return Err(failed("open", "injected: the index is damaged"));
            }
        }
        lock(&self.node.disk).add_directory(&path);
        self.shared.event(EventKind::Index, [u64::from(self.node.id), 0, 0]);
        self.shared.recorder().note(|| index_note(self.node.id, "open", &path, 0));
        let (shared, node) = (Arc::clone(&self.shared), Arc::clone(&self.node));
        Ok(Arc::new(SimIndex { shared, node, start: self.start, path }))
    }

    async fn destroy(&self, path: &Path) -> Result<(), IndexError> {
        if !self.node.is_start(self.start) {
            return Err(failed("destroy", "this process is gone"));
        }
        let path: PathBuf = path.components().collect();
        lock(&self.node.indexes).remove_below(&path);
        lock(&self.node.disk).drop_directory(&path);
        self.shared.event(EventKind::Index, [u64::from(self.node.id), 1, 0]);
        self.shared.recorder().note(|| index_note(self.node.id, "destroy", &path, 0));
        Ok(())
    }
}

struct SimIndex {
    shared: Arc<Shared>,
    node: Arc<NodeState>,
    start: u64,
    path: PathBuf,
}

impl SimIndex {
    fn with<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Store) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        if !self.node.is_start(self.start) {
            return Err(failed(operation, "this process is gone"));
        }
        let mut indexes = lock(&self.node.indexes);
        match indexes.stores.get_mut(&self.path) {
            Some(store) => work(store),
            None => Err(failed(operation, "the index was destroyed")),
        }
    }
}

fn pair((key, value): (&Bytes, &Bytes)) -> (Bytes, Bytes) {
    (key.clone(), value.clone())
}

#[async_trait]
impl IndexDriver for SimIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        self.with("get", |store| {
            let found = store.current.get_key_value(key);
            store.check("get", found.iter().map(|(key, _)| *key))?;
            Ok(found.map(|(_, value)| value.clone()))
        })
    }

    fn at_or_below(&self, key: &[u8]) -> Result<Option<(Bytes, Bytes)>, IndexError> {
        let key = Bytes::copy_from_slice(key);
        self.with("at or below", |store| {
            let found = store.current.range(..=key).next_back();
            store.check("at or below", found.iter().map(|(key, _)| *key))?;
            Ok(found.map(pair))
        })
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, IndexError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let (from, to) = (Bytes::copy_from_slice(from), Bytes::copy_from_slice(to));
        self.with("range", |store| {
            let found = || store.current.range(from.clone()..to.clone()).take(limit);
            store.check("range", found().map(|(key, _)| key))?;
            Ok(found().map(pair).collect())
        })
    }

    fn apply(&self, changes: Vec<IndexChange>) -> Result<(), IndexError> {
        let count = changes.len() as u64;
        self.with("apply", |store| {
            let keys = changes.iter().map(|change| match change {
                IndexChange::Put { key, .. } | IndexChange::Remove { key } => key,
            });
            store.check("apply", keys)?;
            for change in &changes {
                apply(&mut store.current, change);
            }
            store.applied += count;
            store.pending.extend(changes);
            Ok(())
        })?;
        self.shared.event(EventKind::Index, [u64::from(self.node.id), 2, count]);
        self.shared.recorder().note(|| index_note(self.node.id, "apply to", &self.path, count));
        Ok(())
    }

    async fn flush(&self) -> Result<(), IndexError> {
        let upto = self.with("flush", |store| Ok(store.applied))?;
        self.node.crash_point(&self.shared, CrashOccasion::SyncBegun, &self.path);
        let (least, tail, slowness, rate) = {
            let disk = lock(&self.node.disk);
            let settings = &disk.settings;
            let (least, tail) = (settings.sync_latency, settings.sync_tail);
            let rate = settings.index_flush_error_rate;
            (least.as_nanos() as u64, tail.as_nanos() as u64, settings.slowness, rate)
        };
        let value = {
            let mut indexes = lock(&self.node.indexes);
            indexes.flushes += 1;
            keyed(&[self.shared.seed, 8, u64::from(indexes.node), indexes.flushes])
        };
        let nanos = with_tail(value, least, tail).saturating_mul(u64::from(slowness.max(1)));
        delay(&self.shared, nanos).await;
        {
            let mut indexes = lock(&self.node.indexes);
            let site = &mut indexes.site;
            if self.shared.chance(site, DecisionKind::IndexFlush, rate).is_some() {
                return Err(failed("flush", "injected"));
            }
        }
        self.with("flush", |store| {
            // Those applied after the flush began are not covered; another flush may have taken some.
            let later = usize::try_from(store.applied - upto).unwrap_or(usize::MAX);
            let count = store.pending.len().saturating_sub(later);
            store.make_durable(count);
            Ok(())
        })?;
        self.shared.event(EventKind::Index, [u64::from(self.node.id), 3, upto]);
        self.shared.recorder().note(|| index_note(self.node.id, "flush", &self.path, upto));
        self.node.crash_point(&self.shared, CrashOccasion::SyncDone, &self.path);
        Ok(())
    }
}
