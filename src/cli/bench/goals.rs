//! The gates: what is compared with what, and how far it may be from the floor.

use serde::Serialize;

use super::measurement::{Figures, Measurement, Side};

/// Reads one figure.
type Read = fn(&Figures) -> Option<f64>;

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

struct Goal {
    name: &'static str,
    scenario: &'static str,
    what: &'static str,
    unit: &'static str,
    read: Read,
    /// A ratio to the floor, or Seawall's own figure.
    is_ratio: bool,
    bound: Bound,
}

static GOALS: &[Goal] = &[
    ratio(
        "W1",
        "W1",
        "throughput",
        "msg/s",
        |one| Some(one.messages_per_second),
        Bound::AtLeast(0.20),
    ),
    ratio(
        "W2",
        "W2",
        "throughput",
        "msg/s",
        |one| Some(one.messages_per_second),
        Bound::AtLeast(0.15),
    ),
    ratio(
        "W3",
        "W3",
        "throughput",
        "msg/s",
        |one| Some(one.messages_per_second),
        Bound::AtLeast(0.6),
    ),
    ratio(
        "W4",
        "W4",
        "ack p50",
        "us",
        |one| one.acknowledgement.map(|at| at.p50),
        Bound::AtMost(1.7),
    ),
    ratio(
        "W4 p99",
        "W4",
        "ack p99",
        "us",
        |one| one.acknowledgement.map(|at| at.p99),
        Bound::AtMost(3.0),
    ),
    ratio(
        "W6",
        "W6",
        "replicated throughput",
        "msg/s",
        |one| Some(one.messages_per_second),
        Bound::AtLeast(0.06),
    ),
    ratio(
        "W9",
        "W9",
        "end to end p99",
        "us",
        |one| one.end_to_end.map(|at| at.p99),
        Bound::AtMost(3.0),
    ),
    ratio(
        "R1",
        "R1",
        "catch-up",
        "MB/s",
        |one| Some(one.megabytes_per_second),
        Bound::AtLeast(0.15),
    ),
    ratio("C1", "W1", "server CPU", "us/msg", |one| one.server_cpu_per_message, Bound::AtMost(4.0)),
    own("C4", "W1", "device bytes", "B/B", |one| one.device_bytes_per_byte, Bound::AtMost(2.2)),
    own("A4", "A4", "restart", "s/GiB", |one| one.restart_seconds_per_gibibyte, Bound::AtMost(2.0)),
];

const fn ratio(
    name: &'static str,
    scenario: &'static str,
    what: &'static str,
    unit: &'static str,
    read: Read,
    bound: Bound,
) -> Goal {
    Goal { name, scenario, what, unit, read, is_ratio: true, bound }
}

const fn own(
    name: &'static str,
    scenario: &'static str,
    what: &'static str,
    unit: &'static str,
    read: Read,
    bound: Bound,
) -> Goal {
    Goal { name, scenario, what, unit, read, is_ratio: false, bound }
}

/// One goal held against medians.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    /// The goal.
    pub(super) name: &'static str,
    /// What is compared.
    pub(super) what: &'static str,
    /// In which unit.
    pub(super) unit: &'static str,
    /// The floor's median.
    pub(super) floor: Option<f64>,
    /// Seawall's median.
    pub(super) seawall: Option<f64>,
    /// Seawall over floor.
    pub(super) ratio: Option<f64>,
    /// In words.
    pub(super) gate: String,
    /// Met or missed; none if it could not be told.
    pub(super) is_met: Option<bool>,
}

/// Every goal whose scenario was measured.
pub(super) fn verdicts(measurements: &[Measurement]) -> Vec<Verdict> {
    GOALS
        .iter()
        .filter(|goal| measurements.iter().any(|one| one.scenario == goal.scenario))
        .map(|goal| verdict(goal, measurements))
        .collect()
}

fn verdict(goal: &Goal, measurements: &[Measurement]) -> Verdict {
    let median_of = |side| {
        median(
            measurements
                .iter()
                .filter(|one| one.scenario == goal.scenario && one.side == side)
                .filter_map(|one| (goal.read)(&one.result))
                .collect(),
        )
    };
    let (floor, seawall) = (median_of(Side::Floor), median_of(Side::Seawall));
    let ratio = floor.zip(seawall).map(|(floor, seawall)| seawall / floor);
    let judged = if goal.is_ratio { ratio } else { seawall };
    let unit = if goal.is_ratio { "x" } else { goal.unit };
    let (gate, is_met) = match goal.bound {
        Bound::AtLeast(bound) => (format!(">= {bound} {unit}"), judged.map(|value| value >= bound)),
        Bound::AtMost(bound) => (format!("<= {bound} {unit}"), judged.map(|value| value <= bound)),
    };
    Verdict {
        name: goal.name,
        what: goal.what,
        unit: goal.unit,
        floor,
        seawall,
        ratio,
        gate,
        is_met,
    }
}

/// The middle; of an even number the lower one, so that it is a run that happened.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(side: Side, round: usize, messages_per_second: f64) -> Measurement {
        let result = Figures { messages_per_second, ..Figures::default() };
        Measurement { scenario: "W1", side, round, result }
    }

    #[test]
    fn medians_are_compared() {
        let runs: Vec<_> = [100.0, 1.0, 200.0]
            .iter()
            .enumerate()
            .flat_map(|(round, rate)| {
                [run(Side::Floor, round, *rate), run(Side::Seawall, round, *rate / 4.0)]
            })
            .collect();
        let verdicts = verdicts(&runs);
        let w1 = verdicts.iter().find(|one| one.name == "W1").unwrap();
        assert_eq!(w1.floor, Some(100.0));
        assert_eq!(w1.ratio, Some(0.25));
        assert_eq!(w1.is_met, Some(true));
        let c4 = verdicts.iter().find(|one| one.name == "C4").unwrap();
        assert_eq!(c4.is_met, None, "not measured is neither met nor missed");
    }
}
