//! One binary of model and codec properties.

mod bookie_model;
mod journal_model;
