//! Production: tokio, the operating system's sockets, files, clocks and entropy.
//! The one place that may call them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the door to the operating system: everything banned elsewhere is performed here"
)]

mod blocking;
mod child;
mod clock;
mod connection_owner;
mod disk;
mod file;
mod index;
mod network;
mod process;
mod random;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Disk, Network, OrderedIndexFactory, Random, Runtime, Tasks};

pub use child::{ChildProcess, ChildSignal, end_with_parent, free_port, own_process};
pub use connection_owner::connection_owner;
pub use process::{ProcessSignals, run};

/// Production's indexes. One that is damaged so that opening it never ends is given up after `patience` without
/// progress.
pub fn indexes(patience: Duration) -> OrderedIndexFactory {
    Arc::new(index::SledIndexes::new(patience))
}

/// The production runtime. Must be called inside [`run`] (or another multi-threaded tokio runtime).
pub fn runtime() -> Runtime {
    Runtime {
        clock: Clock::new(Arc::new(clock::SystemClock::new())),
        tasks: Tasks::new(Arc::new(tasks::TokioTasks)),
        network: Network::new(Arc::new(network::TcpNetwork)),
        disk: Disk::new(Arc::new(disk::FileSystem)),
        indexes: indexes(index::PATIENCE),
        random: Random::new(Arc::new(random::SystemRandom::new())),
    }
}
