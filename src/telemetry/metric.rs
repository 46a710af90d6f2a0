//! What a metric and a sample of it are.

/// How a metric moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from 0 at each start. Its name is written with `_total` at the end.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// One row of the table.
#[derive(Debug)]
pub struct Metric {
    /// The name, without `_total` for counters.
    pub name: &'static str,
    /// What it counts and in which unit.
    pub help: &'static str,
    /// How it moves.
    pub kind: MetricKind,
}

/// One value at the time of a scrape.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The row it belongs to.
    pub metric: &'static Metric,
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// The value; exact up to 2^53.
    pub value: f64,
}

impl Sample {
    /// A sample without labels.
    pub const fn plain(metric: &'static Metric, value: f64) -> Self {
        Self { metric, labels: Vec::new(), value }
    }
}

/// Port to a part of a node that has figures; `node` fills it in. Called once a scrape; short.
pub trait MetricSource: Send + Sync {
    /// The figures now.
    fn samples(&self) -> Vec<Sample>;
}
