//! What an operator sees: the table of metrics, how they are written out, and where logs go.

/// Writing samples in the exposition format.
pub mod exposition;
/// Where logs go.
pub mod logs;
mod metric;
/// Every metric of Seawall by name, in one table.
pub mod metrics;

pub use metric::{Metric, MetricKind, MetricSource, Sample};
