//! What lasted: states of nodes, faults of links, disks and clocks, phases of the run, operations of clients. Each from
//! the record it began with to the record it ended with.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::runtime::sim::{Happening, Recording};
use crate::simulator::noted::Noted;

/// What kind of span; what the page draws it like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Class {
    Phase,
    Starting,
    Serving,
    Paused,
    Down,
    GaveUp,
    Leads,
    Owns,
    Disk,
    Clock,
    Cut,
    Slow,
    Committed,
    Rejected,
    Unknown,
    Acknowledged,
    Answered,
}

/// How the classes are called, in their order.
pub(super) const CLASSES: &[&str] = &[
    "phase",
    "starting",
    "serving",
    "paused",
    "down",
    "gave-up",
    "leads",
    "owns",
    "disk",
    "clock",
    "cut",
    "slow",
    "committed",
    "rejected",
    "unknown",
    "acknowledged",
    "answered",
];

/// What lasted from one row to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) lane: u32,
    pub(super) class: Class,
    /// The row it began with.
    pub(super) from: usize,
    /// The row it ended with; none if it did not.
    pub(super) to: Option<usize>,
    pub(super) text: String,
}

/// A row of the picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Lane {
    pub(super) name: String,
    /// `run`, `node`, `client` or `link`.
    pub(super) kind: &'static str,
}

/// The spans of a recording and the lanes they are on: the run, then the nodes, then links that had faults.
pub(super) struct Picture {
    pub(super) lanes: Vec<Lane>,
    pub(super) spans: Vec<Span>,
}

/// Which span of a lane: at most one is open of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Phase,
    State,
    Leads,
    Owns,
    Disk,
    Stall,
    Clock(u32),
    Cut,
    Slow,
    Links,
}

struct Fold<'a> {
    recording: &'a Recording,
    lanes: Vec<Lane>,
    links: BTreeMap<(u32, u32), u32>,
    open: BTreeMap<(u32, Track), usize>,
    /// What a node was before it was paused.
    before_pause: BTreeMap<u32, (Class, String)>,
    /// Why a node is about to be down.
    gave_up: BTreeMap<u32, String>,
    /// Operations without an end, by the number of their record.
    operations: BTreeMap<u32, usize>,
    spans: Vec<Span>,
}

/// Clients are known by their names, which the simulator gives.
fn is_client(name: &str) -> bool {
    name.starts_with("client-")
}

/// Folds a recording.
pub(super) fn picture(recording: &Recording) -> Picture {
    let run = Lane { name: "run".to_owned(), kind: "run" };
    let nodes = recording.nodes.iter().map(|name| Lane {
        name: name.clone(),
        kind: if is_client(name) { "client" } else { "node" },
    });
    let mut fold = Fold {
        recording,
        lanes: std::iter::once(run).chain(nodes).collect(),
        links: BTreeMap::new(),
        open: BTreeMap::new(),
        before_pause: BTreeMap::new(),
        gave_up: BTreeMap::new(),
        operations: BTreeMap::new(),
        spans: Vec::new(),
    };
    let mut more = recording.more_causes.iter().peekable();
    let mut causes = Vec::new();
    for row in 0..recording.records.len() {
        let number = recording.records[row].number;
        // Edges come in the order they were noticed, which is nearly that of their records.
        causes.clear();
        while let Some((what, because)) = more.next_if(|(what, _)| *what <= number) {
            if *what == number {
                causes.push(*because);
            }
        }
        fold.step(row, &causes);
    }
    fold.spans.sort_by_key(|span| span.from);
    Picture { lanes: fold.lanes, spans: fold.spans }
}

impl Fold<'_> {
    fn begin(
        &mut self,
        lane: u32,
        track: Track,
        class: Class,
        row: usize,
        text: impl Into<String>,
    ) {
        self.end(lane, track, row);
        self.open.insert((lane, track), self.spans.len());
        self.spans.push(Span { lane, class, from: row, to: None, text: text.into() });
    }

    fn end(&mut self, lane: u32, track: Track, row: usize) {
        if let Some(span) = self.open.remove(&(lane, track)).and_then(|at| self.spans.get_mut(at)) {
            span.to = Some(row);
        }
    }

    fn name(&self, node: u32) -> &str {
        let index = (node as usize).checked_sub(1);
        index.and_then(|index| self.recording.nodes.get(index)).map_or("?", String::as_str)
    }

    /// On the lanes of nodes, what is wrong with their links by now.
    fn tell_links(&mut self, nodes: &[u32], row: usize) {
        for node in nodes.iter().copied() {
            let (mut cut, mut slow) = (Vec::new(), Vec::new());
            for ((from, to), lane) in &self.links {
                let words = match (*from == node, *to == node) {
                    (true, _) => format!("→ {}", self.name(*to)),
                    (_, true) => format!("← {}", self.name(*from)),
                    _ => continue,
                };
                if self.open.contains_key(&(*lane, Track::Cut)) {
                    cut.push(words);
                } else if self.open.contains_key(&(*lane, Track::Slow)) {
                    slow.push(words);
                }
            }
            let others = self.recording.nodes.len().saturating_sub(1);
            let (class, text) = match (cut.len(), slow.len()) {
                (0, 0) => {
                    self.end(node, Track::Links, row);
                    continue;
                }
                (0, _) => (Class::Slow, format!("slow {}", slow.join(", "))),
                (count, _) if count >= 2 * others => (Class::Cut, "cut off from all".to_owned()),
                (_, 0) => (Class::Cut, format!("cut {}", cut.join(", "))),
                _ => (Class::Cut, format!("cut {}; slow {}", cut.join(", "), slow.join(", "))),
            };
            // What happens at once is one state.
            let at = |row: usize| self.recording.records[row].at;
            match self.open.get(&(node, Track::Links)).map(|open| &mut self.spans[*open]) {
                Some(span) if at(span.from) == at(row) => (span.class, span.text) = (class, text),
                _ => self.begin(node, Track::Links, class, row, text),
            }
        }
    }

    /// The lane of a directed link; made when it first has a fault.
    fn link(&mut self, from: u32, to: u32) -> u32 {
        let next = self.lanes.len() as u32;
        let lane = *self.links.entry((from, to)).or_insert(next);
        if lane == next {
            let name = format!("{} → {}", self.name(from), self.name(to));
            self.lanes.push(Lane { name, kind: "link" });
        }
        lane
    }

    fn step(&mut self, row: usize, more_causes: &[u32]) {
        let record = &self.recording.records[row];
        let text = self.recording.texts.get(record.text as usize).cloned().unwrap_or_default();
        let (node, kind) = (record.node, record.kind);
        let other = u32::try_from(record.facts[0]).unwrap_or(0);
        match Happening::ALL.iter().find(|known| **known as u8 == kind) {
            Some(Happening::Start) => {
                let name = self.lanes.get(node as usize).map_or("", |lane| lane.kind);
                let class = if name == "client" { Class::Serving } else { Class::Starting };
                self.begin(node, Track::State, class, row, format!("start {}", record.facts[0]));
            }
            Some(Happening::Crash | Happening::PowerLoss) => self.down(node, row),
            Some(Happening::Pause) => {
                if let Some(span) = self.open.get(&(node, Track::State)).map(|at| &self.spans[*at])
                {
                    self.before_pause.insert(node, (span.class, span.text.clone()));
                }
                self.begin(node, Track::State, Class::Paused, row, "paused");
            }
            Some(Happening::Resume) => {
                let before = self.before_pause.remove(&node);
                let (class, text) = before.unwrap_or((Class::Serving, String::new()));
                self.begin(node, Track::State, class, row, text);
            }
            Some(Happening::ClockWrong) => {
                self.begin(node, Track::Clock(clock(&text)), Class::Clock, row, text);
            }
            Some(Happening::ClockRight) => self.end(node, Track::Clock(clock(&text)), row),
            Some(Happening::DiskWorse) => self.begin(node, Track::Disk, Class::Disk, row, text),
            Some(Happening::DiskBetter) => self.end(node, Track::Disk, row),
            Some(Happening::DiskStalled) => {
                self.begin(node, Track::Stall, Class::Disk, row, "answers nothing");
            }
            Some(Happening::DiskReleased) => self.end(node, Track::Stall, row),
            Some(Happening::Cut) => {
                let lane = self.link(node, other);
                if !self.open.contains_key(&(lane, Track::Cut)) {
                    self.begin(lane, Track::Cut, Class::Cut, row, "cut");
                }
                self.tell_links(&[node, other], row);
            }
            Some(Happening::LinkHealed) => {
                let lane = self.link(node, other);
                self.end(lane, Track::Cut, row);
                self.tell_links(&[node, other], row);
            }
            Some(Happening::LinkWorse) => {
                let lane = self.link(node, other);
                self.begin(lane, Track::Slow, Class::Slow, row, text);
                self.tell_links(&[node, other], row);
            }
            Some(Happening::LinkBetter) => {
                let lane = self.link(node, other);
                self.end(lane, Track::Slow, row);
                self.tell_links(&[node, other], row);
            }
            Some(Happening::AllHealed) => {
                for lane in self.links.values().copied().collect::<Vec<_>>() {
                    self.end(lane, Track::Cut, row);
                    self.end(lane, Track::Slow, row);
                }
                let nodes: Vec<u32> = (1..=self.recording.nodes.len() as u32).collect();
                self.tell_links(&nodes, row);
            }
            Some(_) => {}
            None => self.step_noted(row, text, more_causes),
        }
    }

    fn step_noted(&mut self, row: usize, text: String, more_causes: &[u32]) {
        let record = &self.recording.records[row];
        let (node, number) = (record.node, record.number);
        let Some(noted) = Noted::ALL.iter().find(|known| **known as u8 == record.kind) else {
            return;
        };
        match noted {
            Noted::Phase => self.begin(0, Track::Phase, Class::Phase, row, text),
            Noted::Serves => self.begin(node, Track::State, Class::Serving, row, "serves"),
            Noted::GaveUp => {
                self.gave_up.insert(node, text);
            }
            Noted::Leads => {
                let text = format!("leads term {}", record.facts[0]);
                self.begin(node, Track::Leads, Class::Leads, row, text);
            }
            Noted::LeadsNoMore => self.end(node, Track::Leads, row),
            Noted::Owns if text.is_empty() => self.end(node, Track::Owns, row),
            Noted::Owns => self.begin(node, Track::Owns, Class::Owns, row, text),
            Noted::Publish | Noted::Acknowledge | Noted::Ask => {
                self.operations.insert(number, self.spans.len());
                let text = String::new();
                self.spans.push(Span {
                    lane: node,
                    class: Class::Unknown,
                    from: row,
                    to: None,
                    text,
                });
            }
            Noted::Committed => self.answered(row, Class::Committed, more_causes),
            Noted::Rejected => self.answered(row, Class::Rejected, more_causes),
            Noted::Acknowledged => self.answered(row, Class::Acknowledged, more_causes),
            Noted::Answered => self.answered(row, Class::Answered, more_causes),
            Noted::Strike | Noted::Log | Noted::Delivered | Noted::SessionEnded => {}
        }
    }

    fn answered(&mut self, row: usize, class: Class, questions: &[u32]) {
        let question = questions.iter().find_map(|number| self.operations.remove(number));
        if let Some(span) = question.and_then(|at| self.spans.get_mut(at)) {
            (span.class, span.to) = (class, Some(row));
        }
    }

    fn down(&mut self, node: u32, row: usize) {
        self.before_pause.remove(&node);
        self.end(node, Track::Leads, row);
        self.end(node, Track::Owns, row);
        match self.gave_up.remove(&node) {
            Some(why) => self.begin(node, Track::State, Class::GaveUp, row, why),
            None => {
                let power = self.recording.records[row].kind == Happening::PowerLoss as u8;
                let text = if power { "power lost" } else { "process died" };
                self.begin(node, Track::State, Class::Down, row, text);
            }
        }
    }
}

/// Which clock a text speaks of.
fn clock(text: &str) -> u32 {
    u32::from(text.contains("wall"))
}
