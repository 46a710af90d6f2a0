//! A topic taken over: the epoch of its record, and who wrote it.

use std::time::Duration;

use super::contract::ManagedLedgerError;
use super::record::TopicRecord;
use crate::metadata::Metadata;
use crate::runtime::Clock;

/// Metadata has so long to say who owns a topic.
const RECORD_LIMIT: Duration = Duration::from_secs(5);

/// One owner's claim to a topic, for as long as nobody else takes it.
#[derive(Clone)]
pub(in crate::broker) struct TopicClaim {
    pub(super) metadata: Metadata,
    pub(super) clock: Clock,
    /// Of the topic's record.
    pub(super) key: String,
    /// Higher than that of every owner before.
    pub(super) epoch: u64,
    /// Drawn by the owner, so that two who claim at once never write the same record.
    pub(super) owner: u64,
}

impl TopicClaim {
    /// Whether the record is still this owner's: nobody had taken the topic when this was asked.
    pub(in crate::broker) async fn is_recorded(&self) -> Result<bool, ManagedLedgerError> {
        let look = async {
            let found = self.metadata.get(&self.key).await;
            let found = found.map_err(|error| ManagedLedgerError::Metadata(error.to_string()))?;
            let Some(found) = found else { return Ok(false) };
            let record = TopicRecord::decode(&found.value).map_err(ManagedLedgerError::Storage)?;
            Ok((record.epoch, record.owner) == (self.epoch, self.owner))
        };
        match self.clock.timeout(RECORD_LIMIT, look).await {
            Ok(answer) => answer,
            Err(late) => Err(ManagedLedgerError::Metadata(late.to_string())),
        }
    }
}
