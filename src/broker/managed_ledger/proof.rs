//! Whether this is still the owner of a topic. A broker that metadata cannot reach does not hear of it when others take its topics;
//! what it would tell a new consumer may be long acknowledged.

use std::time::Duration;

use tokio::sync::oneshot;

use super::contract::ManagedLedgerError;
use super::driver::Input;
use super::handle::{ManagedLedger, Shared};
use super::record::TopicRecord;
use crate::ledger::WriterProof;
use crate::{mutant, reached};

/// Metadata has so long to say who owns the topic.
const RECORD_LIMIT: Duration = Duration::from_secs(5);

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
            WriterProof::Unknown => self.is_recorded().await,
        };
        if owned == Ok(false) {
            reached!("managed ledger: a new consumer found another owner");
            self.tell(Input::Fence("another owner has taken the topic".to_owned()));
            return Err(ManagedLedgerError::Fenced);
        }
        owned.map(drop)
    }

    /// Whether the record is still this owner's.
    async fn is_recorded(&self) -> Result<bool, ManagedLedgerError> {
        let shared = self.shared();
        let look = async {
            let (epoch, owner) = {
                let held = shared.record.lock().await;
                (held.epoch, held.owner)
            };
            let found = shared.environment.metadata.get(&Shared::key(&shared.name)).await;
            let found = found.map_err(|error| ManagedLedgerError::Metadata(error.to_string()))?;
            let Some(found) = found else { return Ok(false) };
            let record = TopicRecord::decode(&found.value).map_err(ManagedLedgerError::Storage)?;
            Ok((record.epoch, record.owner) == (epoch, owner))
        };
        let clock = &shared.environment.runtime.clock;
        match clock.timeout(RECORD_LIMIT, look).await {
            Ok(answer) => answer,
            Err(late) => Err(ManagedLedgerError::Metadata(late.to_string())),
        }
    }
}
