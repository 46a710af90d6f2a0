//! A bench run as tables for a person or as one JSON object for a script.

use serde::Serialize;

use super::exit_code;
use super::goals::{self, Verdict};
use super::measurement::{Figures, Measurement, Percentiles};
use super::scenarios::Scenario;
use crate::cli::output::{OutputFormat, say, say_json, table};

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    cores: usize,
    goals: &'a [Verdict],
    runs: &'a [Measurement],
}

/// Prints everything; the answer is the exit code.
pub(super) fn report(
    measurements: &[Measurement],
    chosen: &[&'static Scenario],
    format: OutputFormat,
) -> u8 {
    let verdicts = goals::verdicts(measurements);
    let is_every_gate_met = verdicts.iter().all(|verdict| verdict.is_met != Some(false));
    match format {
        OutputFormat::Json => {
            say_json(&Document {
                version: env!("CARGO_PKG_VERSION"),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
                goals: &verdicts,
                runs: measurements,
            });
        }
        OutputFormat::Table => {
            for scenario in chosen {
                say(&format!("{}: {}", scenario.name, scenario.what));
            }
            say(&format!("\n{}", runs_table(measurements)));
            say(&format!("\nmedians\n{}", goals_table(&verdicts)));
        }
    }
    exit_code(is_every_gate_met)
}

fn runs_table(measurements: &[Measurement]) -> String {
    let headings = [
        "run",
        "side",
        "round",
        "msg/s",
        "MB/s",
        "ack p50/p99/p999 us",
        "e2e p50/p99/p999 us",
        "CPU us/msg",
        "device B/B",
        "msg/flush",
        "others",
    ];
    let rows: Vec<Vec<String>> = measurements.iter().map(run_row).collect();
    table(&headings, &rows)
}

fn run_row(one: &Measurement) -> Vec<String> {
    let Figures { acknowledgement, end_to_end, .. } = &one.result;
    let figures = &one.result;
    let rate = match figures.restart_seconds_per_gibibyte {
        Some(seconds) => format!("{seconds:.2} s/GiB"),
        None => format!("{:.0}", figures.messages_per_second),
    };
    vec![
        one.scenario.to_owned(),
        one.side.to_string(),
        one.round.to_string(),
        rate,
        format!("{:.1}", figures.megabytes_per_second),
        latencies(acknowledgement.as_ref()),
        latencies(end_to_end.as_ref()),
        optional(figures.server_cpu_per_message),
        optional(figures.device_bytes_per_byte),
        optional(figures.messages_per_flush),
        format!("{:.0} %", figures.others_share * 100.0),
    ]
}

fn latencies(percentiles: Option<&Percentiles>) -> String {
    percentiles.map_or("-".to_owned(), |at| format!("{:.0}/{:.0}/{:.0}", at.p50, at.p99, at.p999))
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

fn goals_table(verdicts: &[Verdict]) -> String {
    let headings = ["goal", "what", "floor", "seawall", "unit", "ratio", "gate", ""];
    let rows: Vec<Vec<String>> = verdicts
        .iter()
        .map(|verdict| {
            let met = match verdict.is_met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "not measured",
            };
            vec![
                verdict.name.to_owned(),
                verdict.what.to_owned(),
                optional(verdict.floor),
                optional(verdict.seawall),
                verdict.unit.to_owned(),
                optional(verdict.ratio),
                verdict.gate.clone(),
                met.to_owned(),
            ]
        })
        .collect();
    table(&headings, &rows)
}
