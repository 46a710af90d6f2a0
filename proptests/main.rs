//! One binary of model and codec properties.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod bookie_model;
mod both_conformance;
mod clock_conformance;
mod consensus_exploration;
mod consensus_model;
mod consensus_mutants;
mod consensus_scripts;
mod consensus_world;
mod crash_states;
mod cursor_model;
mod disk_conformance;
mod dispatch_model;
mod fidelity;
mod grpc_ledgers;
mod grpc_streams;
mod hostile;
mod hostile_http;
mod index_conformance;
#[cfg(feature = "mutants")]
mod index_damage;
mod journal_model;
mod ledger_world;
mod ledger_writer_model;
mod managed_ledger_model;
mod metadata_group_in_simulation;
mod metadata_store_model;
mod network_conformance;
mod node_place;
mod node_start;
#[cfg(feature = "mutants")]
mod planted_bugs;
mod pulsar_codec;
#[cfg(feature = "mutants")]
mod reached_marks;
mod recovery_model;
mod remote_bookie_in_simulation;
mod repair_model;
mod repair_world;
mod rpc_in_simulation;
mod streams_model;
