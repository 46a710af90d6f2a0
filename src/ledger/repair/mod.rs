//! Replication that heals itself. An elected auditor finds ledgers whose copies are missing, leaving or
//! damaged and marks them; replicators on every bookie's node work the marks off. Repair never decides what
//! is committed: it copies what is confirmed, and changes only which bookies hold it.

mod auditor;
mod config;
mod copy;
mod drain;
mod ledger_repair;
mod lock;
mod marker;
mod pacer;
mod plan;
mod replicator;
mod service;
mod session;
mod standing;
mod stats;

pub use auditor::{AuditMachine, AuditWork};
pub use config::RepairConfig;
pub use copy::{CopyCount, CopyEffect, CopyFailure, CopyMachine, CopyOrder};
pub use drain::{DrainRecord, DrainState, Drains, names_bookie};
pub use lock::RepairProgress;
pub use marker::{Flaw, FlawKind, Markers, RepairMarker};
pub use pacer::Pacer;
pub use plan::{RepairAction, RepairPlan, RepairTask, plan};
pub use service::{RepairParts, RepairService};
pub use standing::{BookieStandings, Standing};
pub use stats::RepairStats;
