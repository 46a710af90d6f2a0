//! Which broker serves which topics: registration, bundles, ownership records, lookup, hand-over.
//! Ownership decides who *should* serve. What keeps a deposed owner harmless is the topic record's
//! compare-and-set and the fencing of its ledgers (`docs/internals/ownership.md`).

/// Ranges of topics.
pub mod bundle;
mod driver;
mod handle;
/// What brokers carry.
pub mod load;
mod load_meter;
/// Decisions about bundles.
pub mod machine;
mod record;
mod registration;
/// Giving up bundles when others carry less.
pub mod shedding;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, boundaries};
pub(super) use handle::Ownership;
pub use handle::{Located, OwnershipConfig};
pub use load::LoadFigures;
pub(super) use load_meter::Traffic;
pub(super) use record::is_owned_still;
pub use record::{BrokerInstance, BrokerRecord};
pub use registration::BrokerAddresses;
