//! The registry behind `reached!`: counts per process, since a simulated run is one process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

static VISITED: Mutex<BTreeMap<&'static str, &'static Mark>> = Mutex::new(BTreeMap::new());

/// One marked branch.
#[derive(Debug)]
pub struct Mark {
    name: &'static str,
    hits: AtomicU64,
}

impl Mark {
    /// A mark nobody has visited yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, hits: AtomicU64::new(0) }
    }

    /// Counts one visit; the first one enters the mark in the registry.
    pub fn hit(&'static self) {
        if self.hits.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut visited = VISITED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            visited.insert(self.name, self);
        }
    }
}

/// Every mark visited by this process, with its number of visits, in name order.
pub fn visited() -> BTreeMap<&'static str, u64> {
    let visited = VISITED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    visited.iter().map(|(name, mark)| (*name, mark.hits.load(Ordering::Relaxed))).collect()
}
