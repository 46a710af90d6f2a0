//! The auditor: one node, elected through metadata, that finds what needs repair. Election is a hint: two
//! auditors at once write the same markers.

mod check;
mod driver;
mod machine;

pub(super) use driver::Auditor;
pub use machine::{AuditMachine, AuditWork};
