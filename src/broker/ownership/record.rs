//! What brokers write into metadata about themselves and their bundles. JSON.
//!
//! | key | what | tied to a session |
//! | --- | --- | --- |
//! | `/brokers/<instance>` | a broker that can be reached | yes |
//! | `/ownership/<tenant>/<namespace>/<range>` | who owns a bundle, and its epoch | no: the epoch must outlive owners |
//! | `/bundles/<tenant>/<namespace>` | how many bundles a namespace has, fixed at its first use | no |

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::load::LoadFigures;
use super::registration::BrokerAddresses;
use crate::broker::service::BrokerError;
use crate::domain::NamespaceName;
use crate::metadata::Metadata;
use crate::mutant;

/// Prefix of registrations.
pub(in crate::broker) const BROKERS_PREFIX: &str = "/brokers/";
/// Prefix of ownership records.
pub(super) const OWNERSHIP_PREFIX: &str = "/ownership/";
/// Prefix of the records of bundle counts.
pub(in crate::broker) const BUNDLES_PREFIX: &str = "/bundles/";

const FORMAT: u32 = 1;

/// One start of a broker: a number from the cluster's counter, so that no two starts share one. A broker
/// that comes back is another instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BrokerInstance(pub u64);

impl BrokerInstance {
    /// Key of its registration.
    pub(super) fn key(self) -> String {
        format!("{BROKERS_PREFIX}{:016x}", self.0)
    }

    /// The instance of a key.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let digits = key.strip_prefix(BROKERS_PREFIX)?;
        u64::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl std::fmt::Display for BrokerInstance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "broker {}", self.0)
    }
}

/// A broker that can be reached now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRecord {
    /// Format of this record; 1.
    format: u32,
    /// `pulsar://host:port` as clients reach it.
    pub pulsar: String,
    /// `http://host:port` as clients and other brokers reach it.
    pub http: String,
    /// `host:port` of the gRPC port as clients reach it; empty in records of before there was one.
    #[serde(default)]
    pub grpc: String,
    /// It is shutting down and takes no more bundles.
    pub leaving: bool,
    /// What it carries.
    pub load: LoadFigures,
}

impl BrokerRecord {
    pub(super) fn new(addresses: &BrokerAddresses, leaving: bool, load: LoadFigures) -> Self {
        let BrokerAddresses { pulsar, http, grpc } = addresses.clone();
        Self { format: FORMAT, pulsar, http, grpc, leaving, load }
    }

    /// Whether the others should hear of it: they compare loads only roughly.
    pub(super) fn is_news_after(&self, before: &Self) -> bool {
        self.leaving != before.leaving || self.load.differs_from(&before.load)
    }

    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("broker record of format {}", record.format));
        }
        Ok(record)
    }
}

/// Who owns a bundle. Only ever changed by compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnershipRecord {
    format: u32,
    /// The owner; none after a release.
    pub owner: Option<BrokerInstance>,
    /// Raised by each owner that takes it.
    pub epoch: u64,
}

impl OwnershipRecord {
    pub(super) const fn new(owner: Option<BrokerInstance>, epoch: u64) -> Self {
        Self { format: FORMAT, owner, epoch }
    }

    pub(super) fn key(bundle: &Bundle) -> String {
        format!("{OWNERSHIP_PREFIX}{bundle}")
    }

    pub(super) fn bundle_of_key(key: &str) -> Option<Bundle> {
        Bundle::parse(key.strip_prefix(OWNERSHIP_PREFIX)?)
    }

    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.format != FORMAT {
            return Err(format!("ownership record of format {}", record.format));
        }
        Ok(record)
    }
}

/// Whether whoever took a bundle with this epoch still owns it, by metadata. Without a record nobody shares bundles.
pub(in crate::broker) async fn is_owned_still(
    metadata: &Metadata,
    bundle: &Bundle,
    epoch: u64,
) -> Result<bool, BrokerError> {
    let Some(found) = metadata.get(&OwnershipRecord::key(bundle)).await? else { return Ok(true) };
    let record = OwnershipRecord::decode(&found.value).map_err(BrokerError::Metadata)?;
    Ok((record.owner.is_some() && record.epoch == epoch) || mutant!("B-late-loader"))
}

/// How many bundles a namespace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BundlesRecord {
    format: u32,
    pub(super) bundles: u32,
}

impl BundlesRecord {
    pub(super) const fn new(bundles: u32) -> Self {
        Self { format: FORMAT, bundles }
    }

    pub(super) fn key(namespace: &NamespaceName) -> String {
        format!("{BUNDLES_PREFIX}{namespace}")
    }

    pub(super) fn encode(self) -> Bytes {
        Bytes::from(serde_json::to_vec(&self).unwrap_or_default())
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if record.format != FORMAT || record.bundles == 0 {
            return Err("not a record of a namespace's bundles".to_owned());
        }
        Ok(record)
    }
}
