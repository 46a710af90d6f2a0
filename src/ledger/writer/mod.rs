//! Appending to an open ledger. `machine` decides, `driver` performs, `handle` is what the broker holds,
//! `admission` is the window between the two, `change` replaces bookies in the record, `close` ends it,
//! `proof` shows whether it still is the writer.

mod admission;
mod change;
mod close;
mod driver;
mod handle;
/// The writer's decisions, without effects.
pub mod machine;
mod proof;

pub(super) use driver::start;
pub use handle::LedgerWriter;
pub use proof::WriterProof;
