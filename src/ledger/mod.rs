//! The client that makes bookies into a log. Life of a ledger: created open by one writer, written,
//! then closed by its writer, or fenced, recovered and closed by someone else; never changed after that
//! but for which bookies hold it. The protocol and its reasons: `docs/internals/ledger_protocol.md`.

mod bookie_client;
mod client;
mod config;
mod create;
mod ensemble;
mod error;
mod reader;
mod record;
mod records;
/// Finding and fixing the end of a ledger.
pub mod recovery;
mod remote_bookie;
/// Replication that heals itself.
pub mod repair;
/// Appending to an open ledger.
pub mod writer;

pub use bookie_client::{BookieClient, BookiePool};
pub use client::{ClosedLedger, LedgerClient, WriterEvents};
pub use config::LedgerConfig;
pub use ensemble::ENSEMBLE_MAX;
pub use error::{
    AppendRefused, CloseError, CreateError, DeleteError, LedgerReadError, RecoveryError, WriterEnd,
};
pub use reader::LedgerReader;
pub use record::{Fragment, LedgerRecord, LedgerState, Quorum, QuorumError};
pub use remote_bookie::{RemoteBookie, RemoteBookieConfig};
pub use writer::{LedgerWriter, WriterProof};

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
