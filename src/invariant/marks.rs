//! The registry behind `reached!`: counts per process, since a simulated run is one process.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a file to which each mark is added as it is first visited: how a test sees what another process reached.
#[cfg(feature = "mutants")]
pub const VARIABLE: &str = "SEAWALL_MARKS";

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
            #[cfg(feature = "mutants")]
            tell(self.name);
        }
    }
}

#[cfg(feature = "mutants")]
#[allow(
    clippy::disallowed_methods,
    reason = "in no binary that serves, and outside of any world: whether it is done changes nothing in a run"
)]
fn tell(name: &str) {
    use std::io::Write;
    if let Ok(path) = std::env::var(VARIABLE)
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path)
    {
        // A mark that is not told counts as not reached, which its test says.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

/// Every mark visited by this process, with its number of visits, in name order.
pub fn visited() -> BTreeMap<&'static str, u64> {
    let visited = VISITED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    visited.iter().map(|(name, mark)| (*name, mark.hits.load(Ordering::Relaxed))).collect()
}
