//! Scenarios told with the words of `sim-tests/story`, one turn of the protocol each.

mod bookie_loss;
mod bookies;
mod ensembles;
mod fencing;
mod metadata_members;
mod ownership;
mod power_loss;
mod readers;
mod recovery;
mod subscriptions;
mod takeover;
mod writers;
