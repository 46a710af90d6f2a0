//! Appending to an open ledger. `machine` decides, `driver` performs, `handle` is what the broker holds,
//! `admission` is the window between the two, `change` replaces bookies in the record, `close` ends it.

mod admission;
mod change;
mod close;
mod driver;
mod handle;
/// The writer's decisions, without effects.
pub mod machine;

pub(super) use driver::start;
pub use handle::LedgerWriter;
