//! The figures of one run.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::usage::Usage;

/// Who was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    /// The floor server, or for reads the operating system's sendfile.
    Floor,
    /// This binary's standalone node.
    Seawall,
}

impl std::fmt::Display for Side {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Floor => "floor",
            Self::Seawall => "seawall",
        })
    }
}

/// One run of one side.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    /// Which scenario.
    pub(super) scenario: &'static str,
    /// Who.
    pub(super) side: Side,
    /// Round, from 1.
    pub(super) round: usize,
    /// What came of it.
    #[serde(flatten)]
    pub(super) result: Figures,
}

/// The figures; absent where the scenario has none.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    /// Messages counted.
    pub(super) messages: u64,
    /// Messages a second.
    pub(super) messages_per_second: f64,
    /// Payload megabytes (10^6) a second.
    pub(super) megabytes_per_second: f64,
    /// To the acknowledgement, microseconds.
    pub(super) acknowledgement: Option<Percentiles>,
    /// From the intended sending to the consumer, microseconds.
    pub(super) end_to_end: Option<Percentiles>,
    /// CPU of the server for one message, microseconds.
    pub(super) server_cpu_per_message: Option<f64>,
    /// Bytes written to the device for a payload byte.
    pub(super) device_bytes_per_byte: Option<f64>,
    /// Messages acknowledged for one flush of the device; with one message in flight it must be 1.
    pub(super) messages_per_flush: Option<f64>,
    /// Flushes a second.
    pub(super) flushes_per_second: Option<f64>,
    /// Part of the machine used by others, 0 to 1: above 0.45 the run proves little.
    pub(super) others_share: f64,
    /// Seconds of restart for a GiB.
    pub(super) restart_seconds_per_gibibyte: Option<f64>,
}

/// Of a latency, microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Percentiles {
    /// Median.
    pub(super) p50: f64,
    /// 99 of 100 are below.
    pub(super) p99: f64,
    /// 999 of 1000 are below.
    pub(super) p999: f64,
    /// The longest.
    pub(super) max: f64,
}

impl Percentiles {
    /// Of recorded nanoseconds; none when nothing was recorded.
    pub(super) fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
        (!histogram.is_empty()).then(|| Self {
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / 1000.0,
        })
    }
}

impl Figures {
    /// Rates and costs of `messages` of `size` bytes.
    pub(super) fn of(messages: u64, size: usize, time: Duration, usage: &Usage) -> Self {
        let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
        let bytes = (messages * size as u64) as f64;
        let count = (messages as f64).max(1.0);
        Self {
            messages,
            messages_per_second: messages as f64 / seconds,
            megabytes_per_second: bytes / 1e6 / seconds,
            server_cpu_per_message: Some(usage.server_cpu.as_secs_f64() * 1e6 / count),
            device_bytes_per_byte: usage
                .device_bytes
                .map(|written| written as f64 / bytes.max(1.0)),
            messages_per_flush: usage
                .device_flushes
                .map(|flushes| messages as f64 / (flushes as f64).max(1.0)),
            flushes_per_second: usage.device_flushes.map(|flushes| flushes as f64 / seconds),
            others_share: usage.others_share,
            ..Self::default()
        }
    }
}
