//! What repair must know of a bookie: does it serve, is it leaving, is it away.

use crate::domain::BookieId;

/// Where a bookie stands, as the registry of this moment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Registered: it answers reads, whether or not it takes writes.
    Serving,
    /// Registered and asked to leave: it answers reads; its copies are moved away.
    Draining,
    /// Not registered. It may be down for a moment, or gone for ever.
    Missing,
}

/// Port to the registry of bookies; `node` fills it in.
pub trait BookieStandings: Send + Sync {
    /// Where a bookie stands now.
    fn standing(&self, bookie: BookieId) -> Standing;
}
