//! The map of Seawall: one line per module, lowest layer first. Imports point down only (`tidy` checks it).
//! The path of one message through these modules is told in `docs/ARCHITECTURE.md`.

#[cfg(not(madsim))]
compile_error!(
    "build with --cfg madsim: .cargo/config.toml sets it, and an environment RUSTFLAGS replaces that line"
);

/// Stores entries of ledgers it does not understand.
pub mod bookie;
/// Topics, cursors, subscriptions; knows no client protocol.
pub mod broker;
/// The words a person types.
pub mod cli;
/// Our own Pulsar client, used by the command line, the bench and the simulator's workloads.
pub mod client;
/// Shared nouns: ids, positions, names, entries. No effects.
pub mod domain;
/// Translate client protocols to broker calls; decide nothing.
pub mod frontend;
/// `invariant!`, `reached!` and `mutant!`: what must hold, what must be visited, what is planted.
pub mod invariant;
/// The client that makes bookies into a log: writer, reader, recovery.
pub mod ledger;
/// Small, strongly consistent, watched key-value store.
pub mod metadata;
/// Puts parts together, the same for production and simulation.
pub mod node;
/// Generated node-to-node messages and services, and how they ride on runtime streams.
pub mod rpc;
/// The only door to the outside: clock, tasks, network, disk, ordered index, randomness.
pub mod runtime;
/// Tries to break it all, from a seed.
pub mod simulator;
/// What an operator sees: metrics and logs.
pub mod telemetry;

#[cfg(test)]
mod tidy;
