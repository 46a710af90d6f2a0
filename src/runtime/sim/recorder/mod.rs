//! Writes down what happens in a world and what led to it, for a page that tells one run. Off in ordinary runs, where
//! it costs a look at an `Option`; on, it changes nothing: it draws nothing, waits for nothing and wakes nobody.

mod cause;
mod record;
mod store;

use std::fmt;
use std::sync::{Arc, Mutex};

use super::lock;
use super::tape::DecisionKind;

pub(super) use cause::Traced;
pub use record::{Happening, NOTES_BEGIN, Note, Record, Recording};
pub use store::RecordingLimits;
use store::{Store, Work};

/// Writes down, or does not; cheap to clone. Its lock is the innermost of a world.
#[derive(Clone, Default)]
pub struct Recorder(Option<Arc<Mutex<Store>>>);

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_on() { "Recorder(on)" } else { "Recorder(off)" })
    }
}

impl Recorder {
    /// One that writes down, for one run.
    pub fn within(limits: RecordingLimits) -> Self {
        Self(Some(Arc::new(Mutex::new(Store::new(limits)))))
    }

    /// Whether anything is written down.
    pub const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Writes down what `note` says, which is asked only if it is on. Answers the record's number, 0 if off.
    pub fn note<N: Into<Note>>(&self, note: impl FnOnce() -> N) -> u32 {
        let Some(store) = &self.0 else { return 0 };
        // Asked before the lock is taken.
        let note = note().into();
        lock(store).note(note)
    }

    /// One more thing that led to something.
    pub fn also(&self, what: u32, because: u32) {
        if let Some(store) = &self.0 {
            lock(store).also(what, because);
        }
    }

    /// What something that begins now is owed to: what was done last by whoever is at work, or what woke it.
    pub fn cause(&self) -> u32 {
        self.0.as_ref().map_or(0, |store| lock(store).work().cause())
    }

    /// Does something that is owed to a record, on behalf of the world.
    pub fn owing<T>(&self, cause: u32, work: impl FnOnce() -> T) -> T {
        let before = self.turn_to(Work::of(0, cause));
        let done = work();
        self.turn_to(before);
        done
    }

    /// What the world does from here on is owed to this, to the end of [`Recorder::owing`].
    pub(super) fn owing_now(&self, cause: u32) {
        self.turn_to(Work::of(0, cause));
    }

    /// Everything so far.
    pub fn recording(&self, nodes: Vec<String>) -> Recording {
        self.0.as_ref().map(|store| lock(store).recording(nodes)).unwrap_or_default()
    }

    /// Takes up other work; answers what was at work before.
    fn turn_to(&self, work: Work) -> Work {
        match &self.0 {
            Some(store) => std::mem::replace(lock(store).work(), work),
            None => Work::default(),
        }
    }

    /// Sets the clock that records are stamped with.
    pub(super) fn set_clock(&self, clock: impl Fn() -> u64 + Send + 'static) {
        if let Some(store) = &self.0 {
            lock(store).set_clock(Box::new(clock));
        }
    }

    /// Remembers what a file is called.
    pub(super) fn name_file(&self, node: u32, inode: u64, path: &std::path::Path) {
        if let Some(store) = &self.0 {
            lock(store).name_file(node, inode, path.display().to_string());
        }
    }

    /// A disk operation on a file.
    pub(super) fn file_operation(&self, node: u32, inode: u64, operation: &str, facts: [i64; 3]) {
        if let Some(store) = &self.0 {
            let mut store = lock(store);
            let text = format!("{operation} {}", store.file(node, inode));
            store.note(Note::from(Happening::Disk).on(node).facts(facts).text(text));
        }
    }

    /// A fault that a rate asked for, or what a power loss did. What the fault plan does by itself is noted where it
    /// is done.
    pub(super) fn injected(&self, kind: DecisionKind, node: u32, other: u32) -> u32 {
        use DecisionKind as Kind;
        let word = match kind {
            Kind::SegmentLost => "a segment was lost, sent again 200 ms later",
            Kind::SegmentReset => "a segment broke its stream",
            Kind::ReadError => "a read failed",
            Kind::WriteError => "a write failed",
            Kind::SyncError => "a sync failed",
            Kind::MisdirectedWrite => "a write landed elsewhere",
            Kind::UnsyncedWrite => "an unsynced write was lost or torn",
            Kind::UnsyncedName => "an unsynced name was lost",
            Kind::IndexLoss => "unflushed changes of an index were lost",
            Kind::IndexOpen => "an index failed to open",
            Kind::IndexFlush => "an index failed to flush",
            Kind::IndexRot => "a pair of an index became unreadable",
            _ => return 0,
        };
        self.note(|| {
            let note = Note::from(Happening::Injected).on(node).following();
            note.facts([i64::from(other), 0, 0]).text(word)
        })
    }
}
