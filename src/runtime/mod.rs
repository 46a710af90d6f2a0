//! The only door to the outside. Everything else in Seawall is given a [`Runtime`] and asks it for time,
//! tasks, streams, files, the ordered index and randomness; `runtime/real` performs these on the
//! operating system, `runtime/sim` in a seeded world with the same promises and no more.
//!
//! The contract both sides keep is written on the traits and held by the conformance suite in
//! `proptests/`. Determinism rules: no other source of time, entropy or order; `biased` selects only;
//! no iteration over maps with random state; no I/O in `Drop`.

mod clock;
mod disk;
mod disk_error;
mod index;
mod mailbox;
mod network;
mod random;
mod shutdown;
mod tasks;

/// Production: tokio, the operating system's sockets, files, clocks and entropy.
pub mod real;
/// Simulation: one seed, one thread, many nodes.
pub mod sim;

pub use clock::{Clock, ClockSource, Elapsed};
pub use disk::{
    CreateMode, DirectoryEntry, Disk, DiskDriver, DiskLock, File, FileDriver, OpenMode,
};
pub use disk_error::{DiskError, DiskErrorKind, DiskOperation, DiskResult};
pub use index::{
    IndexChange, IndexDriver, IndexError, IndexFactoryDriver, OrderedIndex, OrderedIndexFactory,
};
pub use mailbox::{Mailbox, MailboxSender, mailbox};
pub use network::{
    Accepted, ByteStream, ByteStreamIo, Listener, ListenerDriver, Network, NetworkDriver,
    is_any_host,
};
pub use random::{Random, RandomSource, mix};
pub use shutdown::{Shutdown, ShutdownSignal};
pub use tasks::{Task, TaskCancelled, TaskDriver, Tasks};

/// A node's handles to the outside; cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    /// Monotonic and wall time, sleeping, deadlines.
    pub clock: Clock,
    /// Concurrency.
    pub tasks: Tasks,
    /// Listening and connecting.
    pub network: Network,
    /// Files and directories.
    pub disk: Disk,
    /// Ordered key-value indexes.
    pub indexes: OrderedIndexFactory,
    /// Randomness, forked by label.
    pub random: Random,
}
