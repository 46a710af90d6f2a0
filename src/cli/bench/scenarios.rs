//! What is measured, by the names the goals have.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::BenchError;
use super::catch_up;
use super::child::Server;
use super::closed_loop::{self, ClosedLoop, Until};
use super::cluster;
use super::measurement::{Figures, Percentiles, Side};
use super::open_loop::{self, OpenLoop};
use super::restart;
use super::send_file;
use super::usage::Observer;
use super::wire::MessageShape;

/// What the command line says about all runs.
pub(super) struct Setting {
    pub(super) data: PathBuf,
    pub(super) seconds: Duration,
    pub(super) catch_up_messages: u64,
    pub(super) restart_bytes: u64,
    pub(super) rate: u64,
}

/// One row of the table.
pub(super) struct Scenario {
    /// Its name in the goals.
    pub(super) name: &'static str,
    /// In words.
    pub(super) what: &'static str,
    kind: Kind,
}

enum Kind {
    /// Closed loop. The floor is never batched: it is what one message at a time costs at least.
    Publish { connections: usize, window: usize, size: usize, batch: u32, is_settled: bool },
    /// Closed loop against three nodes, each message on three bookies; the floor is W1's, one server.
    Replicated { connections: usize, window: usize, size: usize },
    /// Open loop with a consumer at the tail.
    Flow { connections: usize, size: usize },
    /// One consumer from the start.
    CatchUp { size: usize },
    /// kill -9 and start again.
    Restart,
}

const fn publish(connections: usize, window: usize, size: usize, batch: u32) -> Kind {
    Kind::Publish { connections, window, size, batch, is_settled: false }
}

/// All scenarios.
pub(super) static ALL: &[Scenario] = &[
    Scenario {
        name: "W1",
        what: "durable publish, 16 connections x 64 in flight x 1 KiB",
        kind: Kind::Publish { connections: 16, window: 64, size: 1024, batch: 1, is_settled: true },
    },
    Scenario {
        name: "W2",
        what: "durable publish, 16 x 64 x 100 B",
        kind: publish(16, 64, 100, 1),
    },
    Scenario {
        name: "W3",
        what: "durable publish, 16 x 64 frames of 100 x 100 B, floor not batched",
        kind: publish(16, 64, 100, 100),
    },
    Scenario {
        name: "W4",
        what: "durable publish, one message in flight, 1 KiB",
        kind: publish(1, 1, 1024, 1),
    },
    Scenario {
        name: "W6",
        what: "replicated durable publish, three local nodes, 3/3/2, 16 x 16 x 1 KiB; floor 16 x 64",
        kind: Kind::Replicated { connections: 16, window: 16, size: 1024 },
    },
    Scenario {
        name: "W9",
        what: "open loop, 16 connections, 1 KiB, one consumer at the tail",
        kind: Kind::Flow { connections: 16, size: 1024 },
    },
    Scenario {
        name: "R1",
        what: "catch-up read, one consumer, 1 KiB, cached; floor is sendfile",
        kind: Kind::CatchUp { size: 1024 },
    },
    Scenario { name: "A4", what: "restart after kill -9", kind: Kind::Restart },
];

/// Read off other scenarios' runs.
const DERIVED: &[(&str, &str)] = &[("C1", "W1"), ("C4", "W1")];

/// Names for a message.
pub(super) fn names() -> String {
    let derived = DERIVED.iter().map(|(name, _)| *name);
    ALL.iter().map(|scenario| scenario.name).chain(derived).collect::<Vec<_>>().join(" ")
}

/// The scenarios named, all if none is; an unknown name is given back.
pub(super) fn choose(wanted: &[String]) -> Result<Vec<&'static Scenario>, String> {
    let mut names = Vec::new();
    for name in wanted {
        let name = name.to_uppercase();
        let source = DERIVED.iter().find_map(|(derived, from)| (*derived == name).then_some(*from));
        let name = source.map_or(name, str::to_owned);
        if !ALL.iter().any(|scenario| scenario.name == name) {
            return Err(name);
        }
        names.push(name);
    }
    Ok(ALL
        .iter()
        .filter(|scenario| names.is_empty() || names.iter().any(|name| name == scenario.name))
        .collect())
}

/// Runs one side of a scenario on a fresh folder; `None` if the side has no part in it.
pub(super) fn run(
    scenario: &Scenario,
    side: Side,
    setting: &Setting,
) -> Result<Option<Figures>, BenchError> {
    let folder = setting.data.join(format!("{}-{side}", scenario.name));
    clear(&folder)?;
    std::fs::create_dir_all(&folder).map_err(BenchError::io("create the data folder"))?;
    let figures = run_in(&folder, scenario, side, setting);
    clear(&folder)?;
    figures
}

fn clear(folder: &Path) -> Result<(), BenchError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BenchError::io(folder.display().to_string())(error))
        }
        _ => Ok(()),
    }
}

fn run_in(
    folder: &Path,
    scenario: &Scenario,
    side: Side,
    setting: &Setting,
) -> Result<Option<Figures>, BenchError> {
    match scenario.kind {
        Kind::Publish { connections, window, size, batch, is_settled } => {
            let batch = if side == Side::Floor { 1 } else { batch };
            let shape = MessageShape { size, batch };
            let closed = ClosedLoop { connections, window, shape };
            let server = Server::start(side, folder)?;
            run_publish(folder, side, &server, closed, is_settled, setting).map(Some)
        }
        Kind::Replicated { connections, window, size } => {
            let shape = MessageShape { size, batch: 1 };
            let (server, window) = match side {
                Side::Floor => (Server::start(side, folder)?, 64),
                Side::Seawall => (cluster::start(folder)?, window),
            };
            let closed = ClosedLoop { connections, window, shape };
            run_publish(folder, side, &server, closed, false, setting).map(Some)
        }
        Kind::Flow { connections, size } => {
            run_flow(folder, side, OpenLoop { connections, rate: setting.rate, size }, setting)
                .map(Some)
        }
        Kind::CatchUp { size } => run_catch_up(folder, side, size, setting).map(Some),
        Kind::Restart if side == Side::Floor => Ok(None),
        Kind::Restart => {
            let restarted = restart::restart(folder, setting.restart_bytes)?;
            let gibibytes = restarted.bytes as f64 / f64::from(1 << 30);
            Ok(Some(Figures {
                messages: restarted.bytes / 1024,
                restart_seconds_per_gibibyte: Some(restarted.time.as_secs_f64() / gibibytes),
                ..Figures::default()
            }))
        }
    }
}

fn run_publish(
    folder: &Path,
    side: Side,
    server: &Server,
    closed: ClosedLoop,
    is_settled: bool,
    setting: &Setting,
) -> Result<Figures, BenchError> {
    let observer = Observer::new(server, folder);
    let before = observer.look()?;
    let published =
        closed_loop::publish(&server.target, closed, Until::Time(setting.seconds), &observer)?;
    let (size, batch) = (closed.shape.size, u64::from(closed.shape.batch));
    let messages = published.tally.frames * batch;
    let mut figures = Figures::of(messages, size, published.usage.time, &published.usage);
    figures.acknowledgement = Percentiles::of(&published.tally.acknowledgement);
    if is_settled {
        // What was acknowledged may be written a second time later (entry log), and that counts too.
        let quiet = if side == Side::Seawall { Duration::from_secs(8) } else { Duration::ZERO };
        observer.settle(quiet, Duration::from_secs(60));
        let whole = observer.look()?.since(&before);
        let bytes = (published.frames_in_all * batch * size as u64) as f64;
        figures.device_bytes_per_byte = whole.device_bytes.map(|written| written as f64 / bytes);
    }
    Ok(figures)
}

fn run_flow(
    folder: &Path,
    side: Side,
    open: OpenLoop,
    setting: &Setting,
) -> Result<Figures, BenchError> {
    let server = Server::start(side, folder)?;
    let observer = Observer::new(&server, folder);
    let flowed = open_loop::flow(&server.target, open, setting.seconds, &observer)?;
    if flowed.received < flowed.published {
        return Err(BenchError::Server(format!(
            "delivered {} of {} acknowledged messages",
            flowed.received, flowed.published
        )));
    }
    let mut figures = Figures::of(flowed.tally.frames, open.size, flowed.usage.time, &flowed.usage);
    figures.acknowledgement = Percentiles::of(&flowed.tally.acknowledgement);
    figures.end_to_end = Percentiles::of(&flowed.tally.end_to_end);
    Ok(figures)
}

fn run_catch_up(
    folder: &Path,
    side: Side,
    size: usize,
    setting: &Setting,
) -> Result<Figures, BenchError> {
    let messages = setting.catch_up_messages;
    if side == Side::Floor {
        let bytes = messages * size as u64;
        let seconds = send_file::send_file(folder, bytes)?.as_secs_f64();
        return Ok(Figures {
            messages,
            messages_per_second: messages as f64 / seconds,
            megabytes_per_second: bytes as f64 / 1e6 / seconds,
            ..Figures::default()
        });
    }
    let server = Server::start(side, folder)?;
    let observer = Observer::new(&server, folder);
    let caught_up = catch_up::catch_up(&server.target, messages, size, &observer)?;
    Ok(Figures::of(caught_up.messages, size, caught_up.time, &caught_up.usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_chosen_by_name_and_by_what_is_read_off_them() {
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
            choose(&wanted).map(|found| found.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), ALL.len());
        assert_eq!(names(&["w4", "C1", "C4"]).unwrap(), ["W1", "W4"]);
        assert_eq!(names(&["X9"]).unwrap_err(), "X9");
    }
}
