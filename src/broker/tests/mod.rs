//! A broker over ledgers and metadata in memory, driven as a front end drives it.

mod cluster;
mod sinks;

mod lifecycle;
mod publishing;
mod sharing;
mod subscriptions;

use cluster::{Cluster, in_runtime, options, producer_options, publish};
use sinks::{ConsumerProbe, ProducerProbe};
