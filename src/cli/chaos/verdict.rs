//! What a run found, as people and files have it: `verdict.json`, `history.jsonl`, `happenings.jsonl` beside the
//! plan of faults.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::nemesis::Happening;
use super::stage::RealStage;
use crate::simulator::checkers::Violation;
use crate::simulator::clients::{Clients, Outcome};
use crate::simulator::history::{History, PublishFate, SharedHistory};

/// Checkers that have something to compare in any run; others may need luck.
const ALWAYS_SEEN: &[&str] = &[
    "no_acknowledged_loss",
    "no_phantom",
    "order",
    "single_writer",
    "subscription_misses_nothing",
    "full_replication",
];

/// See the module.
#[derive(Serialize)]
pub(super) struct Verdict {
    seed: u64,
    nodes: usize,
    seconds: u64,
    violations: Vec<Violation>,
    /// Facts compared, by checker.
    compared: BTreeMap<String, u64>,
    faults: u64,
    /// Ends of nodes that nobody asked for.
    ends: Vec<String>,
    /// Committed, rejected, unknown.
    publishes: [u64; 3],
    deliveries: u64,
    acks: u64,
    /// From the heal until every topic took a message.
    writable_after_ms: Option<u64>,
    /// From the heal until everything was read and delivered.
    recovered_after_ms: Option<u64>,
    /// How to do the same to a cluster again.
    repeat: String,
    folder: PathBuf,
    #[serde(skip)]
    happenings: Vec<Happening>,
}

impl Verdict {
    /// Of a run that is over.
    pub(super) fn new(
        seed: u64,
        nodes: usize,
        took: Duration,
        outcome: &Outcome,
        clients: &Clients<RealStage>,
        folder: &Path,
    ) -> Self {
        let mut violations = Vec::new();
        let mut compared = BTreeMap::new();
        for (name, finding) in &outcome.findings {
            *compared.entry(name.clone()).or_default() += finding.compared;
            violations.extend(finding.violations.iter().cloned());
        }
        for (name, count) in &compared {
            if *count == 0 && ALWAYS_SEEN.contains(&name.as_str()) {
                violations.push(Violation {
                    promise: "proof".to_owned(),
                    checker: name.clone(),
                    detail: "compared nothing, so it proves nothing".to_owned(),
                });
            }
        }
        let nemesis = &clients.stage.nemesis;
        for end in nemesis.ends.iter().filter(|end| end.contains("signal: 6")) {
            violations.push(Violation {
                promise: "panic".to_owned(),
                checker: "process".to_owned(),
                detail: end.clone(),
            });
        }
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
        let history = clients.history.lock();
        let folder = folder.to_owned();
        Self {
            seed,
            nodes,
            seconds: took.as_secs(),
            violations,
            compared,
            faults: nemesis.done,
            ends: nemesis.ends.clone(),
            publishes: publishes(&history),
            deliveries: history.deliveries.len() as u64,
            acks: history.acks.iter().filter(|ack| ack.receipt_at.is_some()).count() as u64,
            writable_after_ms: millis(outcome.writable_after),
            recovered_after_ms: millis(outcome.recovered_after),
            repeat: format!(
                "seawall chaos --nodes {nodes} --seed {seed} --plan {}",
                folder.join(super::PLAN_FILE).display()
            ),
            folder,
            happenings: nemesis.happenings.clone(),
        }
    }

    /// No promise was broken.
    pub(super) fn is_good(&self) -> bool {
        self.violations.is_empty()
    }

    /// Writes everything to the run's folder.
    pub(super) fn write(&self, history: &SharedHistory) -> std::io::Result<()> {
        let open = |name: &str| File::create(self.folder.join(name)).map(BufWriter::new);
        let mut file = open("verdict.json")?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.flush()?;
        let mut file = open("happenings.jsonl")?;
        for happening in &self.happenings {
            serde_json::to_writer(&mut file, happening)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        let mut file = open("history.jsonl")?;
        write_history(&history.lock(), &mut file)?;
        file.flush()
    }
}

fn publishes(history: &History) -> [u64; 3] {
    let mut publishes = [0; 3];
    for record in history.publishes.values() {
        publishes[match record.fate {
            PublishFate::Committed(_) => 0,
            PublishFate::Rejected => 1,
            PublishFate::Unknown => 2,
        }] += 1;
    }
    publishes
}

/// One fact a line; times are nanoseconds since the run began.
fn write_history(history: &History, to: &mut impl Write) -> std::io::Result<()> {
    let mut line = |fact: serde_json::Value| writeln!(to, "{fact}");
    for (number, record) in &history.publishes {
        let (fate, place) = match record.fate {
            PublishFate::Committed(place) => ("committed", Some(place.to_string())),
            PublishFate::Rejected => ("rejected", None),
            PublishFate::Unknown => ("unknown", None),
        };
        line(json!({
            "publish": number.0, "topic": record.topic, "producer": record.producer,
            "at": record.sent_at, "broker": record.broker, "fate": fate, "place": place,
        }))?;
    }
    for record in &history.deliveries {
        line(json!({
            "delivery": record.number.map(|number| number.0), "topic": record.topic,
            "subscription": record.subscription, "session": record.session, "at": record.at,
            "place": record.position.to_string(),
        }))?;
    }
    for record in &history.acks {
        line(json!({
            "ack": record.position.to_string(), "topic": record.topic,
            "subscription": record.subscription, "receipt_at": record.receipt_at,
        }))?;
    }
    for (topic, log) in &history.final_log {
        for (place, number) in log {
            let number = number.map(|number| number.0);
            line(json!({ "log": number, "topic": topic, "place": place.to_string() }))?;
        }
    }
    Ok(())
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [committed, rejected, unknown] = self.publishes;
        writeln!(formatter, "seed {}, {} nodes, {} s", self.seed, self.nodes, self.seconds)?;
        writeln!(
            formatter,
            "publishes: {committed} committed, {rejected} rejected, {unknown} unknown"
        )?;
        writeln!(
            formatter,
            "deliveries: {}, acknowledged with receipt: {}",
            self.deliveries, self.acks
        )?;
        writeln!(formatter, "faults: {}, nodes that gave up: {}", self.faults, self.ends.len())?;
        writeln!(formatter, "compared: {:?}", self.compared)?;
        if let (Some(writable), Some(recovered)) = (self.writable_after_ms, self.recovered_after_ms)
        {
            writeln!(
                formatter,
                "after the heal: writable in {writable} ms, recovered in {recovered} ms"
            )?;
        }
        if self.is_good() {
            return write!(formatter, "PASSED");
        }
        for Violation { promise, checker, detail } in &self.violations {
            writeln!(formatter, "BROKEN {promise} ({checker}): {detail}")?;
        }
        writeln!(formatter, "everything is in {}", self.folder.display())?;
        write!(formatter, "the same faults again: {}", self.repeat)
    }
}
