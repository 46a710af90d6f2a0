//! One run of a subject's work, written down: what was asked and promised, and the moments at which the power
//! may go.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::runtime::sim::{CrashPoint, SimNode};

/// A moment, and how much had been asked and promised by then.
pub(super) struct Moment {
    pub(super) point: CrashPoint,
    pub(super) facts: usize,
    /// Whose disk it is.
    pub(super) place: u64,
}

/// What is written down.
pub(super) struct Written<F> {
    pub(super) facts: Vec<F>,
    pub(super) moments: Vec<Moment>,
}

/// Writes down. Cheap to clone.
pub(super) struct Record<F>(Arc<Mutex<Written<F>>>);

impl<F> Clone for Record<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Send + 'static> Record<F> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Written { facts: Vec::new(), moments: Vec::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Written<F>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Watches the disk of a node, called `place`.
    pub(super) fn watch(&self, node: &SimNode, place: u64) {
        let record = self.clone();
        node.watch_crash_points(move |point| {
            let mut written = record.lock();
            let facts = written.facts.len();
            written.moments.push(Moment { point, facts, place });
        });
    }

    /// Something is going to be asked for.
    pub(super) fn asked(&self, fact: F) {
        self.lock().facts.push(fact);
    }

    /// Something was promised: from this moment on it has to be there.
    pub(super) fn promised(&self, node: &SimNode, fact: F) {
        self.promised_as("promise", node, fact);
    }

    /// The same under a word of its own in the table.
    pub(super) fn promised_as(&self, word: &str, node: &SimNode, fact: F) {
        self.lock().facts.push(fact);
        node.ask_crash_point(Path::new(word));
    }

    /// All of it.
    pub(super) fn take(&self) -> Written<F> {
        let mut written = self.lock();
        Written {
            facts: std::mem::take(&mut written.facts),
            moments: std::mem::take(&mut written.moments),
        }
    }
}
