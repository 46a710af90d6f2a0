//! Whether this is still the owner of a topic. A broker that metadata cannot reach does not hear of it when others take its topics;
//! what it would tell a new consumer may be long acknowledged.

use tokio::sync::oneshot;

use super::contract::ManagedLedgerError;
use super::driver::Input;
use super::handle::ManagedLedger;
use crate::ledger::WriterProof;
use crate::{mutant, reached};

impl ManagedLedger {
    /// Fails if somebody else had taken the topic over before this was asked: asks the bookies of the open ledger, which needs
    /// no metadata, and metadata if there is no open ledger or too few bookies answer. Then the log is fenced here too.
    pub async fn prove_owned(&self) -> Result<(), ManagedLedgerError> {
        if mutant!("B-stale-owner") {
            return Ok(());
        }
        let (reply, writer) = oneshot::channel();
        self.tell(Input::Prove(reply));
        let writer = writer.await.map_err(|_| ManagedLedgerError::Fenced)?;
        let proof = match writer {
            Some(writer) => writer.prove().await,
            None => WriterProof::Unknown,
        };
        let owned = match proof {
            WriterProof::Holds => Ok(true),
            WriterProof::Fenced => Ok(false),
            WriterProof::Unknown => self.shared().claim.is_recorded().await,
        };
        if owned == Ok(false) {
            reached!("managed ledger: a new consumer found another owner");
            self.tell(Input::Fence("another owner has taken the topic".to_owned()));
            return Err(ManagedLedgerError::Fenced);
        }
        owned.map(drop)
    }
}
