//! One binary of model and codec properties.

mod cursor_model;
#[allow(clippy::unwrap_used, reason = "a test: a panic is its failure")]
mod ledger_world;
mod ledger_writer_model;
mod managed_ledger_model;
mod recovery_model;
