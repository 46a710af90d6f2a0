//! One way in which a clock is wrong, with its size: what a run is asked for that looks at nothing else.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::runtime::sim::ClockFace;

/// Up to a hundred times as fast; slower, but never backwards.
const DRIFT_PPM: RangeInclusive<i64> = -999_999..=100_000_000;
/// Fifty years: a few jumps of that stay within what a clock can say.
const STEP_MS: RangeInclusive<i64> = -1_576_800_000_000..=1_576_800_000_000;
/// An hour, longer than any run.
const FREEZE_MS: RangeInclusive<i64> = 0..=3_600_000;

/// How a clock is wrong, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ClockFault {
    /// Which of a node's clocks.
    pub face: ClockFace,
    /// What it does.
    pub how: ClockError,
}

/// What a clock does that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockError {
    /// Runs too fast by so many parts per million, too slow if negative; more than -1,000,000.
    Drift(i64),
    /// Jumps by so many milliseconds. Only wall clocks do: a monotonic clock that jumps ahead is one that stood still before.
    Step(i64),
    /// Stands still for so long.
    Freeze(Duration),
}

impl From<ClockFault> for String {
    fn from(fault: ClockFault) -> Self {
        let face = match fault.face {
            ClockFace::Monotonic => "monotonic",
            ClockFace::Wall => "wall",
        };
        match fault.how {
            ClockError::Drift(ppm) => format!("{face}:drift:{ppm}"),
            ClockError::Step(ms) => format!("{face}:step:{ms}"),
            ClockError::Freeze(time) => format!("{face}:freeze:{}", time.as_millis()),
        }
    }
}

impl FromStr for ClockFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!("{text:?} is no clock fault; say FACE:HOW:SIZE, for example wall:step:-3600000")
        };
        let mut parts = text.split(':');
        let (Some(face), Some(how), Some(size), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let face = match face {
            "monotonic" => ClockFace::Monotonic,
            "wall" => ClockFace::Wall,
            _ => return Err(wrong()),
        };
        let (range, unit) = match (how, face) {
            ("drift", _) => (DRIFT_PPM, "parts per million"),
            ("step", ClockFace::Wall) => (STEP_MS, "milliseconds"),
            ("freeze", _) => (FREEZE_MS, "milliseconds"),
            _ => return Err(wrong()),
        };
        let size =
            size.parse::<i64>().ok().filter(|size| range.contains(size)).ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                format!("{text:?}: {size:?} is not from {least} to {most} {unit}")
            })?;
        let how = match how {
            "drift" => ClockError::Drift(size),
            "step" => ClockError::Step(size),
            _ => ClockError::Freeze(Duration::from_millis(size.unsigned_abs())),
        };
        Ok(Self { face, how })
    }
}

impl TryFrom<String> for ClockFault {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_fault_is_written_and_read() {
        for text in ["monotonic:drift:-200000", "wall:step:3600000", "wall:freeze:20000"] {
            let fault: ClockFault = text.parse().unwrap();
            assert_eq!(String::from(fault), text);
            let json = serde_json::to_string(&fault).unwrap();
            assert_eq!(serde_json::from_str::<ClockFault>(&json).unwrap(), fault);
        }
        let wrong = [
            "",
            "wall",
            "sun:drift:1",
            "wall:drift",
            "wall:drift:x",
            "wall:drift:-1000000",
            "monotonic:step:1",
            "wall:freeze:-1",
            "wall:drift:1:2",
            "wall:step:99999999999999",
            "wall:freeze:3600001",
        ];
        for text in wrong {
            assert!(text.parse::<ClockFault>().is_err(), "{text}");
        }
        for far in ["99999999999", "999999999999999999999"] {
            let complaint = format!("monotonic:drift:{far}").parse::<ClockFault>().unwrap_err();
            assert!(complaint.contains("from -999999 to 100000000 parts"), "{complaint}");
        }
    }
}
