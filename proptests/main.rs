//! One binary of model and codec properties.

mod ledger_world;
mod ledger_writer_model;
mod recovery_model;
