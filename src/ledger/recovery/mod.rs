//! Finding and fixing the end of a ledger whose writer is gone, or is to be deposed. `machine` decides,
//! `write_back` restores what was found to an ack quorum, `driver` performs, `trace` tells the log,
//! `claim` and `close` are the two compare-and-sets around it.

mod driver;
/// Recovery's decisions, without effects.
pub mod machine;
mod record;
mod trace;
mod write_back;

pub(super) use driver::{Recoverer, recover};

#[cfg(test)]
mod tests;
