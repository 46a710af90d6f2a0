//! One run as one HTML page that needs nothing but a browser: the data of a recording, and the code and looks that
//! show it. The format of the data: `docs/internals/simulator.md`.

mod columns;
mod kinds;
mod loss;
mod spans;
mod story;

use std::collections::BTreeMap;

use serde::Serialize;

use super::checkers::Violation;
use super::report::Report;
use crate::mutant;
use crate::runtime::sim::Recording;
use columns::{Column, pack};
pub(super) use kinds::KINDS;
use kinds::{GROUPS, Kind};
use spans::{CLASSES, Lane, picture};
use story::story;

const HTML: &str = include_str!("assets/page.html");
const CSS: &str = include_str!("assets/page.css");
/// The scripts, in the order they are run.
const SCRIPTS: [&str; 6] = [
    include_str!("assets/data.js"),
    include_str!("assets/words.js"),
    include_str!("assets/view.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/panel.js"),
    include_str!("assets/main.js"),
];

/// The promises of `docs/ARCHITECTURE.md`, in short.
const PROMISES: [(&str, &str); 8] = [
    ("P1", "No committed message is lost"),
    ("P2", "One order: everyone reads the same sequence for ever"),
    ("P3", "No duplicate with deduplication on"),
    ("P4", "A subscription misses nothing and repeats nothing that was durably acknowledged"),
    ("P5", "A deposed owner can do no harm"),
    ("P6", "It comes back once a quorum can talk"),
    ("P7", "Corruption is never served"),
    ("P8", "Nothing a client sends can crash it, starve others or grow its memory"),
];

/// What a person wants to know first.
#[derive(Serialize)]
struct Summary<'a> {
    report: &'a Report,
    replay: String,
    page: String,
    violations: Vec<Broken<'a>>,
    left_out: u64,
    nodes: &'a [String],
    lanes: Vec<Lane>,
    kinds: &'a [Kind],
    groups: &'a [(&'a str, bool)],
    classes: &'a [&'a str],
    rows: usize,
}

#[derive(Serialize)]
struct Broken<'a> {
    promise: &'a str,
    sentence: &'a str,
    checker: &'a str,
    detail: &'a str,
    moment: Option<usize>,
    story: Vec<usize>,
}

impl<'a> Broken<'a> {
    fn of(violation: &'a Violation, recording: &Recording) -> Self {
        let known = PROMISES.iter().find(|(number, _)| *number == violation.promise);
        let story = story(violation, recording);
        Self {
            promise: &violation.promise,
            sentence: known.map_or("", |(_, sentence)| sentence),
            checker: &violation.checker,
            detail: &violation.detail,
            moment: story.moment,
            story: story.rows,
        }
    }
}

/// The page of a run. Fails only if the recording is too large for its format.
pub fn page(report: &Report, recording: &Recording) -> std::io::Result<String> {
    let picture = picture(recording);
    let violations = report.violations.iter().map(|violation| Broken::of(violation, recording));
    let summary = Summary {
        report,
        replay: report.trial.replay_command(),
        page: report.trial.page_command(),
        violations: violations.collect(),
        left_out: recording.left_out,
        nodes: &recording.nodes,
        lanes: picture.lanes,
        kinds: KINDS,
        groups: GROUPS,
        classes: CLASSES,
        rows: recording.records.len(),
    };
    let events = pack(&encode(recording, &picture.spans)?)?;
    let script = SCRIPTS.join("\n");
    Ok(fill(
        HTML,
        &[
            ("{{css}}", CSS),
            ("{{script}}", &script),
            ("{{summary}}", &inert(&serde_json::to_string(&summary)?)),
            ("{{events}}", &events),
        ],
    ))
}

/// The columns, in the order the page's script reads them.
fn encode(recording: &Recording, spans: &[spans::Span]) -> std::io::Result<Vec<Column>> {
    let records = &recording.records;
    let rows: BTreeMap<u32, usize> =
        records.iter().enumerate().map(|(row, record)| (record.number, row)).collect();
    let mut events: [Column; 8] = Default::default();
    for (row, record) in records.iter().enumerate() {
        let [at, node, kind, cause, first, second, third, text] = &mut events;
        at.push_distance(i64::try_from(record.at / 1000).unwrap_or(i64::MAX));
        node.push(i64::from(record.node));
        kind.push(i64::from(record.kind));
        cause.push(distance(row, record.cause, &rows));
        first.push(record.facts[0]);
        second.push(record.facts[1]);
        third.push(record.facts[2]);
        text.push(i64::from(record.text));
    }
    let mut edges: Vec<(usize, usize)> = recording
        .more_causes
        .iter()
        .filter_map(|(what, because)| Some((*rows.get(what)?, *rows.get(because)?)))
        .collect();
    edges.sort_unstable();
    let mut more: [Column; 2] = Default::default();
    for (what, because) in edges {
        more[0].push_distance(what as i64);
        more[1].push(what as i64 - because as i64);
    }
    let mut lasting: [Column; 5] = Default::default();
    let mut words = Words::default();
    for span in spans {
        let [lane, class, from, length, text] = &mut lasting;
        lane.push(i64::from(span.lane));
        class.push(span.class as i64);
        from.push_distance(span.from as i64);
        length.push(span.to.map_or(-1, |to| to as i64 - span.from as i64));
        text.push(words.number(&span.text));
    }
    let texts = [serde_json::to_vec(&recording.texts)?, serde_json::to_vec(&words.all)?];
    let columns = events.into_iter().chain(more).chain(lasting);
    Ok(columns.chain(texts.into_iter().map(Column::of_bytes)).collect())
}

/// How many rows before a row its cause is; 0 for none, one more than there are rows before it for one that was left
/// out.
fn distance(row: usize, cause: u32, rows: &BTreeMap<u32, usize>) -> i64 {
    match (cause, rows.get(&cause)) {
        (0, _) => 0,
        (_, Some(of)) => row as i64 - *of as i64,
        (_, None) => row as i64 + 1,
    }
}

/// Texts by number.
#[derive(Default)]
struct Words<'a> {
    all: Vec<&'a str>,
    known: BTreeMap<&'a str, i64>,
}

impl<'a> Words<'a> {
    fn number(&mut self, text: &'a str) -> i64 {
        *self.known.entry(text).or_insert_with(|| {
            self.all.push(text);
            self.all.len() as i64 - 1
        })
    }
}

/// JSON that cannot end the element it stands in, nor begin another.
fn inert(json: &str) -> String {
    if mutant!("V-escape") {
        return json.to_owned();
    }
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The template with its places filled, each once; what is filled in is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((at, (place, value))) = values
        .iter()
        .filter_map(|filled| Some((rest.find(filled.0)?, filled)))
        .min_by_key(|(at, _)| *at)
    {
        page.push_str(&rest[..at]);
        page.push_str(value);
        rest = &rest[at + place.len()..];
    }
    page + rest
}

#[cfg(test)]
mod tests;
