//! A broker over ledgers and metadata in memory, driven as a front end drives it.

mod cluster;
mod sinks;

mod lifecycle;
mod publishing;
mod sharing;
mod subscriptions;

use crate::ledger::testing::in_runtime;
use cluster::{Cluster, options, producer_options, publish};
use sinks::{ConsumerProbe, ProducerProbe};
