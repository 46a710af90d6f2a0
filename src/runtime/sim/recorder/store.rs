//! Where records are kept, within limits, and what is being done right now.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::record::{Note, Record, Recording};

/// How much a recording may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingLimits {
    /// Records of what comes by the thousand (segments, disk operations, timers, logs). The newest are kept.
    pub traffic: usize,
    /// Records of everything else. The newest are kept.
    pub story: usize,
    /// Different texts; later ones are empty.
    pub texts: usize,
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self { traffic: 1 << 20, story: 1 << 18, texts: 1 << 18 }
    }
}

/// The most bytes of one text.
const TEXT_BYTES_MAX: usize = 2000;
/// The most causes of one record besides its first.
const MORE_CAUSES_MAX: usize = 8;

/// Who is at work, what woke it, and what it did last since then.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::runtime::sim) struct Work {
    node: u32,
    woken_by: u32,
    last: u32,
}

impl Work {
    pub(super) const fn of(node: u32, woken_by: u32) -> Self {
        Self { node, woken_by, last: 0 }
    }

    /// What something that begins now is owed to.
    pub(super) const fn cause(self) -> u32 {
        if self.last == 0 { self.woken_by } else { self.last }
    }
}

#[derive(Default)]
struct Texts {
    known: BTreeMap<Arc<str>, u32>,
    all: Vec<Arc<str>>,
}

impl Texts {
    fn number(&mut self, text: String, limit: usize) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|at| text.is_char_boundary(*at));
        let text = &text[..end.unwrap_or(0)];
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        if self.all.len() >= limit {
            return 0;
        }
        let shared: Arc<str> = text.into();
        self.all.push(Arc::clone(&shared));
        let number = self.all.len() as u32;
        self.known.insert(shared, number);
        number
    }
}

/// All of a recording.
pub(super) struct Store {
    limits: RecordingLimits,
    clock: Box<dyn Fn() -> u64 + Send>,
    work: Work,
    next: u32,
    traffic: VecDeque<Record>,
    story: VecDeque<Record>,
    left_out: u64,
    more_causes: VecDeque<(u32, u32)>,
    texts: Texts,
    /// Paths by node and inode.
    files: BTreeMap<(u32, u64), String>,
}

fn keep(ring: &mut VecDeque<Record>, limit: usize, record: Record) -> u64 {
    let mut gone = 0;
    while ring.len() >= limit.max(1) {
        ring.pop_front();
        gone += 1;
    }
    ring.push_back(record);
    gone
}

impl Store {
    pub(super) fn new(limits: RecordingLimits) -> Self {
        Self {
            limits,
            clock: Box::new(|| 0),
            work: Work::default(),
            next: 0,
            traffic: VecDeque::new(),
            story: VecDeque::new(),
            left_out: 0,
            more_causes: VecDeque::new(),
            texts: Texts::default(),
            files: BTreeMap::new(),
        }
    }

    pub(super) fn set_clock(&mut self, clock: Box<dyn Fn() -> u64 + Send>) {
        self.clock = clock;
    }

    pub(super) fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    pub(super) fn note(&mut self, note: Note) -> u32 {
        // A run has far fewer events than numbers.
        let Some(number) = self.next.checked_add(1) else { return 0 };
        self.next = number;
        let record = Record {
            number,
            at: (self.clock)(),
            kind: note.kind,
            node: note.node.unwrap_or(self.work.node),
            cause: note.cause.unwrap_or(match note.follows {
                true => self.work.cause(),
                false => self.work.woken_by,
            }),
            facts: note.facts,
            text: self.texts.number(note.text, self.limits.texts),
        };
        self.left_out += match note.is_traffic {
            true => keep(&mut self.traffic, self.limits.traffic, record),
            false => keep(&mut self.story, self.limits.story, record),
        };
        self.work.last = number;
        number
    }

    pub(super) fn also(&mut self, what: u32, because: u32) {
        if what == 0 || because == 0 || what == because {
            return;
        }
        let of_it = self.more_causes.iter().rev().take_while(|(known, _)| *known == what);
        if of_it.clone().count() >= MORE_CAUSES_MAX
            || of_it.clone().any(|(_, cause)| *cause == because)
        {
            return;
        }
        if self.more_causes.len() >= self.limits.traffic.max(1) {
            self.more_causes.pop_front();
        }
        self.more_causes.push_back((what, because));
    }

    pub(super) fn name_file(&mut self, node: u32, inode: u64, path: String) {
        // As many files as texts: behind that a file has no name.
        if self.files.len() < self.limits.texts {
            self.files.insert((node, inode), path);
        }
    }

    pub(super) fn file(&self, node: u32, inode: u64) -> &str {
        self.files.get(&(node, inode)).map_or("", String::as_str)
    }

    pub(super) fn recording(&self, nodes: Vec<String>) -> Recording {
        let mut records: Vec<Record> = Vec::with_capacity(self.traffic.len() + self.story.len());
        records.extend(self.traffic.iter().chain(&self.story));
        records.sort_unstable_by_key(|record| record.number);
        let texts = std::iter::once(String::new());
        Recording {
            records,
            more_causes: self.more_causes.iter().copied().collect(),
            texts: texts.chain(self.texts.all.iter().map(|text| text.to_string())).collect(),
            nodes,
            left_out: self.left_out,
        }
    }
}
