//! Copying what one place of a fragment's ensemble must hold to the bookie that takes, or has, the place.

mod driver;
mod machine;
mod segment;

pub(super) use driver::Copier;
pub use machine::{CopyCount, CopyEffect, CopyFailure, CopyMachine, CopyOrder};
