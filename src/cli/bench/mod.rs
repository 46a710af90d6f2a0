//! `seawall bench`: Seawall against the floor, in the same run on the same machine. The floor is the least
//! a durable log server must do; ratios to it carry over between machines where absolute figures do not.
#![allow(
    clippy::disallowed_methods,
    reason = "a measuring tool outside the simulated product: processes, sockets, threads and clocks are what it measures with"
)]

mod catch_up;
mod child;
mod closed_loop;
mod cluster;
mod floor_server;
mod floor_wire;
mod goals;
mod load;
mod measurement;
mod open_loop;
mod pulsar_wire;
mod report;
mod restart;
mod scenarios;
mod send_file;
mod usage;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::output::{OutputOption, complain, progress};
use super::{FAILED, GOOD, USAGE};
use measurement::{Measurement, Side};
use scenarios::{Scenario, Setting};

pub(super) use floor_server::{FloorServerCommand, serve as serve_floor};

/// Measure Seawall against a floor: a bare append server that frames, checks, groups, syncs, then
/// acknowledges, driven by the same generator in the same run.
///
/// Scenarios: W1 W2 W3 W4 W6 W9 R1 A4 (C1 and C4 are read off W1). Exit code 1 if a gate is missed. Run a
/// release build on a quiet machine with the data folder on the disk in question.
///
/// Examples:
///   seawall bench
///   seawall bench --scenario W1,W4 --rounds 5 --seconds 5
///   seawall bench --data /mnt/disk/bench -o json > result.json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct BenchCommand {
    /// Which scenarios; default: all.
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<String>,
    /// Rounds; floor and Seawall alternate in each, medians are compared.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measured seconds of each run, after a warm-up.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Folder for data, on the disk to measure; what is made in it is removed again.
    #[arg(long, default_value = "bench-data")]
    data: PathBuf,
    /// Only the floor, or only Seawall.
    #[arg(long, value_enum)]
    only: Option<Side>,
    /// Messages of the catch-up read (R1).
    #[arg(long, default_value_t = 200_000)]
    catch_up_messages: u64,
    /// Bytes published before the kill of A4.
    #[arg(long, default_value_t = 1024 * 1024 * 1024)]
    restart_bytes: u64,
    /// Messages a second of the open loop (W9).
    #[arg(long, default_value_t = 20_000)]
    rate: u64,
    #[command(flatten)]
    output: OutputOption,
}

/// Something could not be measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchError {
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The server answered with an error or something unexpected.
    #[error("the server: {0}")]
    Server(String),
    /// Nothing came in time.
    #[error("no progress within {0:?}: {1}")]
    Stuck(Duration, String),
}

impl BenchError {
    /// Wraps an operating system error with what was tried.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Performs the command.
pub(super) fn bench(command: &BenchCommand) -> u8 {
    let chosen = match scenarios::choose(&command.scenario) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            complain(&format!("unknown scenario {unknown}; known: {}", scenarios::names()));
            return USAGE;
        }
    };
    if command.rounds == 0 || command.seconds == 0 || command.rate == 0 {
        complain(&"--rounds, --seconds and --rate must not be 0");
        return USAGE;
    }
    if cfg!(debug_assertions) {
        complain(&"this is a debug build: the figures mean nothing");
    }
    match measure_all(command, &chosen) {
        Ok(measurements) => report::report(&measurements, &chosen, command.output.format),
        Err(error) => {
            complain(&error);
            FAILED
        }
    }
}

fn measure_all(
    command: &BenchCommand,
    chosen: &[&'static Scenario],
) -> Result<Vec<Measurement>, BenchError> {
    let setting = Setting {
        data: command.data.clone(),
        seconds: Duration::from_secs(command.seconds),
        catch_up_messages: command.catch_up_messages,
        restart_bytes: command.restart_bytes,
        rate: command.rate,
    };
    let sides: &[Side] = match command.only {
        None => &[Side::Floor, Side::Seawall],
        Some(Side::Floor) => &[Side::Floor],
        Some(Side::Seawall) => &[Side::Seawall],
    };
    let steps = command.rounds * chosen.len() * sides.len();
    let bar = progress(u64::try_from(steps).unwrap_or(0), "runs");
    let mut measurements = Vec::new();
    for round in 0..command.rounds {
        for scenario in chosen {
            for side in sides {
                bar.set_message(format!("{} {side} round {}", scenario.name, round + 1));
                if let Some(result) = scenarios::run(scenario, *side, &setting)? {
                    measurements.push(Measurement {
                        scenario: scenario.name,
                        side: *side,
                        round: round + 1,
                        result,
                    });
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    // Fails when the user's own files are in it, which is as it should be.
    let _ = std::fs::remove_dir(&command.data);
    Ok(measurements)
}

/// What a bench run is worth to the exit code.
fn exit_code(is_every_gate_met: bool) -> u8 {
    if is_every_gate_met { GOOD } else { FAILED }
}
