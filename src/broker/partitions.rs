//! Partitioned topics: a record with the number of partitions; each partition is a topic of its own.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::service::BrokerError;
use crate::domain::TopicName;
use crate::metadata::{Expect, Metadata, MetadataError};

/// Partitions of one topic.
pub(super) const PARTITIONS_MAX: u32 = 10_000;

/// Prefix of the records; the full name follows.
const PREFIX: &str = "/partitioned/";

/// The record, stored as JSON.
#[derive(Serialize, Deserialize)]
struct PartitionedRecord {
    /// Format of this record; 1.
    format: u32,
    /// Number of partitions.
    partitions: u32,
}

/// The records of partitioned topics.
#[derive(Clone)]
pub(super) struct Partitions {
    metadata: Metadata,
}

impl Partitions {
    pub(super) const fn new(metadata: Metadata) -> Self {
        Self { metadata }
    }

    /// Number of partitions; `None` if the topic is not partitioned.
    pub(super) async fn count(&self, name: &TopicName) -> Result<Option<u32>, BrokerError> {
        let Some(record) = self.metadata.get(&key(name)).await? else { return Ok(None) };
        let record: PartitionedRecord = serde_json::from_slice(&record.value)
            .map_err(|error| BrokerError::Metadata(format!("record of {name}: {error}")))?;
        Ok(Some(record.partitions))
    }

    /// Writes the record of a new partitioned topic.
    pub(super) async fn create(
        &self,
        name: &TopicName,
        partitions: u32,
    ) -> Result<(), BrokerError> {
        let record = PartitionedRecord { format: 1, partitions };
        let value = serde_json::to_vec(&record)
            .map_err(|error| BrokerError::Metadata(format!("record of {name}: {error}")))?;
        match self.metadata.put(&key(name), Bytes::from(value), Expect::Absent, None).await {
            Ok(_) => Ok(()),
            Err(MetadataError::VersionMismatch { .. }) => {
                Err(BrokerError::TopicExists(name.clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the record.
    pub(super) async fn delete(&self, name: &TopicName) -> Result<(), BrokerError> {
        match self.metadata.delete(&key(name), Expect::Any).await {
            Ok(()) | Err(MetadataError::VersionMismatch { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn key(name: &TopicName) -> String {
    format!("{PREFIX}{name}")
}
